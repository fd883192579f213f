"""Direct allocation: where the author places each tile of a tensor in SBUF or PSUM (``nki.compiler.sbuf``, ``psum``).

A tensor with block dimensions has a logical tile for each block index; the author's function gives it a physical place.
Logical tiles may share a place, so that buffers rotate: a tile is valid until another tile with its bytes is written
(NK204).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

from nkitools.chip.core import current_core
from nkitools.chip.memory import MemoryRegion
from nkitools.dialects.legacy.indexing.indices import whole
from nkitools.dialects.legacy.kernels.traced_loops import traced_address
from nkitools.facts.generations import Generation
from nkitools.rules.finding import refuse, report

# func(block index, partitions, bytes per partition) -> (start_partition, byte_addr), in PSUM with the bank in front.
Place = Callable[[tuple[int, ...], int, int], Any]

_FORMS = {MemoryRegion.sbuf: "(start_partition, byte_addr)", MemoryRegion.psum: "(bank_id, start_partition, byte_addr)"}


@dataclass(frozen=True)
class Allocation:
    """The result of ``alloc`` and ``mod_alloc``, for ``buffer=`` of a creation function."""

    memory: MemoryRegion
    place: Place
    name: str

    def address(self, what: str, block: tuple[int, ...], shape: tuple[int, ...], itemsize: int) -> tuple[int, int]:
        """(partition, byte offset) of the tile of ``shape`` at a block index. Errors: NK106, NK108, NK402, NK614."""
        core = current_core(what)
        free_bytes = math.prod(shape[1:]) * itemsize

        def decide() -> tuple[int, int]:
            numbers = self._numbers(_called(self.place, block, shape[0], free_bytes))
            if self.memory is MemoryRegion.psum:
                return _in_psum(core.generation, what, numbers, free_bytes)
            return _in_sbuf(core.generation, what, numbers, shape[0], free_bytes)

        return traced_address(core.record.site(), decide)

    def _numbers(self, found: Any) -> list[int]:
        form = _FORMS[self.memory]
        numbers = [whole(each) for each in found] if isinstance(found, (tuple, list)) else []
        if len(numbers) != form.count(",") + 1 or None in numbers:
            message = f"the function of nki.compiler.{self.memory.value}.alloc must return {form}, it returns {found!r}"
            refuse("NK614", message, remedy=f"Return integers: {form}.")
        return [number for number in numbers if number is not None]


def _called(place: Place, block: tuple[int, ...], partitions: int, free_bytes: int) -> Any:
    """Call the author's function and return its place; by keywords if it is a partial, as in public kernels."""
    if isinstance(place, partial):
        return place(idx=block, pdim_size=partitions, fdim_size=free_bytes)
    return place(block, partitions, free_bytes)


def _in_sbuf(chip: Generation, what: str, numbers: list[int], partitions: int, free_bytes: int) -> tuple[int, int]:
    start, byte = numbers
    starts = (0,) if partitions > 64 else (0, 64) if partitions > 32 else (0, 32, 64, 96)
    if start not in starts:
        allowed = ", ".join(map(str, starts))
        report(
            "NK108",
            f"{what}: a tile of {partitions} partitions is allocated at start_partition {start}; it may start at "
            f"{allowed}",
        )
    # Where it ends the physical partition alone says (NK402): AWS's allocated attention reaches into the last 16 KiB.
    usable = chip.sbuf_usable_bytes
    if not 0 <= byte < usable:
        report(
            "NK402",
            f"{what}: a tile is allocated at byte_addr {byte}; it must begin within the {usable} bytes of a partition "
            f"that the compiler leaves to kernels (of {chip.sbuf_partition_bytes})",
            remedy="Let base_addr begin lower, allocate fewer physical tiles (num_free_tiles), or smaller ones.",
        )
    return start, byte


def _in_psum(chip: Generation, what: str, numbers: list[int], free_bytes: int) -> tuple[int, int]:
    bank, start, byte = numbers
    if start or byte:
        message = (
            f"{what}: a PSUM tile is allocated at start_partition {start} and byte_addr {byte} of its bank; both must "
            "be 0"
        )
        report("NK614", message, remedy="Return (bank_id, 0, 0): one physical tile lives in a PSUM bank.")
    if not 0 <= bank < chip.psum_banks:
        message = f"{what}: a tile is allocated in PSUM bank {bank}; a NeuronCore has banks 0..{chip.psum_banks - 1}"
        remedy = "Let base_bank be lower, or let fewer tiles have a bank of their own (num_bank_tiles)."
        refuse("NK402", message, remedy=remedy)
    if free_bytes > chip.psum_bank_bytes:
        report(
            "NK106",
            f"{what}: a PSUM tile of {free_bytes} bytes per partition is allocated; a bank has {chip.psum_bank_bytes}, "
            "and a tile cannot cross banks",
        )
    return start, bank * chip.psum_bank_bytes + byte


def modulo(base: int, tiles: tuple[int, ...], block: tuple[int, ...], step: int) -> int:
    """Return the position of a logical tile along an axis: its row-major index modulo the physical tiles, in steps."""
    position = 0
    for index, count in zip(block, tiles or (1,) * len(block), strict=True):
        position = position * count + index % count
    return base + position * step


def _checked_tiles(what: str, role: str, tiles: int | Sequence[int]) -> tuple[int, ...]:
    numbers = [whole(each) for each in tiles] if isinstance(tiles, (tuple, list)) else [None]
    found = tuple(number for number in numbers if number is not None and number > 0)
    if len(found) != len(numbers):
        refuse("NK609", f"{what}: `{role}` must be a tuple of numbers of physical tiles, it is {tiles!r}")
    return found


def _checked_base(what: str, role: str, base: int) -> int:
    number = whole(base)
    if number is None:
        refuse("NK609", f"{what}: `{role}` must be an integer, it is {base!r}")
    return number


def _fitted(what: str, role: str, tiles: tuple[int, ...], block: tuple[int, ...]) -> tuple[int, ...]:
    """``tiles`` for a block index: as long as that, or empty; without block dimensions there is nothing to say.

    "The length of the tuple must be empty or equal to the length of block dimension"; AWS's own attention tutorial
    passes (1,) for tensors without block dimensions.
    """
    if tiles and block and len(tiles) != len(block):
        refuse(
            "NK614",
            f"{what}: `{role}` is {tiles!r} for a tensor with {len(block)} block dimensions; its length must be theirs",
            remedy=f"Pass {len(block)} numbers: how many physical tiles there are for each block dimension.",
        )
    return tiles if block else ()


class Allocator:
    """``nki.compiler.sbuf`` and ``nki.compiler.psum``, for ``buffer=`` of a creation function."""

    def __init__(self, memory: MemoryRegion) -> None:
        self.memory = memory
        self.name = f"nki.compiler.{memory.value}"

    def __repr__(self) -> str:
        return self.name

    def auto_alloc(self) -> MemoryRegion:
        """Return the memory itself: the compiler chooses addresses."""
        return self.memory

    def alloc(self, func: Callable[..., Any]) -> Allocation:
        """Place each logical tile at the result of ``func(idx, pdim_size, fdim_size)``.

        ``idx``: the block index, a tuple; ``pdim_size``: partitions of a tile; ``fdim_size``: bytes of a partition.
        It returns (start_partition, byte_addr), for PSUM (bank_id, start_partition, byte_addr). Errors: NK609.
        """
        if not callable(func):
            refuse("NK609", f"{self.name}.alloc takes a function, it is given {type(func).__name__}")
        return Allocation(self.memory, func, f"{self.name}.alloc")


class SbufAllocator(Allocator):
    """``nki.compiler.sbuf``."""

    def mod_alloc(
        self,
        *,
        base_addr: int,
        base_partition: int = 0,
        num_par_tiles: int | Sequence[int] = (),
        num_free_tiles: int | Sequence[int] = (),
    ) -> Allocation:
        """Place the logical tile of block index i at physical tile i modulo their number.

        The physical tiles begin at byte ``base_addr`` of partition ``base_partition``; ``num_par_tiles`` of them lie
        along the partitions, ``num_free_tiles`` along the bytes, a number for each block dimension. Errors: NK609,
        NK614.
        """
        what = f"{self.name}.mod_alloc"
        byte = _checked_base(what, "base_addr", base_addr)
        start = _checked_base(what, "base_partition", base_partition)
        rows = _checked_tiles(what, "num_par_tiles", num_par_tiles)
        columns = _checked_tiles(what, "num_free_tiles", num_free_tiles)

        def place(block: tuple[int, ...], partitions: int, free_bytes: int) -> tuple[int, int]:
            return (
                modulo(start, _fitted(what, "num_par_tiles", rows, block), block, partitions),
                modulo(byte, _fitted(what, "num_free_tiles", columns, block), block, free_bytes),
            )

        return Allocation(self.memory, place, what)


class PsumAllocator(Allocator):
    """``nki.compiler.psum``."""

    def mod_alloc(
        self,
        *,
        base_bank: int,
        base_addr: int = 0,
        base_partition: int = 0,
        num_bank_tiles: int | Sequence[int] = (),
        num_par_tiles: int | Sequence[int] = (),
        num_free_tiles: int | Sequence[int] = (),
    ) -> Allocation:
        """Place the logical tile of block index i in bank ``base_bank`` + i modulo ``num_bank_tiles``.

        ``base_addr`` and ``base_partition`` must be 0, ``num_par_tiles`` and ``num_free_tiles`` empty or of ones.
        Errors: NK609, NK614.
        """
        what = f"{self.name}.mod_alloc"
        bank = _checked_base(what, "base_bank", base_bank)
        for role, value in (("base_addr", base_addr), ("base_partition", base_partition)):
            if _checked_base(what, role, value) != 0:
                _only_one_tile(what, role, value, "0")
        banks = _checked_tiles(what, "num_bank_tiles", num_bank_tiles)
        for role, tiles in (("num_par_tiles", num_par_tiles), ("num_free_tiles", num_free_tiles)):
            if set(_checked_tiles(what, role, tiles)) - {1}:
                _only_one_tile(what, role, tiles, "empty or of ones")

        def place(block: tuple[int, ...], partitions: int, free_bytes: int) -> tuple[int, int, int]:
            return modulo(bank, _fitted(what, "num_bank_tiles", banks, block), block, 1), 0, 0

        return Allocation(self.memory, place, what)


def _only_one_tile(what: str, role: str, value: int | Sequence[int], allowed: str) -> NoReturn:
    message = f"{what}: `{role}` must be {allowed}, it is {value!r}; one physical tile lives in a PSUM bank"
    refuse("NK614", message, remedy="Spread tiles over banks with base_bank and num_bank_tiles.")


psum = PsumAllocator(MemoryRegion.psum)
sbuf = SbufAllocator(MemoryRegion.sbuf)
