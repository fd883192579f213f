"""Activations with a reduction on the side: activation_reduce, and NeuronCore-v4's activate2 and exponential."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nkitools.chip.dtypes import FLOATS, INTEGERS, tfloat32, uint32
from nkitools.chip.numerics import Array, to_float32, working
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.engines.activation_ranges import watched
from nkitools.engines.arithmetic import Step, broadcast, steps_of
from nkitools.engines.cast_on_write import put
from nkitools.engines.costs import streaming
from nkitools.engines.enums import engine as engines
from nkitools.engines.enums import reduce_cmd as reduce_cmds
from nkitools.engines.operators import OPERATORS, Operator, OperatorToken, token_name
from nkitools.isa.activation import activation, activation_cycles, check_engine
from nkitools.issue import guards, instruction_guards, reduce_registers, scalar_operands
from nkitools.issue.element_maps import made
from nkitools.issue.element_rules import ALONG_FREE, BROADCAST, SAME
from nkitools.issue.instruction import Check, Dst, Operand, OptionalDst, OptionalOperand, Plan, Src, instruction
from nkitools.issue.plan import Value
from nkitools.rules.finding import report

_EXPONENTS = (*FLOATS, *INTEGERS)
_EXPONENTIALS = (*FLOATS, tfloat32, *(dtype for dtype in INTEGERS if dtype is not uint32))
_SUMS = (*FLOATS, tfloat32)
_EXPONENTIAL_DIMENSIONS = 4
_EXPONENTIAL_COMMANDS = (reduce_cmds.idle, *reduce_registers.REDUCING)

_STAGES = (
    ("multiply", "add"),
    ("multiply", "subtract"),
    ("multiply", "bypass"),
    ("add", "bypass"),
    ("subtract", "bypass"),
    ("bypass", "bypass"),
)
_REDUCTIONS = ("add", "maximum", "minimum", "abs_max", "abs_min")

Function = Callable[[Array, Any, Array], Any]  # (value, relu_param, out)


@instruction
def activation_reduce(
    check: Check,
    dst: Dst,
    op: OperatorToken,
    data: Src,
    reduce_op: OperatorToken,
    reduce_res: OptionalDst,
    bias: OptionalOperand = None,
    scale: Operand = 1.0,
    name: str | None = None,
) -> Plan:
    """``dst = op(data * scale + bias)`` on the Scalar Engine, and the sum of the results along all free dimensions.

    The same as nisa.activation with ``reduce_cmd=reset_reduce``, which AWS recommends instead: operands, dtypes and the
    shared reduce registers are described there. ``reduce_op`` must be ``nl.add``. (AWS's docstring demands that of
    NeuronCore-v2 only, the one of nisa.activation of every chip.) ``reduce_res`` (partitions, 1) receives the sums of
    the float32 results; None leaves the sums in the registers. A ``dst`` of step 0, which has one element for all
    results, keeps the last of them.
    Errors: NK101, NK102, NK107 to NK111, NK201, NK301, NK306, NK606, NK607, NK609, NK623.
    Source: nki.isa.activation_reduce (NKI 0.6).
    """
    if reduce_op is None:
        check.refuse("NK609", "`reduce_op` is missing", remedy="Pass reduce_op=nl.add.")
    plan = activation.function(
        check,
        dst=dst,
        op=op,
        data=data,
        bias=bias,
        scale=scale,
        reduce_op=reduce_op,
        reduce_res=reduce_res,
        reduce_cmd=reduce_cmds.reset_reduce,
    )
    activate, overlaps = plan.compute, not dst.layout.injective

    def compute(destination: Array, values: Array, result: Array | None, bias_value: Value, scale_value: Value) -> None:
        # Kernels that want the sum only give a destination of step 0: it keeps the last result, the sum is of all.
        target = np.empty(destination.shape, destination.dtype) if overlaps else destination
        activate(target, values, bias_value, scale_value, result)
        if overlaps:
            np.copyto(destination, target)

    plan.compute = compute
    return plan


@instruction
def activate2(
    check: Check,
    dst: Dst,
    op: OperatorToken,
    data: Src,
    imm0: Operand,
    imm1: Operand,
    op0: OperatorToken,
    op1: OperatorToken,
    relu_param: Operand = 0.0,
    reverse0: bool = False,
    reverse1: bool = False,
    reduce_op: OperatorToken | None = None,
    reduce_res: OptionalDst = None,
    reduce_cmd: reduce_cmds = reduce_cmds.idle,
    engine: engines = engines.scalar,
    name: str | None = None,
) -> Plan:
    """``dst = op((data <op0> imm0) <op1> imm1)`` on the Scalar Engine of NeuronCore-v4, with an optional reduction.

    All steps are in float32; ``dst`` is cast once. Equal partitions and elements per partition, no packed dtypes.
    ``(op0, op1)``: multiply then add, subtract or bypass; add, subtract or bypass then bypass. ``reverse0`` and
    ``reverse1`` swap the sides of an operator; of bypass they are refused. ``imm0``, ``imm1``, ``relu_param``: numbers
    or (partitions, 1) vectors; if ``imm0`` and ``imm1`` are both vectors, their dtypes are equal. ``relu_param`` is the
    slope of nl.prelu for negative inputs; other functions do not use it.
    ``reduce_cmd`` acts on the engine's reduce registers, one a partition: ``reset`` sets them to the identity of
    ``reduce_op`` (0 without one), ``reduce`` reduces the float32 results of all free dimensions into them,
    ``reset_reduce`` does both, ``idle`` leaves them. ``reduce_op``: add, maximum, minimum, abs_max or abs_min;
    ``reduce`` and ``reset_reduce`` need one. (The pseudo code reduces ``dst``; we take it to mean the values before the
    cast, as elsewhere.) ``reduce_res`` (partitions, 1) receives the registers, NaN where nothing has set them (NK507).
    Memory: SBUF or PSUM. ``engine`` may be GpSimd (NKI 0.7), which does not reduce and does not reach PSUM. Cost: not
    published; we take that of nisa.activation.
    Errors: NK101, NK102, NK107 to NK111, NK201, NK206, NK301, NK306, NK507, NK606, NK609.
    Source: nki.isa.activate2 (NKI 0.7); trainium3_arch, More flexible nisa.activation.
    """
    remedy = "Use nisa.activation, which has scale, bias and a sum, or run on trn3."
    guards.has_instruction(check, "fused_activation", remedy)
    function = _function(check, op)
    steps = _stages(check, op0, op1, reverse0, reverse1)
    guards.one_of(check, "reduce_cmd", reduce_cmd, reduce_cmds, reduce_registers.COMMANDS)
    guards.tiles(check, dst=dst, data=data, reduce_res=reduce_res)
    guards.same_elements(check, ("dst", dst), ("data", data))
    for role, operand in (("imm0", imm0), ("imm1", imm1), ("relu_param", relu_param)):
        guards.vector_operand(check, role, operand, data)
    guards.not_packed(check, dst=dst, data=data, imm0=imm0, imm1=imm1, relu_param=relu_param, reduce_res=reduce_res)
    _same_immediates(check, imm0, imm1)
    reduction = _reduction(check, reduce_op, reduce_cmd)
    reduce_registers.result_tile(check, reduce_res, data)
    reduces = reduce_cmd is not reduce_cmds.idle or reduce_res is not None
    check_engine(check, engine, reduces=reduces, dst=dst, data=data, imm0=imm0, imm1=imm1, relu_param=relu_param)

    activate = _activate(function, steps, dst, data)
    compute = _reducing(check, activate, reduction, reduce_cmd, reduce_res, data) if reduces else activate

    cycles = activation_cycles(check, engine, data, reduce_res)
    numbers = {"imm0": BROADCAST, "imm1": BROADCAST, "relu_param": BROADCAST}
    total = reduce_registers.register_elements("scalar", reduce_cmd, {"data": ALONG_FREE, **numbers}) if reduces else {}
    elements = made(total, dst={"data": SAME, **numbers})
    lanes = reduce_registers.kept_apart(reduce_cmd, reduce_res) if reduces else "travel"
    return Plan(engine.name, cycles, compute, elements, lanes=lanes)


def _function(check: Check, token: OperatorToken) -> Function:
    """Return the activation function; nl.prelu is the one with a parameter."""
    if token_name(token) == "prelu":
        return _prelu
    function = watched(guards.activation_function(check, "op", token))
    return lambda value, parameter, out: function(value, out=out)


def _prelu(value: Array, slope: Value, out: Array) -> None:
    """``value`` above 0, ``slope * value`` below; a slope of 0 makes minus infinity 0, as nl.relu does."""
    below = np.where(np.equal(slope, 0), np.float32(0), value * slope)
    np.copyto(out, np.where(value < 0, below, value))


def _stages(
    check: Check, op0: OperatorToken, op1: OperatorToken, reverse0: bool, reverse1: bool
) -> tuple[Step | None, Step | None]:
    """NK306, NK609: one of the six pairs of operators, and what is reversed is there."""
    pair = (guards.operator(check, "op0", op0), guards.operator(check, "op1", op1))
    names = (pair[0].name, pair[1].name)
    if names not in _STAGES:
        possible = ", ".join(f"(nl.{first}, nl.{second})" for first, second in _STAGES)
        check.refuse("NK306", f"(`op0`, `op1`)=({pair[0]}, {pair[1]}) is not possible; possible are {possible}")
    for index, reverse in enumerate((reverse0, reverse1)):
        if reverse and names[index] == "bypass":
            message = f"`reverse{index}` needs an operator, `op{index}` is nl.bypass"
            check.refuse("NK609", message, remedy=f"Leave reverse{index} out.")
    first, second = steps_of(*pair, bool(reverse0), bool(reverse1))
    return (None if names[0] == "bypass" else first), (None if names[1] == "bypass" else second)


def _same_immediates(check: Check, imm0: Operand, imm1: Operand) -> None:
    if isinstance(imm0, NkiTensor) and isinstance(imm1, NkiTensor) and imm0.dtype is not imm1.dtype:
        check.fail(
            "NK301", f"`imm0`, {describe(imm0)}, and `imm1`, {describe(imm1)}, must be of the same dtype", imm0, imm1
        )


def _reduction(check: Check, reduce_op: OperatorToken | None, command: reduce_cmds) -> Operator | None:
    if reduce_op is not None:
        return reduce_registers.reducer(check, "reduce_op", reduce_op, _REDUCTIONS)
    if command in reduce_registers.REDUCING:
        names = ", ".join(f"nl.{name}" for name in _REDUCTIONS)
        check.refuse(
            "NK609", f"`reduce_cmd`={command} needs `reduce_op`, which is missing", remedy=f"Pass one of {names}."
        )
    return None


def _activate(
    function: Function, steps: tuple[Step | None, Step | None], dst: NkiTensor, data: NkiTensor
) -> Callable[..., Array]:
    """Return the three stages into a float32 tile of their own, which is returned beside being written."""
    dtype, shape, ndim = dst.dtype, data.shape, data.ndim

    def activate(
        destination: Array, values: Array, imm0: Value, imm1: Value, relu_param: Value, result: None = None
    ) -> Array:
        out = np.empty(shape, working(destination, values))
        value = to_float32(values)
        for step, operand in zip(steps, (imm0, imm1), strict=True):
            if step is not None:
                step(value, broadcast(operand, ndim), out)
                value = out
        function(value, broadcast(relu_param, ndim), out)
        put(destination, out, dtype)
        return out

    return activate


def _reducing(
    check: Check,
    activate: Callable[..., Array],
    reduction: Operator | None,
    command: reduce_cmds,
    reduce_res: NkiTensor | None,
    data: NkiTensor,
) -> Callable[..., None]:
    """Return the activation, then the commands to the engine's reduce registers."""
    reduce = reduce_registers.commanded(check, "scalar", command, reduction, data, reduce_res)

    def compute(
        destination: Array, values: Array, imm0: Value, imm1: Value, relu_param: Value, result: Array | None
    ) -> None:
        reduce(activate(destination, values, imm0, imm1, relu_param), result, None)

    return compute


@instruction
def exponential(
    check: Check,
    dst: Dst,
    src: Src,
    max_value: Operand = 0.0,
    reduce_res: OptionalDst = None,
    reduce_cmd: reduce_cmds = reduce_cmds.idle,
    reduce_init: Operand = 0.0,
    name: str | None = None,
) -> Plan:
    """``dst = exp(src - max_value)`` on the Vector Engine of NeuronCore-v4, in float32, with an optional running sum.

    ``max_value``: a number or a float32 (partitions, 1) vector. ``reduce_cmd`` acts on the reduce registers, one a
    partition: ``reset_reduce`` sets them to 0, ``load_reduce`` to ``reduce_init``, ``reduce`` leaves them, and all
    three add the float32 results of all free dimensions. ``idle`` adds nothing; afterwards the registers are unknown.
    ``reduce_init``: a number or a float32 (partitions, 1) vector; without ``load_reduce`` only 0. ``reduce_res``
    (partitions, 1) receives the registers; with ``idle`` that is NaN (NK507). Up to four dimensions; equal partitions
    and elements per partition. Memory: SBUF or PSUM.
    Dtypes: float8_e4m3, float8_e5m2, float16, bfloat16, float32 and all integers of up to 32 bits; ``dst`` also
    tfloat32, but not uint32; ``reduce_res`` one of these floats or tfloat32. Cost: four elements per cycle
    (trainium3_arch); with ``reduce_res`` one more shortest instruction.
    Errors: NK101, NK102, NK107 to NK111, NK201, NK301, NK507, NK606, NK609.
    Source: nki.isa.exponential (NKI 0.6); trainium3_arch, Fast Exponential Evaluation.
    """
    remedy = "Use nisa.activation with op=nl.exp and the negative maximum as bias, or run on trn3."
    guards.has_instruction(check, "fused_activation", remedy)
    guards.one_of(check, "reduce_cmd", reduce_cmd, reduce_cmds, _EXPONENTIAL_COMMANDS)
    guards.tiles(check, dst=dst, src=src, reduce_res=reduce_res)
    guards.same_elements(check, ("dst", dst), ("src", src))
    for role, tensor in (("dst", dst), ("src", src)):
        instruction_guards.dimensions(check, role, tensor, _EXPONENTIAL_DIMENSIONS)
    guards.not_packed(check, dst=dst, src=src, reduce_res=reduce_res)
    scalar_operands.one_of_dtypes(check, "src", src, _EXPONENTS)
    scalar_operands.one_of_dtypes(check, "dst", dst, _EXPONENTIALS)
    scalar_operands.one_of_dtypes(check, "reduce_res", reduce_res, _SUMS)
    reduce_registers.result_tile(check, reduce_res, src, "src")
    for role, value in (("max_value", max_value), ("reduce_init", reduce_init)):
        guards.vector_operand(check, role, value, src)
        scalar_operands.single_precision(check, role, value)
    loads = reduce_cmd is reduce_cmds.load_reduce
    if isinstance(reduce_init, NkiTensor) and not loads:
        _unused_initial(check.instruction, describe(reduce_init), reduce_cmd)

    compute = _exponential(check, dst, src, reduce_res, reduce_cmd)

    read_out = check.chip.min_initiation_cycles if reduce_res is not None else 0
    inputs = {"src": ALONG_FREE, "max_value": BROADCAST}
    total = reduce_registers.register_elements("vector", reduce_cmd, inputs, "reduce_init")
    elements = made(total, dst={"src": SAME, "max_value": BROADCAST})
    lanes = reduce_registers.kept_apart(reduce_cmd, reduce_res)
    return Plan("vector", streaming(check.chip, src, 0.25) + read_out, compute, elements, lanes=lanes)


def _unused_initial(instruction: str, value: Any, command: reduce_cmds) -> None:
    message = f"{instruction}: `reduce_init` must be 0 or unset with {command}, it is {value}"
    remedy = "Pass reduce_cmd=nisa.reduce_cmd.load_reduce to start from reduce_init, or leave it out."
    report("NK609", message, remedy=remedy)


def _exponential(
    check: Check, dst: NkiTensor, src: NkiTensor, reduce_res: NkiTensor | None, command: reduce_cmds
) -> Callable[..., None]:
    reduce = reduce_registers.commanded(
        check, "vector", command, guards.in_sum_order(check, OPERATORS["add"]), src, reduce_res
    )
    dtype, shape, instruction_name = dst.dtype, src.shape, check.instruction

    def compute(destination: Array, values: Array, maximum: Value, result: Array | None, initial: Value) -> None:
        if command is not reduce_cmds.load_reduce and not isinstance(initial, np.ndarray) and initial != 0:
            _unused_initial(instruction_name, initial, command)
        out = np.empty(shape, working(destination, values))
        np.subtract(to_float32(values), broadcast(maximum, len(shape)), out=out)
        np.exp(out, out=out)
        start = initial.copy() if isinstance(initial, np.ndarray) else initial  # it may lie in the destination
        put(destination, out, dtype)
        reduce(out, result, start)

    return compute
