"""Moving and filling: DMA between memories, copies on chip, constants, patterns."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from nkitools.chip.argument_types import Number, Pattern
from nkitools.chip.core import CORE
from nkitools.chip.device_numbers import DeviceNumber
from nkitools.chip.dtypes import DType, float32, tfloat32
from nkitools.chip.indexing import Key
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.numerics import Array, cast, copy_in_order, put_floats, through_float32
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe, name_of
from nkitools.engines import lost_integers
from nkitools.engines.cast_on_write import constant, note_unfit
from nkitools.engines.costs import GPSIMD_START, dma, elements_per_cycle, is_half, on_scalar_engine, streaming
from nkitools.engines.enums import dge_mode as dge_modes
from nkitools.engines.enums import engine as engines
from nkitools.engines.enums import oob_mode as oob_modes
from nkitools.issue import dma_descriptors, guards
from nkitools.issue.element_maps import made
from nkitools.issue.element_rules import BROADCAST, SAME
from nkitools.issue.form import takes_64_bits
from nkitools.issue.instruction import Check, Dst, Operand, Plan, Src, instruction
from nkitools.issue.plan import RegisterOrNumber
from nkitools.issue.touched_elements import register_value
from nkitools.record.reporter import Reporter
from nkitools.rules.finding import REPORTER, refuse, report


def _copying(dst: NkiTensor, src: NkiTensor, *, exact: bool = True) -> Callable[[Array, Array], None]:
    """Copy bits between equal dtypes, else through float32; shapes may differ, the order of elements does not."""
    dtype = dst.dtype
    same_dtype = exact and dst.dtype is src.dtype
    if same_dtype:
        return np.copyto if dst.shape == src.shape else copy_in_order

    # To or from float32 there is one conversion, which NumPy makes on the way.
    once = dtype is float32 or (src.dtype is float32 and dtype.is_float and dtype is not tfloat32)

    def compute(destination: Array, source: Array) -> None:
        values = source if once else through_float32(source, dtype)
        if once:
            put_floats(destination, values.reshape(destination.shape), dtype)
        else:
            np.copyto(destination, values.reshape(destination.shape))

    return lost_integers.watched(compute, lambda source: source.astype(np.float64), dtype, (src.dtype,))


@instruction
@takes_64_bits
def dma_copy(
    check: Check,
    dst: Dst,
    src: Src,
    priority: int | None = None,
    oob_mode: oob_modes = oob_modes.error,
    dge_mode: dge_modes = dge_modes.unknown,
    engine: engines = engines.unknown,
    name: str | None = None,
) -> Plan:
    """``dst = src`` by DMA; both ends are in HBM or SBUF.

    Shapes: equally many elements in total, taken in order. Dtypes: any; a conversion goes through float32, and integers
    of 64 bits and packed elements are not converted. ``priority`` 0 to 3 is for NeuronCore-v4, ``dge_mode=hwdge`` for
    v3 on; hwdge converts nothing, and ``engine`` may be sync or scalar with hwdge only.
    With an index per partition (``vector_select``, ``ap(vector_offset=)``), and ``dge_mode`` unknown or swdge, it
    gathers rows of an HBM ``src`` or scatters into those of an HBM ``dst``; ``dge_mode=none`` takes no run-time
    address. An index out of bounds is NK402; with ``oob_mode=skip`` its row (with a single index: the transfer) is left
    out. The table of the DGE guide says "indirect: v3+" of swdge; its text has that for the transpose only, and SDK
    2.26 documents gathers for trn1: all chips have them here.
    Errors: NK101, NK107, NK109, NK110 (of ``src``), NK201, NK206, NK301, NK401, NK402, NK606, NK609, NK621. Source:
    nki.isa.dma_copy (NKI 0.6); nki-dge; release notes of NKI 0.3 (hwdge converts nothing).
    """
    dge_mode = dma_descriptors.mode_of(dge_mode)
    dma_descriptors.modes(check, priority, dge_mode, oob_mode)
    dma_descriptors.trigger(check, engine, dge_mode)
    guards.dma_ends(check, dst, src)
    dma_descriptors.addresses(check, dge_mode, dst=dst, src=src)
    dma_descriptors.one_index_each(check, dst=dst, src=src)
    dma_descriptors.skips_indices(check, oob_mode, dst, src)
    if dst.size != src.size:
        message = f"`dst`, {describe(dst)}, has {dst.size} elements and `src`, {describe(src)}, has {src.size}"
        from nkitools.issue.shape_remedies import to_fit

        change = to_fit({}, ("dst", dst), ("src", src))
        other = src if change.tensor is dst else dst
        check.refuse("NK109", message, change.tensor, other, remedy=change.remedy, **change.facts)
    if dst.dtype is not src.dtype:
        guards.not_packed(check, dst=dst, src=src)
        wide = next((each for each in (dst, src) if each.dtype.is_wide), None)
        if wide is not None:
            message = (
                f"integers of 64 bits are copied, not converted: `dst` is {describe(dst)} and `src` {describe(src)}"
            )
            check.refuse("NK301", message, wide, remedy="Give both the same dtype; convert on the host.")
        if dge_mode is dge_modes.hwdge:
            message = (
                f"`dge_mode`={dge_mode} converts no elements: `dst` is {describe(dst)} and `src` is {describe(src)}"
            )
            remedy = "Leave dge_mode out, or reinterpret one of them with .view(dtype)."
            check.fail("NK301", message, dst, src, remedy=remedy)

    compute = _copying(dst, src)

    lanes = guards.lanes_of_copy(dst, src)
    nanoseconds = dma(check.chip, dst, src)
    return Plan("dma", 0.0, compute, made(dst={"src": SAME}), nanoseconds=nanoseconds, lanes=lanes)


@instruction
def tensor_copy(check: Check, dst: Dst, src: Src, engine: engines = engines.unknown, name: str | None = None) -> Plan:
    """``dst = src`` on chip, on the Vector Engine, or the Scalar or GpSimd Engine if ``engine`` says so.

    Shapes: equal partitions and elements per partition. Memory: SBUF or PSUM (no PSUM on the GpSimd Engine).
    Bit-accurate between equal dtypes, otherwise through float32, where integers beyond 2**24 lose low bits
    (NK307); packed elements are not cast (NK301). NeuronCore-v2's Scalar Engine does not have it (NK606).
    Errors: NK101, NK102, NK107 to NK110, NK201, NK206, NK301, NK606, NK609.
    Source: nki.isa.tensor_copy (NKI 0.6); trainium2_arch, Scalar Engine (bit-accurate copies).
    """
    guards.one_of(check, "engine", engine, engines, (engines.vector, engines.scalar, engines.gpsimd, engines.unknown))
    guards.tiles(check, dst=dst, src=src)
    guards.same_elements(check, ("dst", dst), ("src", src))
    guards.gpsimd_reaches(check, engine, dst=dst, src=src)
    if engine is engines.scalar and not check.chip.scalar_engine_copies:
        message = f"`engine`={engine}: the Scalar Engine of {check.chip.name} has no tensor_copy"
        remedy = "Use nisa.activation(op=nl.copy), or leave the engine out."
        check.fail("NK606", message, remedy=remedy, argument="engine")
    if dst.dtype is not src.dtype:
        guards.not_packed(check, dst=dst, src=src)
    chosen = engines.vector if engine is engines.unknown else engine

    compute = _copying(dst, src, exact=engine is not engines.scalar or check.chip.scalar_engine_copies)

    cycles = streaming(check.chip, src, 1 / elements_per_cycle(check.chip, chosen, dst, src))
    elsewhere = on_scalar_engine(check.chip, dst, src) if engine is engines.unknown else ()
    return Plan(chosen.name, cycles, compute, made(dst={"src": SAME}), lanes="copy", elsewhere=elsewhere)


@instruction
def memset(check: Check, dst: Dst, value: Operand, engine: engines = engines.unknown, name: str | None = None) -> Plan:
    """Fill ``dst`` (SBUF or PSUM) with a number, on the Vector or (``engine=gpsimd``, no PSUM) the GpSimd Engine.

    ``value``: known when the kernel is built. Integer dtypes take integers: the float 2.0 is NK621 (a hint), the float
    2.5 is NK301. A number that the dtype does not hold is NK304 (a warning): it saturates in integers, and becomes
    infinity in floats, or NaN if they have no infinity. Packed x4 dtypes take 0 only. Any value costs what zero costs.
    Errors: NK101, NK107, NK108, NK110, NK201, NK206, NK301, NK304, NK609, NK621.
    Source: nki.isa.memset (NKI 0.6); release notes of NKI 0.3 (floats into integers).
    """
    from nkitools.issue import instruction_guards

    instruction_guards.known_number(check, "value", value)
    guards.one_of(check, "engine", engine, engines, (engines.vector, engines.gpsimd, engines.unknown))
    guards.tiles(check, dst=dst)
    guards.gpsimd_reaches(check, engine, dst=dst)
    dtype = dst.dtype
    holds_integers = dtype.is_integer
    latest: tuple[float | None, Any] = None, None  # the number itself, as 0.0 equals -0.0, and what it becomes

    def compute(destination: Array, number: float) -> None:
        nonlocal latest
        known, became = latest
        if number is known:
            destination[...] = became
            return
        is_doubtful = holds_integers and isinstance(number, (float, np.floating))
        if is_doubtful:
            _check_whole(number, dtype)
        if dtype.kind == "packed" and number != 0:
            check.refuse("NK301", f"`dst` of dtype {dtype} can only be set to 0, not to `value`={number}")
        destination[...] = became = constant(number, dtype)
        if note_unfit(number, became, dtype) and not is_doubtful:
            latest = number, became

    chosen = engines.vector if engine is engines.unknown else engine
    # The value is data and may change from call to call: the price is that of zero, by far the most frequent.
    fast = is_half(dst) and chosen is engines.vector
    return Plan(chosen.name, streaming(check.chip, dst, 0.5 if fast else 1), compute, made(dst={"value": BROADCAST}))


def assign(tensor: NkiTensor, key: Key, value: NkiTensor) -> None:
    """Copy ``value`` into a view, as ``tensor[key] = value`` does: by DMA from and to HBM (NK621).

    Source: AWS's simulator of NKI 0.6 takes it, as a public project that counts its transfers writes; a public library
    of random numbers notes passing runs on trn1 and trn2.
    """
    dst = tensor[key]
    stays = tensor.storage.on_chip and value.storage.on_chip
    reporter, about = REPORTER.get(), tensor.storage.id
    frame = sys._getframe(2)  # of the author: outside of this function and of `NkiTensor.__setitem__`
    if not (isinstance(reporter, Reporter) and reporter.counts(frame, about, begins=True)):
        message = f"an assignment copies into tensor{name_of(dst)}; no document has this form, which some compilers"
        remedy = f"Write nisa.{'tensor_copy' if stays else 'dma_copy'}(dst=tensor[...], src=value)."
        report("NK621", f"{message} refuse", about=(dst, value), remedy=remedy)
        if isinstance(reporter, Reporter):
            reporter.note(frame, about)
    try:
        (_assigned_copy if stays else _assigned_dma)(dst=dst, src=value)
    finally:
        core = CORE.get()
        if core is not None:
            core.counted = None


_assigned_copy, _assigned_dma = tensor_copy.called_from(3), dma_copy.called_from(3)


def _check_whole(number: float, dtype: DType) -> None:
    """NK621: a float that is a whole number fills integers. NK301: any other float does not."""
    what = f"memset: `value` is a float ({number}), `dst` holds {dtype}"
    if float(number).is_integer():
        message = f"{what}; the documents refuse that, and compilers have taken whole numbers"
        report("NK621", message, remedy=f"Write an integer: value={int(number)} instead of value={number}.")
    else:
        refuse("NK301", what, remedy="Write an integer: value=2 instead of value=2.0.")


def fill(dst: NkiTensor, number: Number, engine: engines = engines.unknown) -> None:
    """Fill a tensor with a number of any kind, which is cast as the engines cast it."""
    if not dst.dtype.is_integer:
        memset(dst=dst, value=number, engine=engine)
        return
    whole = int(constant(number, dst.dtype))
    note_unfit(number, whole, dst.dtype)
    memset(dst=dst, value=whole, engine=engine)


@instruction
def iota(
    check: Check,
    dst: Dst,
    pattern: Pattern,
    offset: RegisterOrNumber = 0,
    channel_multiplier: int = 0,
    name: str | None = None,
) -> Plan:
    """``dst[p, w, z, y, x] = offset + p*channel_multiplier + w*step_w + z*step_z + y*step_y + x*step_x``, on GpSimd.

    ``pattern``: one to four ``[step, num]``, that of x last, whose nums multiply to the elements per partition of
    ``dst`` (SBUF), in any shape. The sum wraps as a 32-bit integer and is then cast to ``dst.dtype`` (narrower integers
    saturate, NK304). ``offset``: an integer, a register or an int32 scalar.
    Errors: NK101, NK107 to NK110, NK201, NK301, NK401, NK609. Source: nki.isa.iota (NKI 0.6, and its release notes 0.4
    for the register).
    """
    guards.tiles(check, on=(MemoryRegion.sbuf,), dst=dst)
    guards.not_packed(check, dst=dst)
    steps = pattern_steps(check, pattern)
    from nkitools.issue import instruction_guards

    across = instruction_guards.integer(check, "channel_multiplier", channel_multiplier)
    made_by_pattern(check, steps, dst=dst)

    dtype = dst.dtype

    def compute(destination: Array, offset: int | DeviceNumber) -> None:
        first = register_value("nisa.iota", offset) if isinstance(offset, DeviceNumber) else offset
        instruction_guards.integer(check, "offset", first)
        values = np.asarray(first + across * np.arange(destination.shape[0], dtype=np.int64))
        for step, count in steps:
            values = values[..., None] + step * np.arange(count, dtype=np.int64)
        np.copyto(destination, cast(values.astype(np.int32), dtype).reshape(destination.shape))

    return Plan("gpsimd", GPSIMD_START + dst.layout.free_elements, compute, made(dst={"offset": BROADCAST}))


def pattern_steps(check: Check, pattern: Pattern) -> list[tuple[int, int]]:
    """NK609: the pattern as one to four pairs (step, num)."""
    from nkitools.issue import instruction_guards

    form = isinstance(pattern, tuple) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in pattern)
    if not form or not 1 <= len(pattern) <= 4:
        check.refuse("NK609", f"`pattern` must be a list of one to four [step, num], it is {pattern!r}")
    for step, count in pattern:
        instruction_guards.integer(check, "pattern step", step)
        if not isinstance(count, (int, np.integer)) or count < 1:
            check.refuse("NK609", f"`pattern` has a num of {count!r}; it must be at least 1")
    return [(int(step), int(count)) for step, count in pattern]


def made_by_pattern(check: Check, steps: list[tuple[int, int]], **tensors: NkiTensor) -> None:
    """NK109: tensors have as many elements per partition as the pattern makes."""
    made = math.prod(count for _, count in steps)
    for role, tensor in tensors.items():
        if tensor.layout.free_elements != made:
            message = (
                f"`pattern` makes {made} elements per partition; `{role}`, {describe(tensor)}, has "
                f"{tensor.layout.free_elements}"
            )
            remedy = f"Let the counts of `pattern` multiply to {tensor.layout.free_elements}, or slice `{role}`."
            check.refuse("NK109", message, tensor, remedy=remedy)
