"""Moving and filling: DMA between memories, copies on chip, constants, patterns."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from nkitools.chip.dtypes import DType
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.numerics import Array, cast, through_float32
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.views import describe
from nkitools.isa import guards
from nkitools.isa.costs import GPSIMD_START, dma, elements_per_cycle, is_half, streaming
from nkitools.isa.enums import dge_mode as dge_modes
from nkitools.isa.enums import engine as engines
from nkitools.isa.enums import oob_mode as oob_modes
from nkitools.isa.instruction import Check, Dst, Operand, Plan, Src, instruction

_INT32 = np.iinfo(np.int32)


def _copying(dst: NkiTensor, src: NkiTensor, *, exact: bool = True) -> Callable[[Array, Array], None]:
    """Copy bits between equal dtypes, else through float32; shapes may differ, the order of elements does not."""
    dtype = dst.dtype
    same_dtype = exact and dst.dtype is src.dtype
    if same_dtype and dst.shape == src.shape:
        return np.copyto

    def compute(destination: Array, source: Array) -> None:
        values = source if same_dtype else through_float32(source, dtype)
        np.copyto(destination, values.reshape(destination.shape))

    return compute


@instruction
def dma_copy(
    check: Check,
    dst: Dst,
    src: Src,
    priority: Any = None,
    oob_mode: Any = oob_modes.error,
    dge_mode: Any = dge_modes.unknown,
    engine: Any = engines.unknown,
    name: Any = None,
) -> Plan:
    """``dst = src`` by DMA between HBM and SBUF, in any direction.

    Shapes: equally many elements in total. Dtypes: any; a conversion goes through float32. ``priority`` 0 to 3 is for
    NeuronCore-v4, ``dge_mode=hwdge`` for v3 on and then ``engine`` may be sync or scalar; ``oob_mode`` speaks of
    indirect addresses only.
    Errors: NK101, NK107, NK109, NK110 (of ``src``), NK201, NK206, NK301, NK606, NK609.
    Source: nki.isa.dma_copy (NKI 0.6).
    """
    guards.one_of(check, "oob_mode", oob_mode, oob_modes)
    guards.one_of(check, "dge_mode", dge_mode, dge_modes)
    _check_descriptors(check, priority, dge_mode, engine)
    guards.dma_ends(check, dst, src)
    if dst.size != src.size:
        check.refuse(
            "NK109",
            f"`dst`, {describe(dst)}, has {dst.size} elements and `src`, {describe(src)}, has {src.size}",
            dst,
            src,
        )
    if dst.dtype is not src.dtype:
        guards.not_packed(check, dst=dst, src=src)

    compute = _copying(dst, src)

    return Plan("dma", dma(check.chip, dst, src), compute, lanes="travel" if dst.on_chip else "use")


def _check_descriptors(check: Check, priority: Any, mode: Any, engine: Any) -> None:
    """NK609, NK606, NK206: what is said about the DMA's priority and its descriptors."""
    chip = check.chip
    if priority is not None:
        whole = isinstance(priority, (int, np.integer)) and not isinstance(priority, bool)
        if not whole or not 0 <= priority <= 3:
            check.refuse("NK609", f"`priority` must be 0, 1, 2 or 3, it is {priority!r}")
        if not chip.dma_priority:
            check.fail("NK606", f"`priority`={priority}: DMA priorities came with NeuronCore-v4; {chip.name} has none")
    if mode is dge_modes.hwdge and not chip.hardware_dge:
        check.fail(
            "NK606",
            f"`dge_mode`={mode}: hardware descriptor generation came with NeuronCore-v3; {chip.name} has none",
        )
    guards.one_of(check, "engine", engine, engines, (engines.sync, engines.scalar, engines.unknown))
    if engine is not engines.unknown and mode is not dge_modes.hwdge:
        check.fail("NK609", f"`engine`={engine} goes with dge_mode=nisa.dge_mode.hwdge only")


@instruction
def tensor_copy(check: Check, dst: Dst, src: Src, engine: Any = engines.unknown, name: Any = None) -> Plan:
    """``dst = src`` on chip, on the Vector, Scalar or GpSimd Engine.

    Shapes: equal partitions and elements per partition. Memory: SBUF or PSUM (no PSUM on the GpSimd Engine).
    Bit-accurate between equal dtypes, otherwise through float32; NeuronCore-v2's Scalar Engine does not have it.
    Errors: NK101, NK102, NK107 to NK110, NK201, NK206, NK301, NK606, NK609.
    Source: nki.isa.tensor_copy (NKI 0.6); trainium2_arch, Scalar Engine (bit-accurate copies).
    """
    guards.one_of(check, "engine", engine, engines, (engines.vector, engines.scalar, engines.gpsimd, engines.unknown))
    guards.tiles(check, dst=dst, src=src)
    guards.same_elements(check, ("dst", dst), ("src", src))
    guards.gpsimd_reaches(check, engine, dst=dst, src=src)
    if engine is engines.scalar and not check.chip.scalar_engine_copies:
        check.fail(
            "NK606",
            f"`engine`={engine}: the Scalar Engine of {check.chip.name} has no tensor_copy",
            remedy="Use nisa.activation(op=nl.copy), or leave the engine out.",
        )
    if dst.dtype is not src.dtype:
        guards.not_packed(check, dst=dst, src=src)
    chosen = engines.vector if engine is engines.unknown else engine

    compute = _copying(dst, src, exact=engine is not engines.scalar or check.chip.scalar_engine_copies)

    cycles = streaming(check.chip, src, 1 / elements_per_cycle(check.chip, chosen, dst, src))
    return Plan(chosen.name, cycles, compute, lanes="travel")


@instruction
def memset(check: Check, dst: Dst, value: Operand, engine: Any = engines.unknown, name: Any = None) -> Plan:
    """Fill ``dst`` (SBUF or PSUM) with a number, on the Vector or GpSimd Engine; packed x4 dtypes take 0 only.

    A number outside of an integer dtype's range saturates. Half-width tiles cost what filling them with zero costs.
    Errors: NK101, NK107, NK108, NK110, NK201, NK206, NK301, NK609. Source: nki.isa.memset (NKI 0.6).
    """
    if isinstance(value, NkiTensor):
        check.refuse(
            "NK609", f"`value` must be a number, known when the kernel is built; it is {describe(value)}", value
        )
    guards.one_of(check, "engine", engine, engines, (engines.vector, engines.gpsimd, engines.unknown))
    guards.tiles(check, dst=dst)
    guards.gpsimd_reaches(check, engine, dst=dst)

    dtype = dst.dtype

    def compute(destination: Array, number: Any) -> None:
        if dtype.kind == "packed" and number != 0:
            check.refuse("NK301", f"`dst` of dtype {dtype} can only be set to 0, not to `value`={number}")
        destination[...] = _constant(number, dtype)

    chosen = engines.vector if engine is engines.unknown else engine
    # The value is data and may change from call to call: the price is that of zero, by far the most frequent.
    fast = is_half(dst) and chosen is engines.vector
    return Plan(chosen.name, streaming(check.chip, dst, 0.5 if fast else 1), compute)


def _constant(number: Any, dtype: DType) -> Any:
    """A number as an element of ``dtype``: integers exactly, the rest by way of float32."""
    if dtype.kind == "packed":
        return np.zeros((), dtype.dtype)
    if dtype.is_integer and isinstance(number, (int, np.integer)):
        limits = np.iinfo(dtype.dtype)
        return min(max(int(number), int(limits.min)), int(limits.max))
    return cast(np.asarray(number, np.float32), dtype)


@instruction
def iota(check: Check, dst: Dst, pattern: Any, offset: Any = 0, channel_multiplier: Any = 0, name: Any = None) -> Plan:
    """``dst[p, w, z, y, x] = offset + p*channel_multiplier + w*step_w + z*step_z + y*step_y + x*step_x``, on GpSimd.

    ``pattern``: one to four ``[step, num]``, whose nums multiply to the elements per partition of ``dst`` (SBUF).
    32-bit integer arithmetic, which wraps, then cast to ``dst.dtype``.
    Errors: NK101, NK107 to NK110, NK201, NK301, NK609. Source: nki.isa.iota (NKI 0.6).
    """
    guards.tiles(check, on=(MemoryRegion.sbuf,), dst=dst)
    guards.not_packed(check, dst=dst)
    steps = _iota_steps(check, pattern)
    for role, number in (("offset", offset), ("channel_multiplier", channel_multiplier)):
        _int32(check, role, number)
    made = math.prod(count for _, count in steps)
    if made != dst.layout.free_elements:
        check.refuse(
            "NK109",
            f"`pattern` makes {made} elements per partition; `dst`, {describe(dst)}, has {dst.layout.free_elements}",
            dst,
        )

    first, across, dtype = int(offset), int(channel_multiplier), dst.dtype

    def compute(destination: Array) -> None:
        values = np.asarray(first + across * np.arange(destination.shape[0], dtype=np.int64))
        for step, count in steps:
            values = values[..., None] + step * np.arange(count, dtype=np.int64)
        np.copyto(destination, cast(values.astype(np.int32), dtype).reshape(destination.shape))

    return Plan("gpsimd", GPSIMD_START + dst.layout.free_elements, compute)


def _int32(check: Check, role: str, number: Any) -> None:
    whole = isinstance(number, (int, np.integer)) and not isinstance(number, bool)
    if not whole or not _INT32.min <= number <= _INT32.max:
        check.refuse("NK609", f"`{role}` must be a 32-bit integer, it is {number!r}")


def _iota_steps(check: Check, pattern: Any) -> list[tuple[int, int]]:
    """NK609: the pattern as one to four pairs (step, num)."""
    form = isinstance(pattern, tuple) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in pattern)
    if not form or not 1 <= len(pattern) <= 4:
        check.refuse("NK609", f"`pattern` must be a list of one to four [step, num], it is {pattern!r}")
    for step, count in pattern:
        _int32(check, "pattern step", step)
        if not isinstance(count, (int, np.integer)) or count < 1:
            check.refuse("NK609", f"`pattern` has a num of {count!r}; it must be at least 1")
    return [(int(step), int(count)) for step, count in pattern]
