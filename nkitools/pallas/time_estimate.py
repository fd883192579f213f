"""Estimates the time of Pallas kernels without a TPU, by the compiler's static profile and the HBM's bandwidth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nkitools.pallas.calls import Call, Operand, compiling_for, points
from nkitools.pallas.chips import CHIPS, MIB, Chip, chosen
from nkitools.pallas.compiler import Crashed, why_not
from nkitools.pallas.imports import jax_module, of_arrays, refuse, without_jax_warnings
from nkitools.pallas.jax_types import Argument, ClosedJaxpr
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

# Cycles a second: the peak of bfloat16 of a TensorCore by the multiply-adds of a cycle, four times 128 x 128 on v5,
# four times 256 x 256 later (two arrays that take two rows a cycle). There is none for v4, which has no profile.
_CLOCKS = {"v5e": 1.503e9, "v5p": 1.751e9, "v6e": 1.755e9, "tpu7x": 2.203e9}


@dataclass(frozen=True, kw_only=True)
class KernelEstimate(OfKernel):
    """The estimated time of one Pallas call on one chip."""

    derived = ("latency_us", "bound")

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
    """Why the compiler has no profile."""

    @property
    def latency_us(self) -> float | None:
        """Return the estimated microseconds: the greater of ``compute_us`` and ``memory_us``.

        None if the compiler made no profile of the kernel; ``left_out`` says why.
        """
        return None if self.compute_us is None else max(self.compute_us, self.memory_us)

    @property
    def bound(self) -> str:
        """Return ``compute`` if ``compute_us`` is at least ``memory_us``, else ``memory``; '' without a profile."""
        if self.compute_us is None:
            return ""
        return "compute" if self.compute_us >= self.memory_us else "memory"

    def __str__(self) -> str:
        if self.latency_us is None:
            return f"{self.kernel} on {self.chip}: no estimate, {self.left_out}"
        scaled = f", {self.profiled_steps} of {self.steps} grid points profiled" * (self.profiled_steps < self.steps)
        return (
            f"{self.kernel} on {self.chip}: about {self.latency_us:.4g} us, bound by {self.bound} "
            f"(compute {self.compute_us:.4g} us, memory {self.memory_us:.4g} us{scaled}){self._units()}"
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
    """The estimated times of a function's Pallas calls: each different call once for each chip."""

    function: str
    kernels: tuple[KernelEstimate, ...]

    def latency_us(self, chip: str) -> float | None:
        """Return the sum of the estimated microseconds of the different calls on ``chip``.

        A call that is made twice counts once. None if no call was estimated for ``chip``, or if one has no estimate.
        """
        times = [each.latency_us for each in self.kernels if each.chip == chip]
        known = [time for time in times if time is not None]
        return sum(known) if times and len(known) == len(times) else None

    def __str__(self) -> str:
        return "\n".join(str(each) for each in self.kernels)

    def _repr_html_(self) -> str:
        """Return the text for a notebook that shows the last value of a cell."""
        return preformatted(str(self))


def estimate(
    fn: Callable[..., Any],
    /,
    *args: Argument,
    chips: str | Sequence[str] = ("v5e",),
    timeout: float = 120.0,
    **kwargs: Argument,
) -> Estimate:
    """Return the estimated time of the Pallas calls of ``fn(*args, **kwargs)`` on each of ``chips``, without a TPU.

    ``args`` may be ``jax.ShapeDtypeStruct``: nothing is run. ``chips``: names, in a sequence or a text with commas. The
    time of a call is the greater of two: the cycles of the static profile of the TPU compiler (in libtpu), and the
    bytes that the block specs move at the peak bandwidth of the HBM. For a grid with more than 32 points at most 32 are
    profiled. The estimate ranks variants of a kernel. It leaves out JAX's work around the calls, and each different
    call counts once, however often the function makes it; an array that the kernel itself copies counts once. There is
    no profile for v4. A call that the compiler refuses or does not profile within ``timeout`` seconds has no time
    (``left_out`` says why).

    Exceptions of ``fn`` pass through; ``ValueError`` for an unknown chip, ``NotModelled`` (NK607) without JAX or
    libtpu.
    """
    __tracebackhide__ = True
    jax_module()  # or the word that it is not installed
    _must_have_compiler()
    calls = {}
    for chip in chosen(chips):
        with without_jax_warnings(), compiling_for(chip):
            calls[chip.name] = calls_to_compile(_traced(fn, args, kwargs))
    return estimate_of(name_of(fn), calls, timeout)


def _must_have_compiler() -> None:
    reason = why_not()
    if reason:
        refuse(f"the time of a kernel is estimated by the TPU compiler: {reason}", "Install it to have an estimate.")


def estimate_of(function: str, calls: Mapping[str, Iterable[Call]], timeout: float) -> Estimate:
    """Return the estimate of Pallas calls that were traced for the chips of those names; NK607 without libtpu."""
    _must_have_compiler()
    with without_jax_warnings():
        found = tuple(estimated(call, CHIPS[chip], timeout) for chip, those in calls.items() for call in those)
    return Estimate(function=function, kernels=found)


def nothing_to_estimate() -> Estimate:
    """Raise ValueError: the check has traced no Pallas call, so that no time can be estimated."""
    raise ValueError("no Pallas call of the check was traced, so there is nothing to estimate")


def _traced(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> ClosedJaxpr:
    """Return the jaxpr of a call; arrays and descriptions of arrays are traced, all other arguments are as given."""
    function, arrays = of_arrays(fn, args, kwargs, lambda leaf: hasattr(leaf, "shape") and hasattr(leaf, "dtype"))
    traced: ClosedJaxpr = jax_module().make_jaxpr(function)(*arrays)
    return traced


def estimated(call: Call, chip: Chip, timeout: float) -> KernelEstimate:
    """Return the estimated time of one Pallas call on ``chip``."""
    steps, moved = points(call), traffic(call)
    known: dict[str, Any] = {
        "kernel": call.name,
        "chip": chip.name,
        "steps": steps,
        "hbm_bytes": moved,
        "memory_us": moved / _bandwidth(chip) * 1e6,
    }
    few = shrunk(call)
    program = lower(few, chip)
    try:
        if chip.name not in _CLOCKS:
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
        compute_us=cycles / _CLOCKS[chip.name] * 1e6,
        units=bundles.units if bundles is not None else {},
        spills=None if bundles is None else bundles.spilling,
        vmem_bytes=None if memory is None else memory.total,
        spilled_bytes=None if memory is None else memory.spilled,
    )


def _bandwidth(chip: Chip) -> float:
    """Return the peak of the HBM in bytes a second, of one JAX device."""
    with compiling_for(chip):
        of_core = jax_module("jax.experimental.pallas.tpu").get_tpu_info().mem_bw_bytes_per_second
    return float(of_core * PEAKS[chip.name].cores_of_device)


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
