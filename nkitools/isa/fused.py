"""The Vector Engine's instructions of several operators: fused element-wise ones, with their reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nkitools.chip.dtypes import DType, DTypeLike, UnknownDType, as_dtype, float32
from nkitools.chip.numerics import Array, cast, to_float32, working
from nkitools.chip.tensor import NkiTensor
from nkitools.engines import lost_integers
from nkitools.engines.arithmetic import Step, broadcast, broadcast_for, steps_in_float64, steps_of
from nkitools.engines.cast_on_write import in_float32, like, put
from nkitools.engines.costs import is_bfloat16, streaming
from nkitools.engines.enums import reduce_cmd as reduce_cmds
from nkitools.engines.operators import COMPARISONS, OPERATORS, Operator, OperatorToken
from nkitools.issue import guards, instruction_guards, reduce_registers, scalar_operands
from nkitools.issue.element_maps import made
from nkitools.issue.element_rules import ALONG_FREE, BROADCAST, SAME
from nkitools.issue.instruction import Check, Dst, OptionalDst, OptionalOperand, Plan, Src, instruction
from nkitools.issue.plan import Value

_COMMANDS = (reduce_cmds.reset_reduce, reduce_cmds.reduce, reduce_cmds.load_reduce)
_REDUCTIONS = ("add", "multiply", "maximum", "minimum")


@instruction
def scalar_tensor_tensor(
    check: Check,
    dst: Dst,
    data: Src,
    op0: OperatorToken,
    operand0: OptionalOperand,
    op1: OperatorToken,
    operand1: Src,
    reverse0: bool = False,
    reverse1: bool = False,
    reduce_cmd: reduce_cmds = reduce_cmds.reset_reduce,
    reduce_op: OperatorToken = OPERATORS["add"],
    reduce_res: OptionalDst = None,
    name: str | None = None,
    dtype: DTypeLike | None = None,
) -> Plan:
    """``dst = (data <op0> operand0) <op1> operand1`` on the Vector Engine, in float32, cast once to ``dst.dtype``.

    ``operand0``: a number or a (partitions, 1) vector; ``operand1``: a tile of ``data``'s size; any dtypes but packed
    ones. ``reverse0``/``reverse1`` swap the sides of a binary operator. Both operators are arithmetic; ``op0`` may be a
    unary one, whose operand is None or 0 (as in tensor_scalar, to which AWS's docstring refers). Equal partitions and
    elements per partition. Memory: SBUF or PSUM, ``data`` and ``operand1`` not both in PSUM. Cost: SDK 2.26, and never
    less than an instruction takes.
    NKI 0.7: ``reduce_res`` (partitions, 1) receives the float32 results reduced along all free dimensions, by way of
    the engine's reduce registers, as in nisa.tensor_scalar_reduce. ``reduce_op``: add (our default; AWS's page shows
    none), multiply, maximum or minimum. ``reduce_cmd``: ``reset_reduce`` or ``reduce``. Without ``reduce_res`` a call
    reduces only with ``reduce_cmd=reduce``, and the result stays in the registers (our reading).
    ``dtype`` is not in the signature of NKI 0.6, and a public production kernel passes it: the result is cast to it
    before it is cast to ``dst.dtype``.
    Errors: NK101, NK102, NK107 to NK111, NK201, NK301, NK306, NK507, NK606, NK609, NK615, NK621.
    Source: nki.isa.scalar_tensor_tensor (NKI 0.7).
    """
    first = scalar_operands.arithmetic_operator(check, "op0", op0)
    second = scalar_operands.arithmetic_operator(check, "op1", op1, binary=True)
    reduction = reduce_registers.reducer(check, "reduce_op", reduce_op, _REDUCTIONS)
    guards.one_of(check, "reduce_cmd", reduce_cmd, reduce_cmds, (reduce_cmds.reset_reduce, reduce_cmds.reduce))
    guards.tiles(check, dst=dst, data=data, operand1=operand1, reduce_res=reduce_res)
    guards.same_elements(check, ("data", data), ("operand1", operand1))
    guards.same_elements(check, ("dst", dst), ("data", data))
    guards.not_packed(check, dst=dst, data=data, operand1=operand1, reduce_res=reduce_res)
    reduce_registers.result_tile(check, reduce_res, data)
    scalar_operands.not_both_in_psum(check, ("data", data), ("operand1", operand1))
    scalar_operands.operand_of(check, "operand0", first, operand0, data)

    steps = steps_of(first, second, bool(reverse0), bool(reverse1))
    two_steps = _two_steps(steps, dst, data, _between(check, dtype))
    if dtype is None:
        exactly, compares = steps_in_float64(steps, data.shape), second.name in COMPARISONS
        inputs = (data.dtype, operand1.dtype)
        two_steps = lost_integers.watched(two_steps, exactly, dst.dtype, inputs, compares=compares)
    reduces = reduce_res is not None or reduce_cmd is reduce_cmds.reduce
    compute: Callable[..., Any] = two_steps
    if reduces:
        commanded = reduce_registers.commanded(check, "vector", reduce_cmd, reduction, data, reduce_res)
        compute = _reduced(two_steps, commanded)
    compute = scalar_operands.zero_if_unary(check, "operand0", first, operand0, compute)

    fast = is_bfloat16(data, operand1) and (first.name, second.name) == ("subtract", "multiply")
    factor = 1 if fast and data.layout.free_elements % 2 == 0 else 2
    reduced = {"data": ALONG_FREE, "operand0": BROADCAST, "operand1": ALONG_FREE}
    total = reduce_registers.register_elements("vector", reduce_cmd, reduced) if reduces else {}
    elements = made(total, dst={"data": SAME, "operand0": BROADCAST, "operand1": SAME})
    cycles = streaming(check.chip, data, factor) + (check.chip.min_initiation_cycles if reduce_res is not None else 0)
    lanes = reduce_registers.kept_apart(reduce_cmd, reduce_res) if reduces else "travel"
    return Plan("vector", cycles, compute, elements, lanes=lanes)


def _between(check: Check, dtype: DTypeLike | None) -> DType:
    """Return the dtype that a result takes before the destination's; float32 where nothing is asked for."""
    if dtype is None:
        return float32
    try:
        return as_dtype(dtype)
    except UnknownDType as error:
        sentence = str(error)
    return check.refuse("NK609", f"`dtype`: {sentence}")


def _two_steps(
    steps: tuple[Step, ...], dst: NkiTensor, data: NkiTensor, between: DType = float32
) -> Callable[..., Array]:
    """Return the two steps; the first one into a tile of its own where the second one's operand may lie in the
    destination.

    The function returns the float32 results beside writing them.
    """
    first, second = steps
    dtype, shape = dst.dtype, data.shape
    given = broadcast_for(first, len(shape))
    direct = dtype is float32 and dst.shape == shape and between is float32 and dst.layout.injective

    def compute(
        destination: Array, values: Array, operand0: Value, operand1: Array, result: Array | None = None
    ) -> Array:
        if direct and not np.may_share_memory(destination, operand1):
            first_results = out = destination
        else:
            first_results = np.empty(shape, working(destination, values, operand1))
            out = destination if direct else first_results
        first(to_float32(values), given(operand0), first_results)
        second(first_results, like(to_float32(operand1), shape), out)
        if not direct:
            put(destination, out if between is float32 else to_float32(cast(out, between)), dtype)
        return out

    return compute


def _reduced(two_steps: Callable[..., Array], reduce: Callable[..., None]) -> Callable[..., None]:
    """Return the steps, then the reduction of their results."""

    def compute(
        destination: Array, values: Array, operand0: Value, operand1: Array, result: Array | None = None
    ) -> None:
        reduce(two_steps(destination, values, operand0, operand1), result, None)

    return compute


@instruction
def tensor_scalar_reduce(
    check: Check,
    dst: Dst,
    data: Src,
    op0: OperatorToken,
    operand0: OptionalOperand,
    reduce_op: OperatorToken,
    reduce_res: OptionalDst = None,
    reverse0: bool = False,
    reduce_cmd: reduce_cmds = reduce_cmds.reset_reduce,
    reduce_init: OptionalOperand = None,
    reduce_res_negate: bool = False,
    name: str | None = None,
) -> Plan:
    """``dst = data <op0> operand0`` on the Vector Engine, and the results reduced along all free dimensions.

    The reduction goes into the engine's reduce registers, one a partition; ``dst`` keeps all results. ``op0``:
    arithmetic, in float32; ``operand0``: a number or a float32 (partitions, 1) vector, None or 0 for a unary operator;
    ``reverse0`` is documented as not supported and refused. ``reduce_op``: add, multiply, maximum or minimum (SDK 2.26
    also had subtract) of the float32 results, before the cast to ``dst.dtype``. ``reduce_cmd``: ``reset_reduce`` starts
    from the identity of ``reduce_op``, ``reduce`` goes on from the registers, ``load_reduce`` from ``reduce_init`` (a
    number or a float32 (partitions, 1) vector, given with ``load_reduce`` and only then). ``reduce_res`` (partitions,
    1) receives the registers, negated if ``reduce_res_negate``; the registers are not negated. Equal partitions and
    elements per partition. NKI 0.7 states at most 4 dimensions of ``dst`` and ``data``. Memory: SBUF or PSUM. Cost: SDK
    2.26; reading the registers out is 64 cycles of it.
    Errors: NK101, NK102, NK107 to NK111, NK201, NK301, NK306, NK507, NK606, NK609, NK615, NK621.
    Source: nki.isa.tensor_scalar_reduce (NKI 0.7).
    """
    operator = scalar_operands.arithmetic_operator(check, "op0", op0)
    reduction = reduce_registers.reducer(check, "reduce_op", reduce_op, _REDUCTIONS)
    guards.one_of(check, "reduce_cmd", reduce_cmd, reduce_cmds, _COMMANDS)
    if reverse0:
        message = "`reverse0` is documented as not supported yet"
        remedy = "Call nisa.tensor_scalar with reverse0=True, and nisa.tensor_reduce on its result."
        check.refuse("NK609", message, remedy=remedy)
    guards.tiles(check, dst=dst, data=data, reduce_res=reduce_res)
    instruction_guards.stated_dimensions(check, 4, dst=dst, data=data)
    guards.same_elements(check, ("dst", dst), ("data", data))
    guards.not_packed(check, dst=dst, data=data, reduce_res=reduce_res)
    scalar_operands.operand_of(check, "operand0", operator, operand0, data)
    scalar_operands.single_precision(check, "operand0", operand0)
    reduce_registers.result_tile(check, reduce_res, data)
    reduce_registers.initial_value(check, "reduce_init", reduce_init, reduce_cmd, data)
    if reduce_init is not None and reduce_cmd is not reduce_cmds.load_reduce:
        message = f"`reduce_init` goes with reduce_cmd=load_reduce only, not with {reduce_cmd}"
        remedy = "Pass reduce_cmd=nisa.reduce_cmd.load_reduce to start from reduce_init, or leave it out."
        check.fail("NK609", message, remedy=remedy)

    compute = _reducing(check, operator, reduction, reduce_cmd, dst, data, reduce_res, negated=bool(reduce_res_negate))
    compute = scalar_operands.zero_if_unary(check, "operand0", operator, operand0, compute)

    read_out = check.chip.min_initiation_cycles if reduce_res is not None else 0
    inputs = {"data": ALONG_FREE, "operand0": BROADCAST}
    total = reduce_registers.register_elements("vector", reduce_cmd, inputs, "reduce_init")
    elements = made(total, dst={"data": SAME, "operand0": BROADCAST})
    lanes = reduce_registers.kept_apart(reduce_cmd, reduce_res)
    return Plan("vector", streaming(check.chip, data) + read_out, compute, elements, lanes=lanes)


def _reducing(
    check: Check,
    operator: Operator,
    reduction: Operator,
    command: reduce_cmds,
    dst: NkiTensor,
    data: NkiTensor,
    reduce_res: NkiTensor | None,
    *,
    negated: bool,
) -> Callable[..., None]:
    """Return the operator, then its results into the registers, and these into ``reduce_res``."""
    reduce = reduce_registers.commanded(check, "vector", command, reduction, data, reduce_res, negated=negated)
    (step,) = steps_of(operator, None, False, False)
    dtype, shape = dst.dtype, data.shape
    direct = in_float32(dtype, data.dtype) and dst.shape == shape and dst.layout.injective

    def compute(destination: Array, values: Array, operand: Value, result: Array | None, initial: Value) -> None:
        start = initial.copy() if isinstance(initial, np.ndarray) else initial  # it may lie in the destination
        out = destination if direct else np.empty(shape, working(destination, values))
        step(to_float32(values), broadcast(operand, len(shape)), out)
        if not direct:
            put(destination, out, dtype)
        reduce(out, result, start)

    exactly, compares = steps_in_float64((step,), shape), operator.name in COMPARISONS
    return lost_integers.watched(compute, exactly, dtype, (data.dtype,), compares=compares)
