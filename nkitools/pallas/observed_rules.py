"""The rules of a watched kernel: PL201 to PL210, at the author's line and point of the grid."""

from __future__ import annotations

from typing import Any

import numpy as np

from nkitools.chip.element_boxes import boxes_text
from nkitools.pallas import write_shadow
from nkitools.pallas.calls import Operand, show_shape
from nkitools.pallas.jax_types import Array
from nkitools.pallas.observed_grid import WatchedGrid
from nkitools.pallas.source_places import NOWHERE, Place
from nkitools.pallas.write_shadow import GIVEN, PADDING, UNWRITTEN, VISITED, Observed, Shadow

_OF_POINTS = 'Let points of a parallel dimension write blocks of their own, or make the dimension "arbitrary".'
_OUTSIDE = 2**31 - 1  # what JAX reads outside of a buffer of scalars


class WatchedRules:
    """Judges the accesses of one kernel; ``suspected`` findings matter if results depend on undefined memory."""

    def __init__(self, certain: Observed, suspected: Observed, grid: WatchedGrid) -> None:
        self._certain, self._suspected = certain, suspected
        self._grid = grid
        self._races: list[tuple[Shadow, int, Place, tuple[int, ...]]] = []
        self._own_reads: dict[str, tuple[Place, tuple[int, ...]]] = {}

    def own_read(self, buffer: Shadow, seen: Array, place: Place, core: int) -> None:
        """Judge a read of an output that another point has written or left unwritten: a sum over points, no race."""
        if (seen == UNWRITTEN).any() or self._grid.others(seen, core).size:
            self._own_reads.setdefault(buffer.name, (place, self._grid.point(core)))

    def about(self, name: str) -> tuple[Place, str]:
        """Return an operand or buffer of this kernel, as findings name it."""
        return (self._grid.call.kernel_place if self._grid.call is not None else NOWHERE, name)

    def tell(
        self,
        rule: str,
        message: str,
        place: Place,
        point: tuple[int, ...],
        about: str,
        *,
        sure: bool = True,
        remedy: str = "",
    ) -> None:
        """Take note of a finding of this kernel, about one of its operands."""
        findings = self._certain if sure else self._suspected
        found = place.finding(rule, message + self._where(point), remedy=remedy, point=point)
        findings.add(found, self.about(about))

    def _where(self, point: tuple[int, ...]) -> str:
        name = self._grid.call.name if self._grid.call is not None else "kernel"
        return f", in kernel `{name}`" + (f" at grid point {show_shape(point)}" if point else "")

    def check_inside(
        self, buffer: Shadow, ranges: tuple[Any, ...], place: Place, core: int, does: str, *, is_pipeline: bool
    ) -> None:
        """PL201."""
        shape, remedy = buffer.steps.shape, ""
        if not write_shadow.is_outside(ranges, shape):
            return
        elements = write_shadow.show(ranges, shape)
        if is_pipeline and buffer.operand is not None:
            operand = buffer.operand
            if not write_shadow.is_outside(ranges, _padded(operand, shape)):
                return
            block, place = show_shape(_block_index(operand, ranges)), operand.place
            scalars = self._undefined_scalars(_block_index(operand, ranges))
            message = f"{operand.text()} has no block {block}: its index map leads to elements {elements}{scalars}"
            within = f"stay within its {show_shape(operand.blocks)} blocks, or make the grid less."
            remedy = (
                self._grid.exchange(operand)
                or f"Let {operand.index_map()} {'read scalars that there are, and ' if scalars else ''}{within}"
            )
        else:
            message = f"the kernel {does} elements {elements} of {buffer.text()}, whose shape is {show_shape(shape)}"
        sure = is_pipeline or does == "writes"  # a value that is read may not be used
        self.tell("PL201", message, place, self._grid.point(core), buffer.name, sure=sure, remedy=remedy)

    def _undefined_scalars(self, block: tuple[int, ...]) -> str:
        """Return a sentence on the scalars that a block's index may come from, if it is JAX's value for reads outside
        of them.
        """
        scalars = self._grid.call.prefetched if self._grid.call is not None else ()
        if not scalars or not {_OUTSIDE, -1} & set(block):  # times the size of a block, in 32 bits, it is -1
            return ""
        names = " or ".join(f"`{each.name}` ({each.dtype} {list(each.shape)})" for each in scalars)
        what = "this is" if _OUTSIDE in block else "it may be"
        return f"; {what} what a scalar holds that is read outside of {names}, or before it is written"

    def check_defined(self, buffer: Shadow, where: tuple[Any, ...], seen: Array, place: Place, core: int) -> None:
        """PL207 for undefined elements, if the results depend on them. ``where``: the part of the buffer with steps
        ``seen``.
        """
        if not seen.size or seen.min() > UNWRITTEN:
            return
        if (undefined := (seen == UNWRITTEN)).any():
            what, remedy = "is read before it is written", self._grid.first_write()
        elif (undefined := (seen == PADDING)).any():
            what = "juts out over the edge of the array, and the result depends on what is read there"
            remedy = "Mask what lies beyond the edge with jnp.where, by the size of the array."
        else:
            return
        mask = np.zeros(buffer.steps.shape, np.bool_)
        mask[where] = undefined
        message = f"{buffer.text()} {what}: {boxes_text(buffer.name, mask)}"
        self.tell("PL207", message, place, self._grid.point(core), buffer.name, sure=False, remedy=remedy)

    def check_carry(self, buffer: Shadow, seen: Array, place: Place, core: int) -> None:
        """PL206, if the results depend on it."""
        if buffer.kind not in ("window", "scratch") or (buffer.operand is not None and not buffer.is_output):
            return
        others = self._grid.others(seen, core)
        if others.size:
            there, remedy = show_shape(self._grid.points[int(others[-1])]), self._grid.restart()
            message = f"{buffer.text()} carries a value over from grid point {there}{self._grid.in_parallel()}"
            self.tell("PL206", message, place, self._grid.point(core), buffer.name, sure=False, remedy=remedy)

    def check_write_race(self, buffer: Shadow, before: Array, place: Place, core: int) -> None:
        """PL203 between points of parallel dimensions, which may be on different cores."""
        if buffer.is_output and buffer.kind in ("window", "output"):
            self._note_race(buffer, before, place, core)

    def check_read_race(self, buffer: Shadow, seen: Array, place: Place, core: int) -> None:
        if buffer.kind == "output":
            self._note_race(buffer, seen, place, core)

    def _note_race(self, buffer: Shadow, steps: Array, place: Place, core: int) -> bool:
        """Keep the last of ``steps`` that may run at once with this one; return whether there is one."""
        others = self._grid.others(steps, core)
        if others.size:
            self._races.append((buffer, int(others[-1]), place, self._grid.point(core)))
        return bool(others.size)

    def tell_races(self) -> None:
        """PL203, or PL206 if the kernel adds up the writes of several points, if the results depend on that output."""
        for buffer, other, place, point in self._races:
            operand = buffer.operand
            assert operand is not None
            there = show_shape(self._grid.points[other])
            if buffer.name in self._own_reads:
                place, read_at = self._own_reads[buffer.name]
                message = f"{operand.text()} is added up over grid points {there} and {show_shape(point)}"
                self.tell("PL206", message + self._grid.in_parallel(), place, read_at, buffer.name, sure=False)
            else:
                message = f"{operand.text()}: grid points {there} and {show_shape(point)} write the same elements"
                self.tell(
                    "PL203",
                    message + self._grid.in_parallel(),
                    place,
                    point,
                    buffer.name,
                    sure=False,
                    remedy=_OF_POINTS,
                )

    def check_visits(self, buffer: Shadow, before: Array, ranges: tuple[Any, ...], core: int) -> None:
        """PL202 and PL203: a block is stored that was stored before."""
        operand = buffer.operand
        if operand is None or not operand.is_output or not before.size:
            return
        earlier = np.unique(before[before >= 0])
        if not earlier.size or (before == GIVEN).any():
            return
        if not self._note_race(buffer, before, operand.place, core) and (before >= 0).all():
            block, there = _block_index(operand, ranges), self._grid.points[int(earlier[-1])]
            again = f"is visited again, after grid point {show_shape(there)} and other blocks in between"
            message = f"{operand.text()}: block {show_shape(block)} {again}"
            point, remedy = self._grid.visited_since(buffer.name, core), self._grid.other_order(operand)
            self.tell("PL202", message, operand.place, point, buffer.name, remedy=remedy)

    def check_written(self, buffer: Shadow) -> None:
        """PL205, if the results depend on it."""
        operand = buffer.operand
        assert operand is not None
        assert self._grid.call is not None
        steps = buffer.steps[tuple(slice(0, size) for size in operand.shape)]
        missing = (steps == UNWRITTEN) | (steps == VISITED) | (steps == PADDING)
        if not missing.any():
            return
        visited = bool((steps == VISITED).any())
        first = tuple(int(each[0]) for each in np.nonzero(missing))
        block = tuple(at // max(size, 1) for at, size in zip(first, operand.block_sizes, strict=True))
        by_kernel = visited or operand.whole
        why = "the kernel does not write them" if by_kernel else "no point of the grid visits them"
        place = self._grid.call.kernel_place if by_kernel else operand.place
        remedy = self._remedy_of_missing(operand, missing, block, by_kernel=by_kernel)
        in_block = "" if operand.whole else f", the first in block {show_shape(block)}"
        what = f"{boxes_text(buffer.name, missing)} never written{in_block}"
        self.tell("PL205", f"{operand.text()}: {what}: {why}", place, (), buffer.name, sure=False, remedy=remedy)

    def _remedy_of_missing(self, operand: Operand, missing: Array, block: tuple[int, ...], *, by_kernel: bool) -> str:
        """Return what to do about a block that is not written; '' where the kernel has written a part of it."""
        grid = self._grid.text()
        if not by_kernel:
            return f"Let {operand.index_map()} reach every block, or make the grid {grid} larger."
        sizes = zip(block, operand.block_sizes, strict=True)
        part = missing[tuple(slice(at * size, (at + 1) * size) for at, size in sizes)]
        if operand.whole or not part.all():
            return ""
        return (
            "No store to the block has run: look at the condition of pl.when around it. In the grid "
            f"{grid} each pl.program_id ends one below the size."
        )


def _padded(operand: Operand, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape with the block spec's padding (``pl.Element``), which counts from the padding's start."""
    padding = [getattr(each, "padding", (0, 0)) for each in operand.mapping.block_shape]
    return tuple(size + sum(around) for size, around in zip(shape, padding, strict=True))


def _block_index(operand: Operand, ranges: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the index of the block that begins at the start of ``ranges``."""
    starts = [int(each.start) if isinstance(each, slice) else int(each) for each in ranges]
    sizes = operand.block_sizes
    return tuple(
        start // size if blocked else start
        for start, size, blocked in zip(starts, sizes, operand.blocked, strict=False)
    )
