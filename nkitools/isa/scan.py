"""The Vector Engine's instructions whose results go into the next ones: running reductions and scans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nkitools.chip.dtypes import DType, as_dtype
from nkitools.chip.numerics import Array, to_float32, working
from nkitools.engines import lost_integers
from nkitools.engines.arithmetic import broadcast, steps_of
from nkitools.engines.cast_on_write import put
from nkitools.engines.costs import streaming
from nkitools.engines.enums import reduce_cmd as reduce_cmds
from nkitools.engines.operators import Operator, OperatorToken
from nkitools.issue import guards, reduce_registers, scalar_operands
from nkitools.issue.element_maps import VECTOR_REGISTERS, made
from nkitools.issue.element_rules import ALONG_FREE, BROADCAST, SCAN, Rule
from nkitools.issue.instruction import Check, Dst, Operand, OptionalOperand, Plan, Src, instruction
from nkitools.issue.plan import Value

_FLOATS = ("bfloat16", "float16", "float32", "float8_e4m3", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu")
_CUMULATIVE_DTYPES = tuple(map(as_dtype, (*_FLOATS, "uint8", "uint16", "int8", "int16")))
_COMMANDS = (reduce_cmds.reset_reduce, reduce_cmds.reduce, reduce_cmds.load_reduce)
_COMMUTATIVE = ("add", "multiply", "maximum", "minimum")
_RUNNING = ("add", "subtract", "multiply", "maximum", "minimum")


@instruction
def tensor_scalar_cumulative(
    check: Check,
    dst: Dst,
    src: Src,
    op0: OperatorToken,
    op1: OperatorToken,
    imm0: Operand,
    imm1: OptionalOperand = None,
    reduce_cmd: reduce_cmds = reduce_cmds.reset_reduce,
    name: str | None = None,
) -> Plan:
    """Write a running reduction: each element of ``dst`` is ``op1(src <op0> imm0, the element before it)``.

    On the Vector Engine. ``op0``: arithmetic (of a unary one ``imm0`` is 0); ``op1``: add, subtract, multiply, maximum
    or minimum. ``imm0`` and ``imm1``: a number or a float32 (partitions, 1) vector. The element before the first one is
    the reduce register, one a partition: ``reset_reduce`` sets it to the identity of ``op1``, ``load_reduce`` to
    ``imm1``, which other commands do not use, ``reduce`` goes on from what it holds; the last result stays in it. All
    in float32 and in order over all free dimensions, cast on write: the next element gets the float32 result. With
    subtract the element before is the right side, as in AWS's pseudo code, which also has a ``reverse0`` that the
    signature lacks. Equal partitions and elements per partition. Dtypes: bfloat16, float16, float32, float8, (u)int8,
    (u)int16. Memory: SBUF or PSUM. Cost: not published; we take one element per cycle.
    Errors: NK101, NK102, NK107 to NK111, NK201, NK301, NK306, NK401, NK507, NK606, NK609, NK615, NK621.
    Source: nki.isa.tensor_scalar_cumulative (NKI 0.6).
    """
    operator = scalar_operands.arithmetic_operator(check, "op0", op0)
    running = reduce_registers.reducer(check, "op1", op1, _RUNNING)
    guards.one_of(check, "reduce_cmd", reduce_cmd, reduce_cmds, _COMMANDS)
    guards.tiles(check, dst=dst, src=src)
    guards.same_elements(check, ("dst", dst), ("src", src))
    guards.not_packed(check, dst=dst, src=src)
    scalar_operands.one_of_dtypes(check, "src", src, _CUMULATIVE_DTYPES)
    scalar_operands.one_of_dtypes(check, "dst", dst, _CUMULATIVE_DTYPES)
    scalar_operands.operand_of(check, "imm0", operator, imm0, src)
    scalar_operands.single_precision(check, "imm0", imm0)
    reduce_registers.initial_value(check, "imm1", imm1, reduce_cmd, src)

    lanes = reduce_registers.Lanes(check.instruction, "vector", src, running.name)
    (step,) = steps_of(operator, None, False, False)
    identity, accumulate = reduce_registers.IDENTITY[running.name], _accumulating(running)
    dtype, shape = dst.dtype, src.shape

    def compute(destination: Array, values: Array, operand: Value, initial: Value) -> None:
        registers = lanes.begin(reduce_cmd, identity, initial)
        out = np.empty(shape, working(destination, values))
        step(to_float32(values), broadcast(operand, len(shape)), out)
        rows = out.reshape(shape[0], -1)
        accumulate(rows, registers)
        registers[:] = rows[:, -1]
        put(destination, out, dtype)

    compute = scalar_operands.zero_if_unary(check, "imm0", operator, imm0, compute)

    inputs = {"src": ALONG_FREE, "imm0": BROADCAST}
    last = reduce_registers.register_elements("vector", reduce_cmd, inputs, "imm1")[VECTOR_REGISTERS]
    first: dict[str, Rule] = {each: BROADCAST for each in (VECTOR_REGISTERS, "imm1") if each in last}
    elements = made({"dst": {"src": SCAN, "imm0": BROADCAST, **first}, VECTOR_REGISTERS: last})
    return Plan("vector", streaming(check.chip, src), compute, elements)


def _accumulating(operator: Operator) -> Callable[[Array, Array], None]:
    """``rows[:, i] = op(rows[:, i], rows[:, i - 1])`` in place and in order, the registers before the first column."""
    function: Any = operator.compute

    def in_order(rows: Array, registers: Array) -> None:
        function(rows[:, 0], registers, out=rows[:, 0])
        function.accumulate(rows, axis=1, out=rows)

    def from_the_right(rows: Array, registers: Array) -> None:
        before = registers
        for column in rows.T:
            function(column, before, out=column)
            before = column

    return from_the_right if operator.name == "subtract" else in_order


@instruction
def tensor_tensor_scan(
    check: Check,
    dst: Dst,
    data0: Src,
    data1: Src,
    initial: Operand,
    op0: OperatorToken,
    op1: OperatorToken,
    reverse0: bool = False,
    reverse1: bool = False,
    name: str | None = None,
) -> Plan:
    """``dst[i] = (data0[i] <op0> dst[i - 1]) <op1> data1[i]`` in each partition on the Vector Engine, in float32.

    The element before the first one is ``initial``: a number or a (partitions, 1) tile. Both operators are binary and
    arithmetic; ``reverse0``/``reverse1`` swap their sides. The state stays in float32 between the elements, in order
    over all free dimensions, and is cast to ``dst.dtype`` on write. Equal partitions and elements per partition.
    Memory: SBUF or PSUM, ``data0`` and ``data1`` not both in PSUM. Cost: SDK 2.26.
    Errors: NK101, NK102, NK107 to NK111, NK201, NK301, NK306, NK606, NK609, NK615, NK621.
    Source: nki.isa.tensor_tensor_scan (NKI 0.6).
    """
    first = scalar_operands.arithmetic_operator(check, "op0", op0, binary=True)
    second = scalar_operands.arithmetic_operator(check, "op1", op1, binary=True)
    guards.tiles(check, dst=dst, data0=data0, data1=data1)
    guards.same_elements(check, ("data0", data0), ("data1", data1))
    guards.same_elements(check, ("dst", dst), ("data0", data0))
    guards.not_packed(check, dst=dst, data0=data0, data1=data1, initial=initial)
    scalar_operands.not_both_in_psum(check, ("data0", data0), ("data1", data1))
    guards.vector_operand(check, "initial", initial, data0)

    steps = (_sided(first, bool(reverse0)), _sided(second, bool(reverse1)))
    # 1 * state is the state, bit for bit: a scan of ones is a running reduction of the other tile.
    running = _accumulating(second) if first.name == "multiply" and second.name in _COMMUTATIVE else None
    compute = _scanning(steps, running, data0.shape[0], dst.dtype)
    exactly, inputs = _scanned_in_float64(steps, data0.shape[0]), (data0.dtype, data1.dtype)
    compute = lost_integers.watched(compute, exactly, dst.dtype, inputs)

    elements = made(dst={"data0": SCAN, "data1": SCAN, "initial": BROADCAST})
    return Plan("vector", streaming(check.chip, data0, 2), compute, elements, lanes="apart")


def _sided(operator: Operator, reverse: bool) -> Callable[..., Any]:
    """Return the operator as ``function(left, right, out=)``, with exchanged operands if ``reverse``."""
    function = operator.compute
    if reverse and operator.name != "bypass":
        return lambda left, right, out: function(right, left, out=out)
    return function


def _scanning(
    steps: tuple[Callable[..., Any], Callable[..., Any]],
    running: Callable[[Array, Array], None] | None,
    partitions: int,
    dtype: DType,
) -> Callable[..., None]:
    first, second = steps

    def compute(destination: Array, left: Array, right: Array, initial: Value) -> None:
        state = np.empty(partitions, working(destination, left, right))
        state[:] = to_float32(np.asarray(initial)).reshape(-1)
        factors, terms = to_float32(left).reshape(partitions, -1), to_float32(right).reshape(partitions, -1)
        if running is not None and (factors == 1).all():
            out = np.array(terms)
            running(out, state)
            put(destination, out, dtype)
            return
        # Partitions last: each step is then one operation on contiguous elements.
        factors, terms = np.ascontiguousarray(factors.T), np.ascontiguousarray(terms.T)
        results = np.empty(terms.shape, state.dtype)
        for factor, term, result in zip(factors, terms, results, strict=True):
            first(factor, state, out=result)
            second(result, term, out=result)
            state = result
        put(destination, results.T, dtype)

    return compute


def _scanned_in_float64(steps: tuple[Callable[..., Any], Callable[..., Any]], partitions: int) -> Callable[..., Array]:
    """Return the scan in float64, which holds every 32-bit integer; the function returns the results."""
    first, second = steps

    def compute(left: Array, right: Array, initial: Value) -> Array:
        state = np.empty(partitions)
        state[:] = np.asarray(initial).astype(np.float64).reshape(-1)
        out = np.empty((right.size // partitions, partitions))
        factors, terms = (each.astype(np.float64).reshape(partitions, -1).T for each in (left, right))
        for factor, term, result in zip(factors, terms, out, strict=True):
            first(factor, state, out=result)
            second(result, term, out=result)
            state = result
        return out.T

    return compute
