"""Estimates the time of Pallas kernels without a TPU, by the compiler's static profile and the HBM's bandwidth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nkitools.pallas.around_calls import Around
from nkitools.pallas.calls import Call, Operand, compiling_for, points
from nkitools.pallas.chips import CHIPS, MIB, Chip, chosen, known_names
from nkitools.pallas.compiler import Crashed, why_not
from nkitools.pallas.counted_time import (
    CLOCKS,
    UNKNOWN,
    Band,
    band_of,
    law_of,
    microseconds_around,
    parts_of,
    profiled_band,
    time_of,
    tpu_info,
)
from nkitools.pallas.counted_work import Work
from nkitools.pallas.imports import jax_module, of_arrays, refuse, without_jax_warnings
from nkitools.pallas.jax_types import Argument, ClosedJaxpr
from nkitools.pallas.kernel_integers import work_of
from nkitools.pallas.launch import name_of
from nkitools.pallas.lowering import Program, lower
from nkitools.pallas.measuring import profiler
from nkitools.pallas.performance import PEAKS
from nkitools.pallas.static import bit_width_in_memory
from nkitools.pallas.whole_function import WholeFunction, calls_to_compile
from nkitools.record.time_estimate import OfKernel
from nkitools.rules.shown_text import preformatted

# The compiler profiles a grid point by point: 512 points of a small product take 9 s, 64 of a large one 15 s.
_MOST_STEPS = 32

_SHOWN = ("MXU", "VALU", "VLOAD", "VSTORE")  # the units that a printed estimate has


@dataclass(frozen=True, kw_only=True)
class KernelEstimate(OfKernel):
    """The estimated time of one Pallas call on one chip."""

    derived = ("latency_us", "lower_us", "upper_us", "bound")

    steps: int
    """Points of the grid."""
    profiled_steps: int
    """Points of the grid that the compiler profiled; the others are taken to need as many cycles."""
    cycles: float | None
    """Cycles of the whole grid; None without a profile."""
    compute_us: float | None
    """The time of these cycles, in microseconds."""
    hbm_bytes: int
    """Bytes between HBM and vector memory: of the blocks, and of each array without blocks once."""
    memory_us: float
    """The time of these bytes at the peak bandwidth of the HBM, in microseconds."""
    units: Mapping[str, float] = field(default_factory=dict)
    """The share of its slots that each unit (``MXU``, ``VALU``, ``VLOAD``, ``VSTORE``, ...) fills in the kernel's
    instruction bundles, each bundle counted once."""
    spills: int | None = None
    """Bundles that spill a register to vector memory."""
    vmem_bytes: int | None = None
    """The most vector memory that the compiler gives the kernel, spilled registers included."""
    spilled_bytes: int | None = None
    """The part of that memory for spilled registers."""
    left_out: str = ""
    """Why there is no estimate."""
    by: str = "compiler"
    """``compiler``: its profile; ``counts``: the kernel's operations, counted."""
    overhead_us: float = 0.0
    """The start of the call, and of each point of the grid; by counts alone."""
    band: Band = UNKNOWN
    """How many measured kernels lie between which shares of their estimates."""

    @property
    def latency_us(self) -> float | None:
        """Return the estimated microseconds: the greater of ``compute_us`` and ``memory_us``, and ``overhead_us``.

        None if there is no estimate; ``left_out`` says why.
        """
        return None if self.compute_us is None else max(self.compute_us, self.memory_us) + self.overhead_us

    @property
    def lower_us(self) -> float | None:
        """Return the lower end of the band, in microseconds; None without an estimate."""
        return None if self.latency_us is None else self.latency_us * self.band.lower

    @property
    def upper_us(self) -> float | None:
        """Return the upper end of the band, in microseconds; None without an estimate."""
        return None if self.latency_us is None else self.latency_us * self.band.upper

    @property
    def bound(self) -> str:
        """Return ``compute`` if ``compute_us`` is at least ``memory_us``, else ``memory``; '' without an estimate."""
        if self.compute_us is None:
            return ""
        return "compute" if self.compute_us >= self.memory_us else "memory"

    def __str__(self) -> str:
        if self.latency_us is None:
            return f"{self.kernel} on {self.chip}: no estimate, {self.left_out}"
        part = 0 < self.profiled_steps < self.steps
        scaled = f", {self.profiled_steps} of {self.steps} grid points profiled" * part
        started = f", starts {self.overhead_us:.4g} us" * (self.overhead_us > 0)
        return (
            f"{self.kernel} on {self.chip}: about {self.latency_us:.4g} us, {self.lower_us:.4g} to {self.upper_us:.4g} "
            f"({self.band.said}), bound by {self.bound} (compute {self.compute_us:.4g} us, "
            f"memory {self.memory_us:.4g} us{started}{scaled}){self._units()}"
        )

    def _units(self) -> str:
        """Return a clause on the units and the vector memory that the kernel uses."""
        shown = [f"{unit} {self.units[unit]:.0%}" for unit in _SHOWN if unit in self.units]
        text = f"; of their slots: {', '.join(shown)}" if shown else ""
        if self.vmem_bytes is None:
            return text
        spilled = f", {self.spilled_bytes / 1024:.4g} KiB of it spilled" if self.spilled_bytes else ""
        return f"{text}; {self.vmem_bytes / MIB:.4g} MiB of vector memory{spilled}"


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The estimated times of a function's Pallas calls: in ``kernels`` each different call once for each chip."""

    function: str
    kernels: tuple[KernelEstimate, ...]
    around_us: Mapping[str, float] = field(default_factory=dict)
    """By chip, the microseconds of the arrays that JAX makes for the calls or of their results; by counts alone."""

    def latency_us(self, chip: str) -> float | None:
        """Return the sum of the estimated microseconds of the different calls on ``chip``.

        A call that is made twice counts once. None if no call was estimated for ``chip``, or if one has no estimate.
        """
        times = [each.latency_us for each in self.kernels if each.chip == chip]
        known = [time for time in times if time is not None]
        return sum(known) if times and len(known) == len(times) else None

    def __str__(self) -> str:
        around = [f"around the calls on {chip}: about {us:.4g} us" for chip, us in self.around_us.items() if us]
        return "\n".join([*map(str, self.kernels), *around])

    def _repr_html_(self) -> str:
        """Return the text for a notebook that shows the last value of a cell."""
        return preformatted(str(self))


def estimate(
    fn: Callable[..., Any],
    /,
    *args: Argument,
    chips: str | Sequence[str] = ("v5e",),
    timeout: float | None = None,
    by: str = "compiler",
    **kwargs: Argument,
) -> Estimate:
    """Return the estimated time of the Pallas calls of ``fn(*args, **kwargs)`` on each of ``chips``, without a TPU.

    ``args`` may be ``jax.ShapeDtypeStruct``: nothing is run. ``chips``: names, in a sequence or a text with commas.
    ``by`` says where the time of a call comes from:

    - ``"compiler"``: the greater of two: the cycles of the static profile of the TPU compiler (in libtpu), and the
      bytes that the block specs move at the peak bandwidth of the HBM. For a grid with more than 32 points at most 32
      are profiled. An array that the kernel itself copies counts once. There is no profile for v4. A call that the
      compiler refuses or does not profile within ``timeout`` seconds (None: 120) has no time (``left_out`` says why).
    - ``"counts"``: the kernel's matrix products, vector operations, moved bytes and grid points, counted with the
      integers of its grid, its prefetched scalars and its loops, at rates fitted to measured kernels. It needs no
      libtpu and takes seconds. Scalars that decide how far a grid goes must be arrays with values. ``around_us`` of the
      result has the time of the arrays that JAX makes around the calls; the compiler's way leaves it out.

    Each different call counts once, however often the function makes it. The estimate ranks variants of a kernel.
    ``lower_us`` to ``upper_us`` of a call is the band in which eight of ten measured kernels lie; ``band.said`` says
    which kernels, or that none was measured.

    Exceptions of ``fn`` pass through; ``ValueError`` for an unknown chip or ``by``, and for ``timeout`` with
    ``by="counts"``; ``NotModelled`` (NK607) without JAX, and for ``by="compiler"`` without libtpu.
    """
    __tracebackhide__ = True
    jax_module()  # or the word that it is not installed
    known_names("by", by, ("compiler", "counts"))
    if by == "counts":
        if timeout is not None:
            raise ValueError(f'timeout={timeout!r}: by="counts" compiles nothing that it could limit; leave it out')
        return _counted(fn, args, kwargs, chosen(chips))
    _must_have_compiler()
    calls = {}
    for chip in chosen(chips):
        with without_jax_warnings(), compiling_for(chip):
            calls[chip.name] = calls_to_compile(_traced(fn, args, kwargs)[0])
    return estimate_of(name_of(fn), calls, 120.0 if timeout is None else timeout)


def _counted(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], chips: Iterable[Chip]) -> Estimate:
    """Return the estimate by counted operations."""
    kernels, around_us = [], {}
    for chip in chips:
        with without_jax_warnings(), compiling_for(chip):
            traced, arrays = _traced(fn, args, kwargs)
            around = Around(traced, arrays)
            for call in calls_to_compile(traced):
                kernels.append(_by_counts(call, chip, work_of(call, around.scalars)))
            around_us[chip.name] = microseconds_around(around.moved, chip) * law_of(chip)["around"]
    return Estimate(function=name_of(fn), kernels=tuple(kernels), around_us=around_us)


def _by_counts(call: Call, chip: Chip, work: Work) -> KernelEstimate:
    time = time_of(parts_of(work, call, chip), law_of(chip))
    return KernelEstimate(
        kernel=call.name,
        chip=chip.name,
        by="counts",
        steps=round(work.steps),
        profiled_steps=0,
        cycles=None,
        hbm_bytes=round(work.moved),
        compute_us=time.compute_us,
        memory_us=time.memory_us,
        overhead_us=time.overhead_us,
        band=band_of(work, chip),
    )


def _must_have_compiler() -> None:
    reason = why_not()
    if reason:
        remedy = 'Install it to have an estimate, or ask nkitools.pallas.estimate for one by="counts".'
        refuse(f"the time of a kernel is estimated by the TPU compiler: {reason}", remedy)


def estimate_of(function: str, calls: Mapping[str, Iterable[Call]], timeout: float) -> Estimate:
    """Return the estimate of Pallas calls that were traced for the chips of those names; NK607 without libtpu."""
    _must_have_compiler()
    with without_jax_warnings():
        found = tuple(estimated(call, CHIPS[chip], timeout) for chip, those in calls.items() for call in those)
    return Estimate(function=function, kernels=found)


def nothing_to_estimate() -> Estimate:
    """Raise ValueError: the check has traced no Pallas call, so that no time can be estimated."""
    raise ValueError("no Pallas call of the check was traced, so there is nothing to estimate")


def _traced(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[ClosedJaxpr, Sequence[Any]]:
    """Return the jaxpr of a call, and the arrays and descriptions that are traced; other arguments are as given."""
    function, arrays = of_arrays(fn, args, kwargs, lambda leaf: hasattr(leaf, "shape") and hasattr(leaf, "dtype"))
    traced: ClosedJaxpr = jax_module().make_jaxpr(function)(*arrays)
    return traced, arrays


def estimated(call: Call, chip: Chip, timeout: float) -> KernelEstimate:
    """Return the estimated time of one Pallas call on ``chip``."""
    steps, moved = points(call), traffic(call)
    known: dict[str, Any] = {
        "kernel": call.name,
        "chip": chip.name,
        "steps": steps,
        "hbm_bytes": moved,
        "memory_us": moved / tpu_info(chip).mem_bw_bytes_per_second / PEAKS[chip.name].cores_of_device * 1e6,
    }
    few = shrunk(call)
    program = lower(few, chip)
    try:
        if chip.name not in CLOCKS:
            raise Crashed(f"the compiler has no profile for {chip.name}")
        if not isinstance(program, Program):
            raise Crashed(program.message)
        profile = profiler().profile(program, chip, timeout)
    except Crashed as crash:
        return KernelEstimate(**known, profiled_steps=0, cycles=None, compute_us=None, left_out=str(crash))
    cycles = profile.cycles * steps / points(few)
    bundles, memory = profile.bundles, profile.vmem
    return KernelEstimate(
        **known,
        profiled_steps=points(few),
        cycles=cycles,
        compute_us=cycles / CLOCKS[chip.name] * 1e6,
        band=profiled_band(chip, call),
        units=bundles.units if bundles is not None else {},
        spills=None if bundles is None else bundles.spilling,
        vmem_bytes=None if memory is None else memory.total,
        spilled_bytes=None if memory is None else memory.spilled,
    )


def shrunk(call: Call) -> Call:
    """Return the call over the last points of its grid's inner dimensions, as many as are profiled in a short time."""
    if points(call) <= _MOST_STEPS or None in call.grid:
        return call
    grid = _fewer([int(size or 1) for size in call.grid])
    mapping = replace(call.params["grid_mapping"], grid=grid)
    return replace(call, grid=grid, params={**call.params, "grid_mapping": mapping})


def _fewer(sizes: Iterable[int]) -> tuple[int, ...]:
    """Return sizes of at most so many points, the inner ones whole as long as they fit."""
    left, grid = _MOST_STEPS, []
    for size in reversed(list(sizes)):
        grid.append(min(size, left))
        left //= grid[-1]
    return tuple(reversed(grid))


_MOST_POINTS = 1 << 20  # beyond so many, index maps are not gone through


def traffic(call: Call) -> int:
    """Return the bytes of all blocks that are loaded and stored; arrays that the kernel copies itself count once."""
    if isinstance(call, WholeFunction) and call.traced is not None:
        jaxpr = call.traced.jaxpr
        arrays = [var.aval for var in (*jaxpr.constvars, *jaxpr.invars, *jaxpr.outvars)]
        return sum(math.prod(each.shape) * bit_width_in_memory(each.dtype) // 8 for each in arrays)
    return sum(_bytes(call, operand) for operand in call.operands if operand.memory != "smem")


def _bytes(call: Call, operand: Operand) -> int:
    bits = bit_width_in_memory(operand.dtype)
    if operand.memory in ("any", "hbm"):
        return math.prod(operand.shape) * bits // 8
    return math.prod(operand.block_sizes) * bits // 8 * _visits(call, operand)


def _visits(call: Call, operand: Operand) -> int:
    """Return the number of times that the block changes along the grid; an unchanged block is not moved again.

    If the index map reads prefetched scalars, each point counts as another block.
    """
    steps = points(call)
    index_map = operand.mapping.index_map_jaxpr
    if not call.grid or steps == 1:
        return 1
    if call.prefetched or steps > _MOST_POINTS or None in call.grid:
        return steps
    where: Any = np.stack(np.unravel_index(np.arange(steps), [int(size or 1) for size in call.grid])).astype(np.int32)
    jax = jax_module()
    eval_jaxpr = jax_module("jax.core").eval_jaxpr
    blocks = jax.vmap(lambda *point: eval_jaxpr(index_map.jaxpr, index_map.consts, *point))(*where)
    table = np.stack([np.broadcast_to(np.asarray(each), steps) for each in blocks])
    return 1 + int((np.diff(table, axis=1) != 0).any(axis=0).sum())
