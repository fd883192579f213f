"""Matmuls in a list: into memory that is kept, with one look at each finished sum, and of neighbouring tiles as one.

BLAS computes an element of a product in an order that depends on the processor, the sizes and the strides. So a matmul
is merged with its neighbours only where random operands of the same sizes have shown that the larger product has the
bits of the smaller ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from math import isfinite
from typing import Any

import numpy as np

from nkitools.chip.numeric_flags import EVIDENCE, Product
from nkitools.chip.numerics import Array
from nkitools.replay.added_products import add_product, adds_exactly
from nkitools.replay.steps import Root, Step, View


def lean(steps: Sequence[Step]) -> list[Step]:
    """Return the steps with matmuls that share the memory of a product, and look at a sum when it is finished.

    A product that is not finite leaves a sum that is not.
    """
    if not any(step.kind == "matmul" for step in steps):
        return list(steps)
    # By root and place: the matmul that was the last to add there, and that nothing has read since.
    last: dict[Root, dict[View, Step]] = {}
    scratch: dict[tuple[int, tuple[int, ...]], Array] = {}  # of a program, which may run beside others
    found: list[Step] = []
    unread: set[int] = set()  # of matmuls: the next one adds to the same place
    for step in steps:
        target = step.arguments[0] if step.kind == "matmul" else None
        before = last.get(target.root, {}).get(target) if target is not None else None
        if before is not None and not step.overwrites:
            unread.add(id(before))
        for _, view in step.views():
            places = last.get(view.root)
            if places:
                last[view.root] = {place: each for place, each in places.items() if not view.meets(place)}
        if target is not None:
            last.setdefault(target.root, {})[target] = step
        found.append(step)
    for number, step in enumerate(found):
        if step.kind == "matmul":
            target = step.arguments[0]
            product = None
            if not step.overwrites and not _is_added(step):
                key = (id(step.engines), target.shape)
                product = scratch.setdefault(key, np.empty(target.shape, np.float32))
            compute = partial(_multiply, product, step.overwrites, id(step) not in unread)
            found[number] = replace(step, compute=compute, keywords={})
    return found


def _is_added(step: Step) -> bool:
    """Return whether BLAS itself may add the product of a matmul."""
    target, stationary, moving = step.arguments
    sizes = (*stationary.shape, moving.shape[1])
    return adds_exactly(*sizes, target.strides, stationary.strides, moving.strides)


def _multiply(
    product: Array | None, overwrites: bool, looks: bool, destination: Array, stationary: Array, moving: Array
) -> None:
    """Put a product in place, or add it, through the memory ``product`` where BLAS itself may not.

    ``looks``: note what is not finite.
    """
    if overwrites:
        np.matmul(stationary.T, moving, out=destination)
    elif product is None:
        add_product(destination, stationary, moving)
    else:
        np.add(destination, np.matmul(stationary.T, moving, out=product), out=destination)
    if looks:
        evidence = EVIDENCE.get()
        if evidence is not None:
            flat = destination.reshape(-1)
            if not isfinite(np.dot(flat, flat)):
                evidence.append(Product(destination))


def may_merge(steps: Sequence[Step]) -> bool:
    """Return whether some matmul of these sizes has the same bits as a part of a larger one."""
    sizes = {(step.arguments[1].shape, step.arguments[2].shape[1]) for step in steps if step.kind == "matmul"}
    return any(
        is_exact(1, contraction, rows, columns, 2 * columns) or is_exact(0, contraction, columns, rows, 2 * rows)
        for (contraction, rows), columns in sizes
    )


def merged(steps: Sequence[Step]) -> list[Step]:
    """Return the steps with matmuls merged that stand together in the list, do not need each other and are neighbours.

    The products that are added to one tile keep their order.
    """
    found: list[Step] = []
    for group in _groups(steps):
        found += _merge(group) if len(group) > 1 else group
    return found


def _groups(steps: Sequence[Step]) -> list[list[Step]]:
    """Return the steps, matmuls that read nothing that others of them write together."""
    groups: list[list[Step]] = []
    written: set[Root] = set()
    read: set[Root] = set()
    for step in steps:
        sources = {view.root for view in step.sources()}
        target = step.arguments[0].root if step.kind == "matmul" else None
        follows = bool(groups) and groups[-1][-1].kind == "matmul"
        if target is not None and follows and not sources & written and target not in read:
            groups[-1].append(step)
        else:
            groups.append([step])
            written, read = set(), set()
        if target is not None:
            written.add(target)
            read |= sources
    return groups


def _merge(group: list[Step]) -> list[Step]:
    """Return fewer matmuls for those of a group."""
    turns: dict[View, int] = {}
    rounds: dict[tuple[int, bool], list[Step]] = {}
    for step in group:
        target = step.arguments[0]
        if target not in turns and any(target.meets(other) for other in turns):
            return group
        turns[target] = turns.get(target, -1) + 1
        rounds.setdefault((turns[target], step.overwrites), []).append(step)
    found: list[Step] = []
    for _, steps in sorted(rounds.items(), key=lambda each: each[0][0]):
        # Neighbours along the columns of the moving operand, then along those of the stationary one.
        found += _neighbours(_neighbours(steps, 1, 2), 0, 1)
    return found


def _neighbours(steps: list[Step], axis: int, grows: int) -> list[Step]:
    """Return matmuls merged along an axis of their results; ``grows``: which operand does."""
    found: list[Step] = []
    for step in steps:
        both = _together(found[-1], step, axis, grows) if found else None
        if both is None:
            found.append(step)
        else:
            found[-1] = both
    return found


def _together(first: Step, second: Step, axis: int, grows: int) -> Step | None:
    """Return two matmuls as one; None where they are no neighbours, or where that changes a bit."""
    fixed = 3 - grows
    if first.arguments[fixed] != second.arguments[fixed] or first.engines is not second.engines:
        return None
    target = beside(first.arguments[0], second.arguments[0], axis)
    operand = beside(first.arguments[grows], second.arguments[grows], 1)
    if target is None or operand is None:
        return None
    size = first.arguments[fixed].shape
    if not is_exact(axis, size[0], size[1], first.arguments[grows].shape[1], operand.shape[1]):
        return None
    arguments: list[Any] = [target, None, None]
    arguments[fixed], arguments[grows] = first.arguments[fixed], operand
    return replace(first, arguments=arguments)


@lru_cache(maxsize=1024)
def is_exact(axis: int, contraction: int, fixed: int, part: int, whole: int) -> bool:
    """Return whether a product of random operands has the same bits as two products, of a part and of the rest.

    ``axis``: along which axis of the product it is parted.
    """
    random = np.random.default_rng(contraction)
    kept = random.standard_normal((contraction, fixed), np.float32)
    grown = random.standard_normal((contraction, whole), np.float32)
    first, second = (each if axis == 1 else each.T for each in (grown[:, :part], grown[:, part:]))
    other = kept.T if axis == 1 else kept
    both = (other @ grown) if axis == 1 else (grown.T @ other)
    parts = [(other @ each) if axis == 1 else (each @ other) for each in (first, second)]
    return np.array_equal(both, np.concatenate(parts, axis=axis))


def beside(first: View, second: View, axis: int) -> View | None:
    """Return two views as one, where the second begins along an axis where the first ends."""
    if first.root is not second.root or first.strides != second.strides or first.dtype != second.dtype:
        return None
    if first.shape[1 - axis] != second.shape[1 - axis]:
        return None
    if second.offset != first.offset + first.shape[axis] * first.strides[axis]:
        return None
    shape = list(first.shape)
    shape[axis] += second.shape[axis]
    return View(first.root, first.offset, tuple(shape), first.strides, first.dtype)
