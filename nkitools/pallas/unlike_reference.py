"""PL211 and PL213: the blocks of an output that differ from others, where they were written, and what they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from nkitools.chip.element_boxes import boxes_text
from nkitools.comparison.bounds import bound_of
from nkitools.comparison.compared_arrays import compared
from nkitools.comparison.rule import Rule
from nkitools.pallas.calls import Call, Operand, show_shape
from nkitools.pallas.imports import jax_module
from nkitools.pallas.index_map_repairs import Repair
from nkitools.pallas.jax_types import Argument, Array
from nkitools.pallas.source_places import NOWHERE
from nkitools.rules.finding import Finding

_MOST_BLOCKS = 16  # so many differing blocks are compared with the reference's other ones


class Others(NamedTuple):
    """The arrays that outputs are compared with, in words, and the rule that says so."""

    rule_id: str
    name: str


REFERENCE = Others("PL211", "the reference")


def unlike(got: Array, want: Array, rule: Rule) -> Array:
    """Return which elements differ by more than the rule allows; without numbers by more than their dtype explains."""
    return compared(got, want, rule if rule.is_stated else bound_of(got, want)).wrong


@dataclass(frozen=True, eq=False)
class Returned:
    """An output of a Pallas call as the watched run returned it, with the grid step of each element's last write."""

    call: Call
    operand: Operand
    content: Array
    steps: Array
    points: Sequence[tuple[int, ...]]


def judged(
    outputs: Argument,
    reference: Argument,
    returned: Sequence[Returned],
    rule: Rule,
    repair: Callable[[Call], Repair | None],
    others: Others = REFERENCE,
) -> list[Finding]:
    """Return a finding for each output that differs from the reference, or from ``others`` that take its place.

    ``rule``: the allowed difference. ``repair(call)`` returns a change of one index map after which all outputs are the
    reference's. ValueError if the reference has other outputs or shapes.
    """
    found: list[Finding] = []
    for index, (got, want) in enumerate(pairs(outputs, reference)):
        where = unlike(got, want, rule)
        if where.any():
            found.append(_finding(index, got, want, where, returned, rule, repair, others))
    return found


def pairs(outputs: Argument, reference: Argument) -> Iterator[tuple[Array, Array]]:
    """Yield each output array with that of the reference; ValueError if their shapes differ."""
    leaves = jax_module().tree_util.tree_leaves
    mine, others = [np.asarray(each) for each in leaves(outputs)], [np.asarray(each) for each in leaves(reference)]
    shapes, wanted = [each.shape for each in mine], [each.shape for each in others]
    if shapes != wanted:
        raise ValueError(f"the outputs have shapes {shapes}, and the reference {wanted}")
    yield from zip(mine, others, strict=True)


def _finding(
    index: int,
    got: Array,
    want: Array,
    where: Array,
    returned: Iterable[Returned],
    rule: Rule,
    repair: Callable[[Call], Repair | None],
    others: Others,
) -> Finding:
    shown = next((each for each in returned if _is_content(each, got)), None)
    if shown is None:
        text = boxes_text(f"outputs[{index}]", where)
        message = f"{text}: unlike {others.name}; no Pallas call returned this array as it is"
        return NOWHERE.finding(others.rule_id, message)
    shape = shown.operand.shape
    blocks = _Blocks(shown, got.reshape(shape), want.reshape(shape), where.reshape(shape), rule, others.name)
    message = f"{shown.operand.text()}: {blocks.text()}, in kernel `{shown.call.name}`"
    place = shown.call.kernel_place
    mended = repair(shown.call)
    if mended is not None:
        message, place = f"{message}; {mended.text}", mended.operand.place
    elif blocks.others:
        place = shown.operand.place
    remedy = "" if mended is None else f"Correct {mended.operand.index_map()}."
    point = blocks.point_of(blocks.wrong[0])
    return place.finding(others.rule_id, message, remedy=remedy, point=point or ())


def _is_content(returned: Returned, got: Array) -> bool:
    """Return whether an output array is the result of a call, perhaps in another shape or dtype."""
    content = returned.content
    return content.size == got.size and content.astype(got.dtype).tobytes() == got.tobytes()


class _Blocks:
    """The blocks of one output, and those that differ from the reference's."""

    def __init__(
        self, returned: Returned, got: Array, want: Array, unlike: Array, rule: Rule, name: str = REFERENCE.name
    ) -> None:
        self.name = name
        self.returned, self.got, self.want, self.rule = returned, got, want, rule
        self.unlike = unlike
        operand = returned.operand
        self.all = [tuple(int(each) for each in at) for at in np.ndindex(*operand.blocks)]
        self.wrong = [at for at in self.all if unlike[self._where(at)].any()]
        self.others = {} if operand.whole or name != REFERENCE.name else self._others()

    def _where(self, block: tuple[int, ...]) -> tuple[slice, ...]:
        sizes = self.returned.operand.block_sizes
        return tuple(slice(at * size, (at + 1) * size) for at, size in zip(block, sizes, strict=True))

    def _others(self) -> dict[tuple[int, ...], tuple[int, ...]]:
        """Return for the first differing blocks the block of the reference that each equals, if it is one alone."""
        found = {}
        for block in self.wrong[:_MOST_BLOCKS]:
            mine = self.got[self._where(block)]
            alike = [at for at in self.all if self._holds(mine, at)]
            if len(alike) == 1:
                found[block] = alike[0]
        return found

    def _holds(self, mine: Array, block: tuple[int, ...]) -> bool:
        """Return whether a block equals the reference's; one element is compared before the others."""
        theirs = self.want[self._where(block)]
        if theirs.shape != mine.shape:
            return False
        first = (slice(0, 1),) * mine.ndim
        if unlike(mine[first], theirs[first], Rule(self.rule.rtol or 1e-3, self.rule.atol or 0.0)).any():
            return False
        return not unlike(mine, theirs, self.rule).any()

    def point_of(self, block: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return the point of the grid that wrote a block last; None if none did."""
        steps = self.returned.steps[tuple(slice(0, size) for size in self.returned.operand.shape)]
        last = int(steps[self._where(block)].max(initial=-1))
        return self.returned.points[last] if 0 <= last < len(self.returned.points) else None

    def text(self) -> str:
        """Return a sentence: the blocks that differ, the point that wrote the first, and the other blocks that they
        equal.
        """
        operand, first = self.returned.operand, self.wrong[0]
        point = self.point_of(first)
        written = f", written last at grid point {show_shape(point)}" if point else ""
        if operand.whole:
            return f"{boxes_text(operand.name, self.unlike)} differ from {self.name}{written}"
        many = f"{len(self.wrong)} of {len(self.all)} blocks differ from {self.name}"
        count, size = int(self.unlike[self._where(first)].sum()), self.unlike[self._where(first)].size
        share = "" if count == size else f" in {count} of {size} elements"
        return f"{many}, the first is block {show_shape(first)}{share}{written}{self._pattern()}"

    def _pattern(self) -> str:
        """Return a clause on what the differing blocks have in common: exchanged indices, or one block for all."""
        if not self.others:
            return ""
        first, there = next(iter(self.others.items()))
        text = f"; block {show_shape(first)} equals {self.name}'s block {show_shape(there)}"
        for a, b in combinations(range(len(first)), 2):
            if all(_exchanged(mine, a, b) == theirs for mine, theirs in self.others.items()):
                return f"{text}: block indices {a} and {b} are exchanged"
        if len(self.others) > 1 and set(self.others.values()) == {there}:
            return f"{text}, and so do {len(self.others) - 1} more: an index does not follow the grid"
        return text


def _exchanged(block: tuple[int, ...], a: int, b: int) -> tuple[int, ...]:
    changed = list(block)
    changed[a], changed[b] = block[b], block[a]
    return tuple(changed)
