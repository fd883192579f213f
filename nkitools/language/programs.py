"""Program ids, ranges, prints and the chip's tile sizes."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from typing import NoReturn, SupportsIndex, overload

import numpy as np

from nkitools.chip.argument_types import Axes
from nkitools.chip.chosen_chip import resolve_chip
from nkitools.chip.core import CORE, current_core
from nkitools.chip.numerics import Array
from nkitools.chip.runtime_views import COMPUTED, OutOfBounds
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import MEMORY_NAMES
from nkitools.facts import options
from nkitools.facts.generations import Generation, generation_of
from nkitools.record.loop_counters import counters
from nkitools.record.source_sites import author_frame
from nkitools.rules.finding import not_modelled, refuse


def program_id(axis: int = 0) -> int:
    """Return the index of this program along ``axis`` of the launch grid; without a grid 0 for every axis.

    NK609 for a negative axis, and for one that a grid does not have. Errors: NK609, NK611. Source:
    nki.language.program_id (NKI 0.6).
    """
    core = current_core("nl.program_id")
    core.record.asks_for_program, program = True, core.program
    position = _axis("nl.program_id", program, axis)
    return program[position] if program else 0


def num_programs(axes: Axes | None = 0) -> int:
    """Return the number of programs along ``axes`` of the launch grid; without a grid 1.

    ``axes``: an int, ints (the product of their sizes, each axis once), or None for the whole grid.
    Errors: NK609, NK611. Source: nki.language.num_programs (NKI 0.6).
    """
    core = current_core("nl.num_programs")
    core.record.asks_for_count, grid = True, core.grid
    if axes is None:
        return math.prod(grid)
    chosen = axes if isinstance(axes, (tuple, list, range)) else (axes,)
    positions = {_axis("nl.num_programs", grid, axis) for axis in chosen}
    return math.prod(grid[position] for position in positions) if grid else 1


def program_ndim() -> int:
    """Return the number of dimensions of the launch grid; 0 without a grid.

    Errors: NK609, NK611. Source: nki.language.program_ndim (NKI 0.6).
    """
    return len(current_core("nl.program_ndim").grid)


def _axis(what: str, sizes: tuple[int, ...], axis: int) -> int:
    whole = isinstance(axis, (int, np.integer)) and not isinstance(axis, bool)
    if not whole or axis < 0 or (sizes and axis >= len(sizes)):
        refuse("NK609", f"{what}: axis {axis!r} does not exist in a launch grid of {len(sizes)} dimensions")
    return int(axis)


class LoopRange(Sequence[int]):
    """A range of integers that enters each iteration into the record; otherwise like Python's ``range``."""

    def __init__(self, kind: str, numbers: range) -> None:
        self.kind = kind
        self.range = numbers

    @classmethod
    def of(cls, kind: str, start: int, stop: int | None, step: int) -> LoopRange:
        """Return the range that ``nl.<kind>(start, stop, step)`` asks for. Errors: NK609."""
        try:
            return cls(kind, range(0, start, step) if stop is None else range(start, stop, step))
        except (TypeError, ValueError) as error:
            remedy = "Write nl.tile_size.pmax, the partitions of a tile." if isinstance(start, TileSize) else ""
            refuse("NK609", f"nl.{kind}({start!r}, {stop!r}, {step!r}): {error}", remedy=remedy)

    @property
    def start(self) -> int:
        """The first number."""
        return self.range.start

    @property
    def stop(self) -> int:
        """The bound, which is not among the numbers."""
        return self.range.stop

    @property
    def step(self) -> int:
        """From one number to the next."""
        return self.range.step

    def __repr__(self) -> str:
        return repr(self.range).replace("range", f"nl.{self.kind}", 1)

    def __eq__(self, other: object) -> bool:
        return self.range == (other.range if isinstance(other, LoopRange) else other)

    def __hash__(self) -> int:
        return hash(self.range)

    def __len__(self) -> int:
        return len(self.range)

    def __contains__(self, value: object) -> bool:
        return value in self.range

    @overload
    def __getitem__(self, index: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> LoopRange: ...
    def __getitem__(self, index: SupportsIndex | slice) -> int | LoopRange:
        found = self.range[index]
        return LoopRange(self.kind, found) if isinstance(found, range) else found

    def __reversed__(self) -> Iterator[int]:
        return iter(self[::-1])

    def __iter__(self) -> Iterator[int]:
        core = CORE.get()
        return iter(self.range) if core is None else core.record.iterations(self.range, self.kind)


def affine_range(start: int, stop: int | None = None, step: int = 1) -> LoopRange:
    """Return a sequence of integers, the same as Python's ``range`` has for these arguments.

    NKI 0.7 deprecates it (NK618, a hint). Errors: NK609 for other arguments than integers, and for a step of 0.
    """
    return LoopRange.of("affine_range", start, stop, step)


def sequential_range(start: int, stop: int | None = None, step: int = 1) -> LoopRange:
    """Return a sequence of integers, the same as Python's ``range`` has for these arguments.

    NKI 0.7 deprecates it (NK618, a hint). Errors: NK609 for other arguments than integers, and for a step of 0.
    """
    return LoopRange.of("sequential_range", start, stop, step)


def static_range(start: int, stop: int | None = None, step: int = 1) -> LoopRange:
    """Return a sequence of integers, the same as Python's ``range`` has for these arguments.

    NKI 0.7 deprecates it (NK618, a hint). Errors: NK609 for other arguments than integers, and for a step of 0.
    """
    return LoopRange.of("static_range", start, stop, step)


def print_tensor(prefix: str, tensor: NkiTensor) -> None:
    """Record a device print of a tensor: its values as they are now, its place, and the loop counters around it.

    Elements that were never written show as what AWS's simulator leaves there: NaN, or 4 in integers. In full precision
    the values are those that it keeps, in float32.
    """
    value, unwritten = printed_values(tensor)
    print_values(prefix, tensor, value, unwritten)


def print_values(
    prefix: str, tensor: NkiTensor, value: Array, unwritten: Array | None, mask: Array | None = None
) -> None:
    """Record a device print of these values without the elements in ``mask``, as those of a tensor."""
    from nkitools.record.prints.device_print import Print  # for kernels that print

    core = current_core("nl.device_print")
    if not isinstance(prefix, str):
        refuse("NK609", f"nl.device_print: the prefix must be a string, it is {type(prefix).__name__}")
    site = core.record.sites[core.record.site()]
    one = Print(
        prefix=prefix,
        value=value,
        shape=value.shape,
        dtype=tensor.dtype.name,
        program=core.program,
        loops=counters(author_frame(2)),
        file=site.file,
        line=site.line,
        memory=MEMORY_NAMES[tensor.buffer],
        rank=core.rank,
        issued=core.record.count,
        mask=mask,
        unwritten=unwritten,
    )
    core.record.add_print(one)


def printed_values(tensor: NkiTensor) -> tuple[Array, Array | None]:
    """Return the values of a tensor for a print (if possible its own memory), and a mask of unwritten elements."""
    try:
        tensor.settle("nl.device_print")
    except OutOfBounds as error:
        refuse("NK402", f"nl.device_print: {error}", about=(tensor,), remedy=COMPUTED)
    current_core("nl.device_print").record.printed.add(tensor.storage.id)
    unwritten = tensor.unwritten()
    if unwritten is not None:
        tensor.storage.poison_unwritten()
    from nkitools.chip.full_precision_shadow import digits_of  # for kernels that print

    return digits_of(tensor), unwritten


def device_print(print_prefix: str, tensor: NkiTensor) -> None:
    """Add a print to `Run.prints`: a copy of the values that a tensor of any memory and dtype has now.

    ``print_prefix``: a string, the `Print.prefix`. Elements that were never written are marked in `Print.unwritten`.
    Of values beyond the option ``print_limit`` (64 MiB) the print keeps a summary.
    A direct call of the kernel, and nki.simulate, also write the print to stdout.
    Errors: NK402 (a tensor whose index at run time is out of bounds), NK609, NK611. Source: nki.language.device_print
    (NKI 0.6).
    """
    if not isinstance(tensor, NkiTensor):
        refuse("NK609", f"nl.device_print: tensor must be a tensor, it is {type(tensor).__name__}")
    print_tensor(print_prefix, tensor)


def current_generation() -> Generation:
    """Return the running core's chip; outside a kernel the one that a launch would take."""
    core = CORE.get()
    return core.generation if core is not None else generation_of(resolve_chip())


def _unpublished(name: str) -> NoReturn:
    message = f"nl.tile_size.{name} is documented without its value, and nkitools makes none up"
    remedy = "Use the alignment that your kernel needs; addresses that an element's size does not divide are NK207."
    not_modelled(message, remedy=remedy)


def _usable_banks(chip: Generation) -> int:
    """All of them, but for the last where AWS's compiler transposes on the Tensor Engine instead of by DMA.

    It does with "NKI_DMA_TRANSPOSE_AS_PE_TRANSPOSE=true on trn2+" (tile_size); here that changes this number only.
    """
    asked = os.environ.get("NKI_DMA_TRANSPOSE_AS_PE_TRANSPOSE", "").lower() == "true"
    return chip.psum_banks - (asked and chip.dma_transpose_as_matmul)


_ANYWHERE = "Read it inside of the kernel; pmax, the sizes of a PSUM bank and those of a matmul may be read anywhere."


class TileSize:
    """``nl.tile_size``: the sizes of the running chip (in bytes for names that end so, else in float32 elements).

    ``everywhere``: whether the sizes of SBUF and the number of PSUM banks may be read outside of kernels whatever the
    NKI version of the option. In AWS's stub those are properties, the others plain attributes.
    """

    def __init__(self, *, everywhere: bool = False) -> None:
        self._everywhere = everywhere

    def _chip(self, name: str) -> Generation:
        """NK611: return the chip for a size that nki 0.6.0 asks its running backend for ("No backend set")."""
        if CORE.get() is None and not (self._everywhere or options.language().host_sizes):
            shown = options.language().shown
            message = f"nl.tile_size.{name} is read outside of a running kernel, where NKI {shown} knows no chip"
            refuse("NK611", message, remedy=_ANYWHERE)
        return current_generation()

    def __repr__(self) -> str:
        return "nl.tile_size"

    pmax = property(lambda self: current_generation().partitions, doc="Partitions of a tile at most.")
    psum_bank_fmax = property(lambda self: current_generation().psum_bank_bytes // 4, doc="Elements of a PSUM bank.")
    psum_fmax = property(lambda self: self.psum_bank_fmax, doc="The same (deprecated name).")
    psum_bank_fmax_bytes = property(lambda self: current_generation().psum_bank_bytes, doc="Bytes of a PSUM bank.")
    gemm_stationary_fmax = property(lambda self: current_generation().stationary_fmax, doc="Stationary free size.")
    # One PSUM bank on every chip, though NeuronCore-v4 moves more: AWS's kernels for trn3 take it so (mxfp-matmul).
    gemm_moving_fmax = property(lambda self: self.psum_bank_fmax, doc="Moving free size of one PSUM bank.")
    bn_stats_fmax = property(lambda self: current_generation().bn_stats_fmax, doc="Free size of bn_stats.")
    psum_min_align = property(lambda self: _unpublished("psum_min_align"), doc="Not published by AWS: NK607.")
    sbuf_min_align = property(lambda self: _unpublished("sbuf_min_align"), doc="Not published by AWS: NK607.")

    @property
    def psum_num_banks(self) -> int:
        """Usable PSUM banks of a partition."""
        return _usable_banks(self._chip("psum_num_banks"))

    @property
    def sbuf_size_bytes(self) -> int:
        """All of SBUF."""
        chip = self._chip("sbuf_size_bytes")
        return chip.partitions * chip.sbuf_partition_bytes

    @property
    def sbuf_fmax_bytes(self) -> int:
        """Usable bytes of a partition."""
        return self._chip("sbuf_fmax_bytes").sbuf_usable_bytes

    @property
    def sbuf_fmax(self) -> int:
        """Usable elements of a partition."""
        return self._chip("sbuf_fmax").sbuf_usable_bytes // 4

    @property
    def total_available_sbuf_size(self) -> int:
        """Usable bytes of a partition (deprecated name)."""
        return self._chip("total_available_sbuf_size").sbuf_usable_bytes


tile_size = TileSize()
legacy_tile_size = TileSize(everywhere=True)
