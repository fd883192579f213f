"""Matmuls of narrow floats in a list: each tile becomes float32 once, in place of once for each of its products.

A matmul of bfloat16, float16 or float8 tiles converts both and multiplies them in float32, exactly. The converted tiles
lie as those of the matmul's own conversion do, so that BLAS computes the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.replay.steps import Engines, Root, Step, View

_FLOAT32 = np.dtype(np.float32)


def widened(steps: Sequence[Step]) -> list[Step]:
    """Return the steps with the conversions of narrow matmuls as steps of their own, in front of each."""
    found: list[Step] = []
    for step in steps:
        if step.kind == "narrow matmul":
            arguments = list(step.arguments)
            made: dict[View, View] = {}
            for number in (1, 2):
                view = arguments[number]
                if view not in made:
                    made[view] = _wide(view)
                    found.append(Step(step.name, _convert, [made[view], view], (0,), step.engines, kind="conversion"))
                arguments[number] = made[view]
            step = replace(step, arguments=arguments, kind="matmul")
        found.append(step)
    return found


def converted_once(steps: Sequence[Step]) -> list[Step]:
    """Return the steps without the conversions of narrow tiles that are converted already and have not changed since.

    Tiles of an argument that nothing writes are converted first of all, and lie to each other as in the argument: their
    matmuls stand together and may be merged.
    """
    if not any(step.kind == "conversion" for step in steps):
        return list(steps)
    first: list[Step] = []
    found: list[Step] = []
    known: dict[tuple[Engines | None, View], View] = {}  # by program: the converted tile of a narrow one
    moved: dict[Root, View] = {}  # the tile that stands for another one
    whole: dict[tuple[Engines | None, Root], Root] = {}  # by program: what an argument's tiles become tiles of
    for step in steps:
        for number, view in step.views():
            if view.root in moved:
                step.arguments[number] = moved[view.root]
        if step.kind == "conversion":
            made, source = step.arguments
            key = step.engines, source
            if key in known:
                moved[made.root] = known[key]
                continue
            if _is_steady(source):
                root = whole.setdefault((step.engines, source.root), _wide_root(source.root, source.dtype.itemsize))
                known[key] = moved[made.root] = step.arguments[0] = _placed_as(source, root)
                first.append(step)
                continue
            known[key] = made
        written = step.writes()
        if known and written:
            known = {key: wide for key, wide in known.items() if not any(each.meets(key[1]) for each in written)}
        found.append(step)
    return [*first, *found]


def _is_steady(view: View) -> bool:
    """Return whether a view is of an argument that no step writes, each row dense."""
    root, size = view.root, view.dtype.itemsize
    return root.argument >= 0 and not root.is_written and view.strides[1] == size and view.strides[0] % size == 0


def _wide_root(root: Root, itemsize: int) -> Root:
    return Root(root.nbytes * (_FLOAT32.itemsize // itemsize), is_written=True)


def _placed_as(view: View, root: Root) -> View:
    """Return the float32 tile that lies in a wide root as a narrow one does in its argument."""
    ratio = _FLOAT32.itemsize // view.dtype.itemsize
    return View(root, view.offset * ratio, view.shape, tuple(each * ratio for each in view.strides), _FLOAT32)


def _wide(view: View) -> View:
    """Return a new float32 tile, one row behind the other."""
    rows, columns = view.shape
    size = _FLOAT32.itemsize
    root = Root(rows * columns * size, is_written=True)
    return View(root, 0, view.shape, (columns * size, size), _FLOAT32)


def _convert(wide: Array, narrow: Array) -> None:
    """Convert a tile; float32 holds every narrow number."""
    np.copyto(wide, narrow, casting="unsafe")
