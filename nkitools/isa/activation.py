"""The Scalar Engine: activation functions with scale, bias and a reduction on the side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nkitools.chip.dtypes import float32, tfloat32
from nkitools.chip.numerics import Array, to_float32, working
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.engines import lost_integers
from nkitools.engines.activation_ranges import watched
from nkitools.engines.cast_on_write import in_float32, put
from nkitools.engines.costs import GPSIMD_START, streaming
from nkitools.engines.enums import engine as engines
from nkitools.engines.enums import reduce_cmd as reduce_cmds
from nkitools.engines.operators import ACTIVATIONS, OPERATORS, Compute, OperatorToken
from nkitools.issue import guards
from nkitools.issue.element_maps import made
from nkitools.issue.element_rules import ALONG_FREE, BROADCAST, SAME, Rule
from nkitools.issue.instruction import Check, Dst, Operand, OptionalDst, OptionalOperand, Plan, Src, instruction
from nkitools.issue.known_forms import known_fault
from nkitools.issue.plan import Value
from nkitools.issue.reduce_registers import COMMANDS, commanded, kept_apart, register_elements, result_tile
from nkitools.rules.finding import report

_COPY = ACTIVATIONS["copy"].compute
_OF_INTEGERS = tuple(ACTIVATIONS[name].compute for name in ("copy", "abs", "relu", "sign", "square"))
_REDUCING = (reduce_cmds.reduce, reduce_cmds.reset_reduce)

Activate = Callable[..., Array]  # (destination, data, bias, scale), and no place for a reduction


@instruction
def activation(
    check: Check,
    dst: Dst,
    op: OperatorToken,
    data: Src,
    bias: OptionalOperand = None,
    scale: Operand = 1.0,
    reduce_op: OperatorToken | None = None,
    reduce_res: OptionalDst = None,
    reduce_cmd: reduce_cmds = reduce_cmds.idle,
    engine: engines = engines.scalar,
    name: str | None = None,
) -> Plan:
    """``dst = op(data * scale + bias)`` on the Scalar Engine, in float32, with an optional sum of the results.

    From NeuronCore-v4 on ``engine`` may be GpSimd (NKI 0.7), which does not reduce and does not reach PSUM; its cost is
    not published, and we take one start and one element per cycle.

    Shapes: ``dst`` and ``data`` have equally many elements in each partition. ``scale``: a number or a float32
    (partitions, 1) vector; ``bias``: None (0), or such a vector of any dtype but tfloat32 and packed ones, from
    NeuronCore-v3 on also a number. ``reduce_cmd`` drives one register a partition: ``reset`` zeroes it, ``reduce``
    adds the sum of this call's float32 results, ``reset_reduce`` does both, ``idle`` leaves it; ``reduce_res``
    (partitions, 1) receives the register, NaN where nothing has reset it. ``reduce_op`` is ``nl.add`` or None;
    ``reduce`` and ``reset_reduce`` need ``nl.add``. With ``reduce_op`` and ``reduce_res``, but without a command, the
    call is summed alone, as by ``reset_reduce``: a trn2 does so (NK507, a hint).
    Memory: SBUF or PSUM. The engine's own approximation error is not modelled. Inputs outside of the valid range of
    ``op`` are NK305 (the ranges: Supported Activation Functions in the reference).
    Errors: NK101, NK102, NK107 to NK111, NK201, NK206, NK301, NK306, NK507, NK606, NK607, NK609, NK623.
    Source: nki.isa.activation (NKI 0.7).
    """
    function = guards.activation_function(check, "op", op)
    guards.one_of(check, "reduce_cmd", reduce_cmd, reduce_cmds, COMMANDS)
    reduce_cmd = _commanded(check, reduce_cmd, reduce_op, reduce_res)
    guards.tiles(check, dst=dst, data=data, reduce_res=reduce_res)
    guards.same_elements(check, ("dst", dst), ("data", data))
    guards.not_packed(check, dst=dst, data=data, reduce_res=reduce_res)
    _check_scale_and_bias(check, data, scale, bias, function.name)
    _check_reduction(check, data, reduce_op, reduce_res, reduce_cmd)
    reduces = reduce_cmd is not reduce_cmds.idle or reduce_res is not None
    check_engine(check, engine, reduces=reduces, dst=dst, data=data, scale=scale, bias=bias)
    if function.name == "copy" and isinstance(bias, NkiTensor):
        known_fault(check, "activation-copy-with-bias", f"`bias`, {describe(bias)}, beside nl.copy", bias)

    activate = _activate(watched(function), dst, data, reduces)
    if not check.chip.immediate_bias and bias is not None:
        activate = _without_immediate_bias(activate, data.shape[0], check.chip.name)
    compute: Callable[..., Any] = _reducing(check, activate, reduce_cmd, reduce_res, data) if reduces else activate

    cycles = activation_cycles(check, engine, data, reduce_res)
    vectors: dict[str, Rule] = {"bias": BROADCAST, "scale": BROADCAST}
    reduction = register_elements("scalar", reduce_cmd, {"data": ALONG_FREE, **vectors}) if reduces else {}
    elements = made(reduction, dst={"data": SAME, **vectors})
    lanes = kept_apart(reduce_cmd, reduce_res) if reduces else "travel"
    return Plan(engine.name, cycles, compute, elements, lanes=lanes, function=function.name)


def _commanded(
    check: Check, command: reduce_cmds, reduce_op: OperatorToken | None, reduce_res: NkiTensor | None
) -> reduce_cmds:
    """Return the command of a call; one that asks for a sum and gives no command resets and reduces (NK507, a hint).

    A public rms norm does so in a loop and was right on a trn2 (nki 0.6.0), where the letter has the register kept.
    """
    if command is not reduce_cmds.idle or reduce_op is None or reduce_res is None:
        return command
    message = (
        "`reduce_op` and `reduce_res` are given without a `reduce_cmd`; the sum of this call is computed, "
        "as a trn2 does, where the documents have the registers as an earlier instruction left them"
    )
    remedy = "Pass reduce_cmd=nisa.reduce_cmd.reset_reduce; to read the registers out, leave reduce_op away."
    check.goes_beyond(message, reduce_res, remedy=remedy, rule="NK507", severity="hint")
    return reduce_cmds.reset_reduce


def check_engine(check: Check, engine: engines, *, reduces: bool, **operands: OptionalOperand) -> None:
    """NK206, NK606: the Scalar Engine, or GpSimd where the chip has it, without a reduction and without PSUM."""
    guards.one_of(check, "engine", engine, engines, (engines.scalar, engines.gpsimd))
    if engine is engines.gpsimd:
        guards.came_later(
            check,
            "gpsimd_activation",
            f"`engine`={engine}",
            "Leave engine= out, or run on a newer chip.",
            argument="engine",
        )
    if engine is engines.gpsimd and reduces:
        remedy = "Leave engine= out, or reduce with nisa.tensor_reduce."
        message = "only the Scalar Engine reduces (`reduce_cmd`, `reduce_res`)"
        check.fail("NK206", message, remedy=remedy, argument="engine")
    guards.gpsimd_reaches(check, engine, **operands)


def activation_cycles(check: Check, engine: engines, data: NkiTensor, reduce_res: NkiTensor | None) -> float:
    """Return the cost of an activation, and of reading the registers out.

    Reading takes an instruction of its own (activation_reduce docstring, 2.26).
    """
    if engine is engines.gpsimd:
        return GPSIMD_START + data.layout.free_elements
    return streaming(check.chip, data) + (check.chip.min_initiation_cycles if reduce_res is not None else 0)


def _check_scale_and_bias(check: Check, data: NkiTensor, scale: Operand, bias: OptionalOperand, function: str) -> None:
    guards.vector_operand(check, "scale", scale, data)
    guards.vector_operand(check, "bias", bias, data)
    if isinstance(scale, NkiTensor) and scale.dtype is not float32:
        check.fail("NK301", f"`scale` must be float32, it is {describe(scale)}", scale, argument="scale")
    if isinstance(bias, NkiTensor):
        if bias.dtype is tfloat32 or bias.dtype.kind == "packed":
            message = f"`bias` may be of any dtype but tfloat32, it is {describe(bias)}"
            check.fail("NK301", message, bias, argument="bias")
        if function == "reciprocal" and not check.chip.immediate_bias:
            check.fail(
                "NK606", f"nl.reciprocal takes no `bias` on {check.chip.name}, it is given {describe(bias)}", bias
            )


def _check_reduction(
    check: Check, data: NkiTensor, reduce_op: OperatorToken | None, reduce_res: NkiTensor | None, command: reduce_cmds
) -> None:
    if reduce_op is not None:
        operator = guards.operator(check, "reduce_op", reduce_op)
        if operator.name != "add":
            check.refuse("NK306", f"`reduce_op` must be nl.add, it is {operator}")
    elif command in _REDUCING:
        check.refuse("NK609", f"`reduce_cmd`={command} needs `reduce_op`=nl.add")
    result_tile(check, reduce_res, data)


def _activate(function: Compute, dst: NkiTensor, data: NkiTensor, reduces: bool) -> Activate:
    """``op(data * scale + bias)``; if it ``reduces``, it returns the float32 results beside writing them."""
    # A destination that names one element twice cannot hold the results that the registers still add up.
    direct = in_float32(dst.dtype, data.dtype) and dst.shape == data.shape and dst.layout.injective
    dtype, shape, ndim = dst.dtype, data.shape, data.ndim
    # Through float32 and back a value stays as it is.
    unchanged = dtype is data.dtype and dtype.is_float and dtype is not tfloat32 and dst.shape == shape
    moves = function is _COPY and not reduces and unchanged

    def activate(destination: Array, values: Array, bias: Value | None, scale: Value, result: None = None) -> Array:
        scales = isinstance(scale, np.ndarray) or scale != 1
        if moves and bias is None and not scales:
            np.copyto(destination, values)
            return destination
        out = destination if direct else np.empty(shape, working(destination, values))
        value = values if direct else to_float32(values)
        added = 0 if bias is None else _column(bias, ndim)
        if scales:
            if isinstance(added, np.ndarray):
                added = added.copy()  # it may lie in the destination
            value = np.multiply(value, _column(scale, ndim), out=out)
        if isinstance(added, np.ndarray) or added != 0:
            value = np.add(value, added, out=out)
        function(value, out=out)
        if not direct:
            put(destination, out, dtype)
        return out

    if function not in _OF_INTEGERS:
        return activate

    def exactly(values: Array, bias: Value, scale: Value, *rest: Any) -> Array:
        value = values.astype(np.float64) * _column(scale, ndim) + _column(bias, ndim)
        function(value, out=value)
        return np.asarray(value)

    return lost_integers.watched(activate, exactly, dtype, (data.dtype,))


def _column(operand: Value, ndim: int) -> Any:
    """Return a (partitions, 1) vector so that it broadcasts over all free dimensions, or a number; no operand is 0."""
    if isinstance(operand, np.ndarray):
        return to_float32(operand).reshape(operand.shape[0], *[1] * (ndim - 1))
    return np.float32(0 if operand is None else operand)


def _without_immediate_bias(activate: Activate, partitions: int, chip: str) -> Activate:
    """NK606: on NeuronCore-v2 a bias is a vector. A number is data, looked at in each call; 0 is no bias."""

    def checked(destination: Array, values: Array, bias: Value, scale: Value, result: None = None) -> Array:
        if not isinstance(bias, np.ndarray) and bias != 0:
            message = f"activation: `bias`={bias} is a number; on {chip} it must be a ({partitions}, 1) tile"
            report("NK606", message, remedy="Put the number into a (partitions, 1) tile with nisa.memset.")
        return activate(destination, values, bias, scale)

    return checked


def _reducing(
    check: Check, activate: Activate, command: reduce_cmds, reduce_res: NkiTensor | None, data: NkiTensor
) -> Callable[..., None]:
    """Return the activation, then the commands to the engine's reduce registers."""
    added = guards.in_sum_order(check, OPERATORS["add"])
    reduce = commanded(check, "scalar", command, added, data, reduce_res)

    def compute(destination: Array, values: Array, bias: Value, scale: Value, result: Array | None = None) -> None:
        reduce(activate(destination, values, bias, scale), result, None)

    return compute
