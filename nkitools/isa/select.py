"""Choosing between values: by an affine expression, by a range of indices, by a predicate tile; bounds of segments."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from nkitools.chip.argument_types import Pattern
from nkitools.chip.device_numbers import DeviceNumber
from nkitools.chip.dtypes import bool_, float32, int8, int16, int32, tfloat32, uint8, uint16, uint32
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.engines.cast_on_write import constant, note_unfit, put
from nkitools.engines.costs import GPSIMD_START, streaming
from nkitools.engines.enums import reduce_cmd as reduce_cmds
from nkitools.engines.operators import OPERATORS, Operator, OperatorToken
from nkitools.isa.move import made_by_pattern, pattern_steps
from nkitools.issue import guards, instruction_guards, reduce_registers, scalar_operands
from nkitools.issue.element_maps import made
from nkitools.issue.element_rules import ALONG_FREE, BROADCAST, SAME, WITHIN_PARTITION, Rule
from nkitools.issue.instruction import Check, Dst, Operand, OptionalDst, Plan, Src, instruction
from nkitools.issue.plan import RegisterOrNumber, Value
from nkitools.issue.select_compute import (
    MAXIMUM,
    affine_mask,
    predicate_mask,
    range_mask,
    selecting,
    selecting_in_float32,
)
from nkitools.issue.touched_elements import register_value
from nkitools.rules.finding import report

Masks: TypeAlias = tuple[Any, ...]  # one for each tensor operand, None for all of its elements

FP32_MIN = float(np.finfo(np.float32).min)
EXACT = 2**24  # up to here float32 holds every integer

_OLDER = "Use nisa.affine_select for bounds known beforehand, or nisa.iota, nisa.tensor_scalar and nisa.select_reduce."
_ORDER = ("equal", "less", "less_equal", "greater", "greater_equal")
_COMPARISONS = ("equal", "not_equal", *_ORDER[1:])
_SELECT_COMMANDS = (reduce_cmds.idle, reduce_cmds.reduce, reduce_cmds.reset_reduce)
_COPY_PREDICATES = (bool_, uint8, uint16, uint32)
_SELECT_PREDICATES = (bool_, int8, int16, uint8, uint16)
_EQUAL = OPERATORS["equal"]


def _comparison(check: Check, role: str, token: OperatorToken, allowed: tuple[str, ...]) -> Operator:
    """NK306: one of these comparison operators."""
    found = guards.operator(check, role, token)
    if found.name not in allowed:
        names = ", ".join(f"nl.{name}" for name in allowed)
        check.refuse("NK306", f"`{role}`={found} does not compare here; possible are {names}")
    return found


@instruction
def affine_select(
    check: Check,
    dst: Dst,
    pattern: Pattern,
    channel_multiplier: int,
    on_true_tile: Src,
    on_false_value: Operand,
    cmp_op: OperatorToken = _EQUAL,
    offset: RegisterOrNumber = 0,
    name: str | None = None,
) -> Plan:
    """``dst = on_true_tile`` where ``cmp_op(affine value, 0)`` holds, else ``on_false_value``, on the GpSimd Engine.

    The affine value of partition p and pattern position (w, z, y, x) is that of nisa.iota, ``offset +
    p*channel_multiplier + w*step_w + z*step_z + y*step_y + x*step_x``, in 32-bit integers, which wrap. ``pattern``: one
    to four ``[step, num]``, that of x last, whose nums multiply to the elements per partition of both tiles, in any
    shape. ``cmp_op``: equal, not_equal, less, less_equal, greater or greater_equal (AWS's docstring names none).
    Partitions: equally many. Memory: SBUF. Dtypes: any but packed ones; equal ones keep their bits, others go through
    float32 (SDK 2.26 had no 32-bit integers). ``on_false_value``: a number, taken as float32 and cast to ``dst.dtype``.
    Elements of ``on_true_tile`` that are not selected are not used. ``offset``: an integer, a register or an int32
    scalar.
    Errors: NK101, NK102, NK107 to NK110, NK201, NK301, NK306, NK401, NK606, NK609.
    Source: nki.isa.affine_select (NKI 0.6), its release notes 0.4 for the register; the cost from SDK 2.26.
    """
    comparison = _comparison(check, "cmp_op", cmp_op, _COMPARISONS)
    if isinstance(on_false_value, NkiTensor):
        check.refuse("NK609", f"`on_false_value` must be a number, it is {describe(on_false_value)}", on_false_value)
    steps = pattern_steps(check, pattern)
    across = instruction_guards.integer(check, "channel_multiplier", channel_multiplier)
    guards.tiles(check, on=(MemoryRegion.sbuf,), dst=dst, on_true_tile=on_true_tile)
    guards.same_partitions(check, ("dst", dst), ("on_true_tile", on_true_tile))
    made_by_pattern(check, steps, dst=dst, on_true_tile=on_true_tile)
    guards.not_packed(check, dst=dst, on_true_tile=on_true_tile)

    shape = on_true_tile.shape
    affine = affine_mask(comparison, steps, across, shape)
    select = selecting(dst, on_true_tile)

    def mask_of(offset: int | DeviceNumber) -> Array:
        first = offset.short_integer("nisa.affine_select") if isinstance(offset, DeviceNumber) else offset
        return affine(instruction_guards.integer(check, "offset", first))

    def compute(destination: Array, on_true: Array, on_false: Value, offset: int | DeviceNumber) -> None:
        if isinstance(offset, DeviceNumber):
            register_value("nisa.affine_select", offset)
        select(destination, mask_of(offset), on_true, on_false)

    def chooses(destination: Array, on_true: Array, on_false: Value, offset: int | DeviceNumber) -> Masks:
        return None, mask_of(offset)

    cycles = GPSIMD_START + on_true_tile.layout.free_elements
    elements = made(dst={"on_true_tile": SAME, "on_false_value": BROADCAST, "offset": BROADCAST})
    return Plan("gpsimd", cycles, compute, elements, lanes="travel", chooses=chooses)


@instruction
def range_select(
    check: Check,
    dst: Dst,
    on_true_tile: Src,
    comp_op0: OperatorToken,
    comp_op1: OperatorToken,
    bound0: Src,
    bound1: Src,
    reduce_cmd: reduce_cmds = reduce_cmds.reset_reduce,
    reduce_res: OptionalDst = None,
    reduce_op: OperatorToken = MAXIMUM,
    range_start: float = 0,
    on_false_value: float = FP32_MIN,
    name: str | None = None,
) -> Plan:
    """``dst = on_true_tile`` where an index lies between two bounds, else FP32_MIN; and its maximum; Vector Engine.

    Element i of a partition (free dimensions flattened) is selected where ``comp_op0(range_start + i, bound0)`` and
    ``comp_op1(range_start + i, bound1)``, in float32. ``range_start``: an integer known when the kernel is built; the
    indices lie within 2**24. The operators: equal, less, less_equal, greater, greater_equal. ``bound0``, ``bound1``:
    float32 (partitions, 1). ``on_true_tile``: a float dtype; ``dst`` has as many elements per partition. Memory: SBUF
    or PSUM. ``on_false_value`` is FP32_MIN (-3.4028235e+38) and no other, which a float ``dst`` of fewer bits holds as
    minus infinity, float8_e4m3fn as NaN and an integer ``dst`` as its least value (NK304).
    The maximum (``reduce_op`` has no other) is that of all float32 values of ``dst``, before the cast, and goes into
    the Vector Engine's reduce registers: ``reset_reduce`` starts from minus infinity, ``reduce`` goes on from them,
    ``reset`` only resets; after ``idle`` their state is unknown, as nisa.select_reduce and nisa.exponential have it
    (here AWS's docstring does not say). ``load_reduce`` is refused: there is nothing to load. ``reduce_res``
    (partitions, 1) receives the registers; it should be float32 where ``dst`` is narrower, for a row in which nothing
    is selected. NeuronCore-v3 on.
    Errors: NK101, NK102, NK107 to NK111, NK201, NK301, NK306, NK507, NK606, NK609.
    Source: nki.isa.range_select (NKI 0.6); the cost from SDK 2.26.
    """
    guards.has_instruction(check, "range_select", _OLDER)
    comparisons = (_comparison(check, "comp_op0", comp_op0, _ORDER), _comparison(check, "comp_op1", comp_op1, _ORDER))
    reduce_registers.reducer(check, "reduce_op", reduce_op, ("maximum",))
    guards.one_of(check, "reduce_cmd", reduce_cmd, reduce_cmds, reduce_registers.COMMANDS)
    _fp32_min(check, on_false_value)
    guards.tiles(check, dst=dst, on_true_tile=on_true_tile, bound0=bound0, bound1=bound1, reduce_res=reduce_res)
    guards.same_elements(check, ("dst", dst), ("on_true_tile", on_true_tile))
    guards.not_packed(check, dst=dst, reduce_res=reduce_res)
    _check_bounds(check, on_true_tile, bound0, bound1)
    reduce_registers.result_tile(check, reduce_res, on_true_tile, "on_true_tile")
    count = on_true_tile.layout.free_elements
    start = instruction_guards.integer(check, "range_start", range_start, -EXACT, EXACT - count + 1)
    mask_of = range_mask(comparisons, start, on_true_tile.shape)

    select = selecting_in_float32(dst, on_true_tile)
    reduce = reduce_registers.commanded(check, "vector", reduce_cmd, MAXIMUM, on_true_tile, reduce_res)

    def compute(destination: Array, on_true: Array, first: Array, second: Array, result: Array | None) -> None:
        reduce(select(destination, mask_of(first, second), on_true, FP32_MIN), result, None)

    def chooses(destination: Array, on_true: Array, first: Array, second: Array, result: Array | None) -> Masks:
        return _present(None, mask_of(first, second), None, None, reduce_res=reduce_res)

    bounds: dict[str, Rule] = {"bound0": BROADCAST, "bound1": BROADCAST}
    maximum = reduce_registers.register_elements("vector", reduce_cmd, {"on_true_tile": ALONG_FREE, **bounds})
    elements = made(maximum, dst={"on_true_tile": SAME, **bounds})
    lanes = reduce_registers.kept_apart(reduce_cmd, reduce_res)
    return Plan("vector", streaming(check.chip, on_true_tile), compute, elements, lanes=lanes, chooses=chooses)


def _check_bounds(check: Check, data: NkiTensor, *bounds: NkiTensor) -> None:
    """Float data, and a float32 (partitions, 1) bound on either side."""
    if not data.dtype.is_float:
        check.refuse("NK301", f"`on_true_tile` must be of a float dtype, it is {describe(data)}", data)
    for role, bound in zip(("bound0", "bound1"), bounds, strict=True):
        instruction_guards.of_dtype(check, role, bound, float32)
        guards.same_partitions(check, ("on_true_tile", data), (role, bound))
        instruction_guards.exactly(check, role, bound, 1)


def _fp32_min(check: Check, value: Any) -> None:
    """NK609: the hardware has one value for what is not selected."""
    is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not is_number or np.float32(value) != np.float32(FP32_MIN):
        given = describe(value) if isinstance(value, NkiTensor) else repr(value)
        message = f"`on_false_value` must be FP32_MIN (-3.4028235e+38), it is {given}"
        remedy = "Leave it out; nisa.select_reduce and nisa.affine_select take other values."
        check.fail("NK609", message, remedy=remedy)


def _present(*masks: Any, reduce_res: NkiTensor | None) -> Masks:
    """One mask for each tensor operand: all of ``reduce_res``, where there is one."""
    return masks if reduce_res is None else (*masks, None)


@instruction
def select_reduce(
    check: Check,
    dst: Dst,
    predicate: Src,
    on_true: Src,
    on_false: Operand,
    reduce_res: OptionalDst = None,
    reduce_cmd: reduce_cmds = reduce_cmds.idle,
    reduce_op: OperatorToken = MAXIMUM,
    reverse_pred: bool = False,
    name: str | None = None,
) -> Plan:
    """``dst = on_true`` where ``predicate`` is not 0, else ``on_false``; optionally their maximum; Vector Engine.

    Equal partitions and elements per partition of ``dst``, ``predicate`` and ``on_true``. ``predicate``: int8, uint8,
    int16 or uint16, and bool, which AWS's own test passes; ``reverse_pred`` makes 0 select ``on_true``. ``on_true``:
    any dtype but tfloat32, int32, uint32 and packed ones; ``on_false``: a number, taken as float32, or a (partitions,
    1) vector. Memory: SBUF or PSUM, ``on_true`` and ``predicate`` not both in PSUM.
    The maximum (``reduce_op`` has no other) is that of all float32 values of ``dst``, before the cast (AWS's docstring
    does not say), and goes into the Vector Engine's reduce registers: ``reset_reduce`` starts from minus infinity,
    ``reduce`` goes on from them, after ``idle`` their state is unknown. ``reduce_res``, a float (partitions, 1) tile,
    receives the registers. Elements of ``on_true`` and ``on_false`` that are not selected are not used. Cost: not
    published; we take that of nisa.tensor_copy_predicated.
    Errors: NK101, NK102, NK107 to NK111, NK201, NK301, NK306, NK507, NK606, NK609.
    Source: nki.isa.select_reduce (NKI 0.6).
    """
    reduce_registers.reducer(check, "reduce_op", reduce_op, ("maximum",))
    guards.one_of(check, "reduce_cmd", reduce_cmd, reduce_cmds, _SELECT_COMMANDS)
    vector = on_false if isinstance(on_false, NkiTensor) else None
    guards.tiles(check, dst=dst, predicate=predicate, on_true=on_true, on_false=vector, reduce_res=reduce_res)
    guards.same_elements(check, ("predicate", predicate), ("on_true", on_true), _widened(predicate, on_true))
    guards.same_elements(check, ("dst", dst), ("on_true", on_true))
    if vector is not None:
        guards.same_partitions(check, ("on_true", on_true), ("on_false", vector))
        instruction_guards.exactly(check, "on_false", vector, 1)
    reduce_registers.result_tile(check, reduce_res, on_true, "on_true")
    scalar_operands.not_both_in_psum(check, ("on_true", on_true), ("predicate", predicate))
    guards.not_packed(check, dst=dst, on_true=on_true, on_false=vector)
    _select_dtypes(check, predicate, on_true, reduce_res)

    mask_of = predicate_mask(reverse_pred, on_true.shape)
    reduces = reduce_cmd is not reduce_cmds.idle or reduce_res is not None
    select = (selecting_in_float32 if reduces else selecting)(dst, on_true)
    reduce = reduce_registers.commanded(check, "vector", reduce_cmd, MAXIMUM, on_true, reduce_res)

    def compute(destination: Array, chosen: Array, first: Array, second: Value, result: Array | None) -> None:
        reduce(select(destination, mask_of(chosen), first, second), result, None)

    def chooses(destination: Array, chosen: Array, first: Array, second: Value, result: Array | None) -> Masks:
        mask = mask_of(chosen)
        rows = ~mask.reshape(len(mask), -1).all(axis=1)  # those that take the vector's element
        other = () if vector is None else (rows.reshape(vector.shape),)
        return _present(None, None, mask, *other, reduce_res=reduce_res)

    cycles = _predicated_cycles(check, on_true, predicate)
    chosen_from = {"predicate": ALONG_FREE, "on_true": ALONG_FREE, "on_false": BROADCAST}
    maximum = reduce_registers.register_elements("vector", reduce_cmd, chosen_from)
    elements = made(maximum, dst={"predicate": SAME, "on_true": SAME, "on_false": BROADCAST})
    lanes = reduce_registers.kept_apart(reduce_cmd, reduce_res) if reduces else "travel"
    return Plan("vector", cycles, compute, elements, lanes=lanes, chooses=chooses)


def _select_dtypes(check: Check, predicate: NkiTensor, on_true: NkiTensor, reduce_res: NkiTensor | None) -> None:
    """NK301: the dtypes that the instruction names."""
    instruction_guards.of_dtype(check, "predicate", predicate, *_SELECT_PREDICATES)
    if on_true.dtype in (tfloat32, int32, uint32):
        check.refuse("NK301", f"`on_true` cannot be {on_true.dtype}, it is {describe(on_true)}", on_true)
    if reduce_res is not None and not reduce_res.dtype.is_float:
        check.refuse("NK301", f"`reduce_res` must be of a float dtype, it is {describe(reduce_res)}", reduce_res)


def _widened(predicate: NkiTensor, beside: NkiTensor) -> str:
    """Return the remedy for a predicate with one element per partition; '' for the rule's own remedy."""
    count = beside.layout.free_elements
    return f"Broadcast the predicate: predicate.broadcast(1, {count})." if predicate.shape[1:] == (1,) else ""


def _predicated_cycles(check: Check, data: NkiTensor, predicate: NkiTensor) -> float:
    """N cycles where one of the two is in PSUM, 2N where both are in SBUF."""
    in_psum = MemoryRegion.psum in (data.buffer, predicate.buffer)
    return streaming(check.chip, data, 1 if in_psum else 2)


@instruction
def tensor_copy_predicated(
    check: Check, dst: Dst, src: Operand, predicate: Src, reverse_pred: bool = False, name: str | None = None
) -> Plan:
    """``dst = src`` where ``predicate`` is not 0; elsewhere ``dst`` is not modified; on the Vector Engine.

    ``src``: a tile of ``dst``'s dtype, whose bits are kept, or a number, which is cast (NK304). ``predicate``: uint8,
    uint16 or uint32, and bool, which AWS's own test passes; ``reverse_pred`` copies where it is 0. Equal partitions and
    elements per partition, at most 4 dimensions, which NKI 0.7 states. Memory: SBUF or PSUM, ``src`` and ``predicate``
    not both in PSUM. Elements of ``src`` that are not copied are not used. NKI 0.7 also states that ``reverse_pred``
    goes with a number only, and that the number is of the kind of ``dst``; neither is checked here. From NeuronCore-v4
    on ``dst`` and ``predicate`` may be views with tensor indirection. Cost: SDK 2.26; its second line says "both src
    and dst are in SBUF", which we take to mean src and predicate. A number, which it does not mention, costs what a
    tile in SBUF does.
    Errors: NK101, NK102, NK107 to NK111, NK201, NK301, NK607, NK609.
    Source: nki.isa.tensor_copy_predicated (NKI 0.7).
    """
    source = src if isinstance(src, NkiTensor) else None
    guards.tiles(check, dst=dst, src=source, predicate=predicate)
    instruction_guards.stated_dimensions(check, 4, dst=dst, src=source, predicate=predicate)
    widened = _widened(predicate, dst)
    if source is not None:
        guards.same_elements(check, ("src", source), ("predicate", predicate), widened)
        scalar_operands.not_both_in_psum(check, ("src", source), ("predicate", predicate))
    guards.same_elements(check, ("dst", dst), ("predicate", predicate), widened)
    instruction_guards.of_dtype(check, "predicate", predicate, *_COPY_PREDICATES)
    if source is None:
        guards.not_packed(check, dst=dst)
    else:
        instruction_guards.same_dtype(check, ("src", source), ("dst", dst))

    dtype, shape = dst.dtype, dst.shape
    mask_of = predicate_mask(reverse_pred, shape)

    def compute(destination: Array, values: Any, chosen: Array) -> None:
        copied = constant(values, dtype) if source is None else values.reshape(shape)
        if source is None:
            note_unfit(values, copied, dtype)
        np.copyto(destination, copied, where=mask_of(chosen))

    def chooses(destination: Array, values: Value, chosen: Array) -> Masks:
        mask = mask_of(chosen)
        return (mask, None) if source is None else (mask, mask.reshape(source.shape), None)

    cycles = _predicated_cycles(check, dst if source is None else source, predicate)
    partly = (None,) * (2 if source is None else 3)
    elements = made(dst={"src": BROADCAST if source is None else SAME, "predicate": SAME, "dst": SAME})
    return Plan("vector", cycles, compute, elements, lanes="travel", touches=partly, chooses=chooses)


@instruction
def sequence_bounds(check: Check, dst: Dst, segment_ids: Src, name: str | None = None) -> Plan:
    """Write for each of n segment ids where its segment begins and where it ends (exclusive); GpSimd Engine.

    A segment is a run of equal ids. ``segment_ids``: [1, n], whole numbers from 0 on; ``dst``: [1, 2, n], the n starts,
    then the n ends; an id of 0 is padding and gives n and -1. The ids 1 1 2 0 give the starts 0 0 2 4 and the ends 2 2
    3 -1. Dtypes: float32 or int32 each. Memory: SBUF, as the engine does not reach PSUM. An id that is negative or no
    integer is reported when the kernel runs (NK609). Cost: not published; we take one start and one element per cycle.
    Errors: NK101, NK107 to NK110, NK201, NK301, NK401, NK609. Source: nki.isa.sequence_bounds (NKI 0.6).
    """
    guards.tiles(check, on=(MemoryRegion.sbuf,), dst=dst, segment_ids=segment_ids)
    for role, tensor in (("segment_ids", segment_ids), ("dst", dst)):
        if tensor.shape[0] != 1:
            check.refuse("NK109", f"`{role}`, {describe(tensor)}, must have one partition", tensor)
        instruction_guards.of_dtype(check, role, tensor, int32, float32)
    count = segment_ids.layout.free_elements
    instruction_guards.exactly(check, "dst", dst, 2 * count)

    dtype = dst.dtype

    def compute(destination: Array, segments: Array) -> None:
        ids = segments.reshape(-1)
        _check_ids(ids)
        put(destination, np.stack(_bounds(ids)), dtype)

    elements = made(dst={"segment_ids": WITHIN_PARTITION})
    return Plan("gpsimd", GPSIMD_START + count, compute, elements, addresses=("segment_ids",))


def _check_ids(ids: Array) -> None:
    """NK609: segment ids are whole numbers from 0 on."""
    wrong = ~((ids >= 0) & (ids == np.floor(ids)))
    if wrong.any():
        first = int(wrong.argmax())
        message = (
            f"sequence_bounds: `segment_ids` must hold whole numbers from 0 on; element {first} is {ids[first]} "
            f"({int(np.count_nonzero(wrong))} of {ids.size} are not such numbers)"
        )
        report("NK609", message, remedy="Number the segments from 1 on, and give 0 to the padding.")


def _bounds(ids: Array) -> tuple[Array, Array]:
    """Start and end of the run that each element belongs to; n and -1 for padding."""
    count = ids.size
    edges = np.flatnonzero(ids[1:] != ids[:-1]) + 1
    lengths = np.diff(edges, prepend=0, append=count)
    starts = np.repeat(np.concatenate([[0], edges]), lengths)
    ends = np.repeat(np.concatenate([edges, [count]]), lengths)
    padding = ids == 0
    return np.where(padding, count, starts), np.where(padding, -1, ends)
