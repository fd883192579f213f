"""Program ids, ranges, prints and the chip's tile sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nkitools.chip.core import CORE, current_core
from nkitools.chip.generations import Generation, generation_of, resolve_chip
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.views import MEMORY_NAMES
from nkitools.record.loops import counters
from nkitools.record.prints import Print
from nkitools.record.sites import author_frame
from nkitools.rules.finding import refuse


def program_id(axis: int = 0) -> int:
    """Index of this program along ``axis`` of the launch grid; 0 where there is no grid. Errors: NK609, NK611."""
    core = current_core("nl.program_id")
    return core.program[_axis(core.program, axis)] if core.program else 0


def num_programs(axes: Any = 0) -> int:
    """Number of programs along ``axes`` of the launch grid (None: in all of it); 1 where there is no grid."""
    core = current_core("nl.num_programs")
    if not core.grid:
        return 1
    if axes is None:
        axes = range(len(core.grid))
    chosen = axes if isinstance(axes, (tuple, list, range)) else (axes,)
    return int(np.prod([core.grid[_axis(core.grid, axis)] for axis in chosen]))


def program_ndim() -> int:
    """Number of dimensions of the launch grid; 0 without a grid."""
    return len(current_core("nl.program_ndim").grid)


def _axis(sizes: tuple[int, ...], axis: Any) -> int:
    if not isinstance(axis, int) or not 0 <= axis < len(sizes):
        refuse("NK609", f"axis {axis!r} does not exist in a launch grid of {len(sizes)} dimensions")
    return axis


class LoopRange:
    """A range of integers that tells the record which iteration is running."""

    def __init__(self, kind: str, start: int, stop: int | None = None, step: int = 1) -> None:
        try:
            self.range = range(start) if stop is None else range(start, stop, step)
        except (TypeError, ValueError) as error:
            refuse("NK609", f"nl.{kind}({start!r}, {stop!r}, {step!r}): {error}")

    def __len__(self) -> int:
        return len(self.range)

    def __getitem__(self, index: int) -> int:
        return self.range[index]

    def __iter__(self) -> Iterator[int]:
        core = CORE.get()
        if core is None:
            yield from self.range
            return
        record = core.record
        parent, site = record.loop, record.site()
        try:
            for value in self.range:
                record.loop = record.enter_iteration(parent, site, value)
                yield value
        finally:
            record.loop = parent


def affine_range(start: int, stop: int | None = None, step: int = 1) -> LoopRange:
    """A range of integers; in the modern dialect the same as ``range``."""
    return LoopRange("affine_range", start, stop, step)


def sequential_range(start: int, stop: int | None = None, step: int = 1) -> LoopRange:
    """A range of integers; in the modern dialect the same as ``range``."""
    return LoopRange("sequential_range", start, stop, step)


def static_range(start: int, stop: int | None = None, step: int = 1) -> LoopRange:
    """A range of integers; in the modern dialect the same as ``range``."""
    return LoopRange("static_range", start, stop, step)


def print_tensor(prefix: Any, tensor: NkiTensor) -> None:
    """Record a device print of a tensor: its values as they are now, its place, and the loop counters around it."""
    core = current_core("nl.device_print")
    if not isinstance(prefix, str):
        refuse("NK609", f"nl.device_print: the prefix must be a string, it is {type(prefix).__name__}")
    frame = author_frame(2)
    site = core.record.sites[core.record.site()]
    core.record.add_print(
        Print(
            prefix=prefix,
            value=np.array(tensor.read()),
            shape=tensor.shape,
            dtype=tensor.dtype.name,
            program=core.program,
            loops=counters(frame),
            file=site.file,
            line=site.line,
            memory=MEMORY_NAMES[tensor.buffer],
        )
    )


def device_print(print_prefix: str, tensor: NkiTensor) -> None:
    """Print a tensor of any memory: it becomes a record of the run. Errors: NK609, NK611."""
    if not isinstance(tensor, NkiTensor):
        refuse("NK609", f"nl.device_print: tensor must be a tensor, it is {type(tensor).__name__}")
    print_tensor(print_prefix, tensor)


def current_generation() -> Generation:
    """The running core's chip; outside a kernel the one that a launch would take."""
    core = CORE.get()
    return core.generation if core is not None else generation_of(resolve_chip())


class TileSize:
    """``nl.tile_size``: the sizes of the chip that runs (bytes where the name says so, else float32 elements)."""

    pmax = property(lambda self: current_generation().partitions, doc="Partitions of a tile at most.")
    psum_bank_fmax = property(lambda self: current_generation().psum_bank_bytes // 4, doc="Elements of a PSUM bank.")
    psum_fmax = property(lambda self: self.psum_bank_fmax, doc="The same (deprecated name).")
    psum_bank_fmax_bytes = property(lambda self: current_generation().psum_bank_bytes, doc="Bytes of a PSUM bank.")
    gemm_stationary_fmax = property(lambda self: current_generation().stationary_fmax, doc="Stationary free size.")
    gemm_moving_fmax = property(lambda self: current_generation().moving_fmax_float32, doc="Moving free size.")
    bn_stats_fmax = property(lambda self: current_generation().bn_stats_fmax, doc="Free size of bn_stats.")
    psum_min_align = property(lambda self: 4, doc="Byte alignment of PSUM addresses.")
    sbuf_min_align = property(lambda self: 1, doc="Byte alignment of SBUF addresses.")
    psum_num_banks = property(lambda self: current_generation().psum_banks, doc="PSUM banks of a partition.")
    sbuf_size_bytes = property(
        lambda self: current_generation().partitions * current_generation().sbuf_partition_bytes, doc="All of SBUF."
    )
    sbuf_fmax_bytes = property(lambda self: current_generation().sbuf_usable_bytes, doc="Usable bytes of a partition.")
    sbuf_fmax = property(lambda self: self.sbuf_fmax_bytes // 4, doc="Usable elements of a partition.")
    total_available_sbuf_size = property(lambda self: self.sbuf_fmax_bytes, doc="The same in bytes (deprecated name).")


tile_size = TileSize()
