"""Facts kept beside the rows of a record, for instructions that need them: 4 bytes a chosen row or an index.

The row of an instruction names its operands as views. Beside it stand the elements of a view that an indirect or masked
access touches, the operands that are no arguments (indices on the device, registers), and the senders of a collective's
data.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from nkitools.chip.layout import Layout
from nkitools.chip.numerics import Array
from nkitools.facts.light_classes import NamedTuple, dataclass

_OPERANDS = 1 << 16  # more than an instruction has


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The elements of a view that an access touches, if it does not touch all.

    ``layout``: the view; for a gather or scatter all rows or columns that may be chosen.
    ``rows``, ``columns``: the indices that are chosen in dimension 0 or 1, ascending.
    ``bits``: one bit for each element of the view in C order; None if ``rows`` or ``columns`` are given.
    """

    layout: Layout
    rows: Array | None = None
    columns: Array | None = None
    bits: bytes | None = None

    @property
    def lanes(self) -> Array | None:
        """A mask over the view; None if ``rows`` or ``columns`` are given."""
        if self.bits is None:
            return None
        flags = np.unpackbits(np.frombuffer(self.bits, np.uint8), count=self.layout.elements)
        return flags.view(np.bool_).reshape(self.layout.shape)

    def of(self, array: Array) -> Array:
        """Return the touched elements of an array that has all of the layout's."""
        if self.rows is not None:
            return array[self.rows]
        return array[self.lanes] if self.columns is None else array[:, self.columns]

    @property
    def is_empty(self) -> bool:
        """Return whether no element is touched."""
        chosen = self.rows if self.columns is None else self.columns
        return not any(self.bits) if self.bits is not None else chosen is not None and not chosen.size


class Transfer(NamedTuple):
    """An instruction that received data from other programs, by a collective or sendrecv.

    ``position``: of the instruction in its record.
    ``members``: the numbers of the programs that met, over all ranks.
    ``member``: the number of the program that issued the instruction.
    ``senders``: the numbers of the programs whose data it received.
    """

    position: int
    members: tuple[int, ...]
    member: int
    senders: tuple[int, ...]


class OperandPart(NamedTuple):
    """A part with the number of its operand, and whether data have chosen it."""

    operand: int
    is_as_run: bool
    part: Part


class BesideRows:
    """The facts beside the rows of a record."""

    def __init__(self) -> None:
        self.transfers: list[Transfer] = []
        # Views that were read as an index or an address: position, storage << 32 | layout, byte offset.
        self.indices = array("q")
        # Dependences by registers, as pairs of positions: the later instruction, the earlier one.
        self.flow = array("q")
        self.output = array("q")
        self.anti = array("q")
        # The parts of the operands of all instructions of a plan, where the plan itself does not have them.
        self.of_plans: dict[int, list[tuple[int, Part]]] = {}
        self._parts: dict[int, Part] = {}
        self._as_run: dict[int, Part] = {}
        self._known: dict[tuple[int, str, bytes], Part] = {}
        # The rows of views that data have chosen, by operand; they become parts where these are asked for.
        self.chosen: dict[int, tuple[Layout, Array]] = {}

    @property
    def is_empty(self) -> bool:
        """Return whether no instruction needs any."""
        facts = self.transfers, self.indices, self.flow, self.output, self.anti
        return not (any(facts) or self.of_plans or self._parts or self._as_run or self.chosen)

    def choose(self, position: int, operand: int, layout: Layout, rows: Array) -> None:
        """Keep which rows of a view data have chosen for an operand of an instruction, in any order."""
        self.chosen[position * _OPERANDS + operand] = layout, rows.astype(np.int32)

    def _part(self, key: int) -> Part | None:
        """Return the elements that an operand touches; rows chosen by data are sorted, without repeats."""
        part = self._parts.get(key)
        if part is None and key in self.chosen:
            layout, rows = self.chosen[key]
            part = self._parts[key] = self.rows(layout, ascending(rows))
        return part

    def rows(self, layout: Layout, rows: Array) -> Part:
        """Return the part that is some rows of a view."""
        data = rows.astype(np.int32).tobytes()
        return self._once(layout, "rows", data, np.frombuffer(data, np.int32))

    def columns(self, layout: Layout, columns: Array) -> Part:
        """Return the part that is some columns of a view with two dimensions."""
        data = columns.astype(np.int32).tobytes()
        return self._once(layout, "columns", data, np.frombuffer(data, np.int32))

    def lanes(self, layout: Layout, lanes: Array) -> Part:
        """Return the part that is the true lanes of a mask over a view."""
        data = np.packbits(np.broadcast_to(lanes, layout.shape)).tobytes()
        return self._once(layout, "bits", data, data)

    def _once(self, layout: Layout, name: str, data: bytes, value: Array | bytes) -> Part:
        key = (layout.id, name, data)
        if key not in self._known:
            self._known[key] = Part(layout, **{name: value})  # type: ignore[arg-type]
        return self._known[key]

    def keep(self, position: int, operand: int, part: Part) -> None:
        """Keep which elements of an operand (by its number) the instruction at ``position`` touches."""
        self._parts[position * _OPERANDS + operand] = part

    def keep_as_run(self, position: int, operand: int, part: Part) -> None:
        """Keep the elements that an operand touched in this run: data chose them among those of `keep`."""
        self._as_run[position * _OPERANDS + operand] = part

    def take_parts(self, position: int, operands: int) -> list[OperandPart]:
        """Return the parts of so many operands of an instruction, and keep them no longer."""
        if not self._parts and not self._as_run and not self.chosen:
            return []
        first = position * _OPERANDS
        for key in range(first, first + operands):
            self._part(key)
            self.chosen.pop(key, None)
        return [
            OperandPart(operand, parts is self._as_run, parts.pop(first + operand))
            for parts in (self._parts, self._as_run)
            for operand in range(operands)
            if first + operand in parts
        ]

    def put_parts(self, position: int, parts: Iterable[OperandPart]) -> None:
        """Keep parts that were taken, for the instruction at ``position``."""
        for operand, is_as_run, part in parts:
            (self._as_run if is_as_run else self._parts)[position * _OPERANDS + operand] = part

    def part(self, position: int, operand: int) -> Part | None:
        """Return the elements that an operand may touch, for any data; None for its whole view."""
        return self._part(position * _OPERANDS + operand)

    def part_as_run(self, position: int, operand: int) -> Part | None:
        """Return the elements that an operand touched in this run; None for its whole view."""
        key = position * _OPERANDS + operand
        return self._as_run.get(key) or self._part(key)

    def parts(self, *, as_run: bool = False) -> Iterable[tuple[int, int, Part]]:
        """Yield every part with the position of its instruction and the number of its operand.

        ``as_run``: also the parts that data chose in this run, after those that hold for any data.
        """
        for key in self.chosen:
            self._part(key)
        for key, part in chain(self._parts.items(), self._as_run.items() if as_run else ()):
            yield *divmod(key, _OPERANDS), part

    def depends(self, position: int, sources: Sequence[int]) -> None:
        """Let the instruction at ``position`` depend on the instructions that computed a register's value."""
        for source in sources:
            self.flow.extend((position, source))

    def overwrites(self, position: int, writers: Iterable[int], readers: Iterable[int]) -> None:
        """Let the instruction at ``position`` come after the instructions that wrote or read the register that it
        writes.
        """
        for writer in writers:
            self.output.extend((position, writer))
        for reader in readers:
            self.anti.extend((position, reader))


def ascending(numbers: Array) -> Array:
    """Return the distinct ones of some numbers in ascending order; of a few that takes np.unique ten times as long.

    The first np.unique of a process also imports masked arrays.
    """
    found = np.sort(numbers, axis=None)
    is_new = np.ones(found.size, np.bool_)
    is_new[1:] = found[1:] != found[:-1]
    return found[is_new]
