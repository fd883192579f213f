"""The Vector Engine's instructions of several operators: fused element-wise ones, running reductions and scans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nkitools.chip.dtypes import DType, DTypeLike, UnknownDType, as_dtype, float32
from nkitools.chip.numerics import Array, cast, to_float32, working
from nkitools.chip.tensor import NkiTensor
from nkitools.engines import lost_integers
from nkitools.engines.arithmetic import Step, broadcast, steps_in_float64, steps_of
from nkitools.engines.cast_on_write import in_float32, like, put
from nkitools.engines.costs import is_bfloat16, streaming
from nkitools.engines.enums import reduce_cmd as reduce_cmds
from nkitools.engines.operators import COMPARISONS, OPERATORS, Operator, OperatorToken
from nkitools.issue import guards, instruction_guards, reduce_registers, scalar_operands
from nkitools.issue.element_maps import VECTOR_REGISTERS, made
from nkitools.issue.element_rules import ALONG_FREE, BROADCAST, SAME, SCAN, Rule
from nkitools.issue.instruction import Check, Dst, Operand, OptionalDst, OptionalOperand, Plan, Src, instruction
from nkitools.issue.plan import Value

_FLOATS = ("bfloat16", "float16", "float32", "float8_e4m3", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu")
_CUMULATIVE_DTYPES = tuple(map(as_dtype, (*_FLOATS, "uint8", "uint16", "int8", "int16")))
_COMMANDS = (reduce_cmds.reset_reduce, reduce_cmds.reduce, reduce_cmds.load_reduce)
_REDUCTIONS = ("add", "multiply", "maximum", "minimum")
_RUNNING = ("add", "subtract", "multiply", "maximum", "minimum")


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

    ``operand0``: a number or a (partitions, 1) vector of any dtype; ``operand1``: a tile of ``data``'s size;
    ``reverse0``/``reverse1`` swap the sides. Both operators are arithmetic; ``op0`` may be a unary one, whose operand
    is None or 0 (as in tensor_scalar, to which the docstring refers). Equal partitions and elements per partition.
    Memory: SBUF or PSUM, ``data`` and ``operand1`` not both in PSUM. Cost: SDK 2.26, and never less than an instruction
    takes. NKI 0.7: ``reduce_res`` (partitions, 1) receives the float32 results reduced along all free dimensions, by
    way of the engine's reduce registers, as in nisa.tensor_scalar_reduce; the page at hand shows neither the default of
    ``reduce_op`` (here add) nor what reduces without ``reduce_res``: here ``reduce_cmd=reduce`` alone, so that a call
    of before 0.7 leaves the registers alone. ``dtype`` is not in the signature of NKI 0.6, and a public production
    kernel passes it: the result takes it on the way to ``dst.dtype``.
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
    """Return the first step into a tile of its own, so that the destination may be any of the operands.

    The function returns the float32 results beside writing them.
    """
    first, second = steps
    dtype, shape = dst.dtype, data.shape
    direct = dtype is float32 and dst.shape == shape and between is float32 and dst.layout.injective

    def compute(
        destination: Array, values: Array, operand0: Value, operand1: Array, result: Array | None = None
    ) -> Array:
        first_results = np.empty(shape, working(destination, values, operand1))
        out = destination if direct else first_results
        first(to_float32(values), broadcast(operand0, len(shape)), first_results)
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
    """``dst = data <op0> operand0`` on the Vector Engine, reduced along all free dimensions into its reduce registers.

    ``op0``: arithmetic, in float32; ``operand0``: a number or a float32 (partitions, 1) vector, None or 0 for a unary
    operator; ``reverse0`` is documented as not supported and refused. ``reduce_op``: add, multiply, maximum or minimum
    (SDK 2.26 also had subtract) of the float32 results, before the cast to ``dst.dtype``. ``reduce_cmd``:
    ``reset_reduce`` starts from the identity, ``reduce`` goes on from the registers, ``load_reduce`` from
    ``reduce_init`` (a number or a float32 vector, given with it and only with it). ``reduce_res`` (partitions, 1)
    receives the registers, negated if ``reduce_res_negate``, which leaves the registers as they are. NKI 0.7 states at
    most 4 dimensions of ``dst`` and ``data``. Memory: SBUF or PSUM. Cost: SDK 2.26; reading the registers out is 64
    cycles of it.
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
    _check_loaded(check, "reduce_init", reduce_init, reduce_cmd, data)
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


def _check_loaded(check: Check, role: str, value: Any, command: reduce_cmds, data: NkiTensor) -> None:
    """NK609, NK109, NK301: what load_reduce loads is given, a number or a float32 vector."""
    if value is None and command is reduce_cmds.load_reduce:
        message = f"reduce_cmd=load_reduce needs `{role}`, which is missing"
        remedy = f"Pass the number or float32 vector to start from as {role}, or reset the registers: reset_reduce."
        check.refuse("NK609", message, remedy=remedy)
    reduce_registers.initial_value(check, role, value, data)


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
    """Return a running reduction on the Vector Engine: each element of ``dst`` is ``op1(src <op0> imm0, the one before
    it)``.

    ``op0``: arithmetic (of a unary one ``imm0`` is 0); ``op1``: add, subtract, multiply, maximum or minimum. ``imm0``
    and ``imm1``: a number or a float32 (partitions, 1) vector. The element before the first one is the reduce register,
    one a partition: ``reset_reduce`` sets it to the identity of ``op1``, ``load_reduce`` to ``imm1``, ``reduce`` goes
    on from what it holds; the last result stays in it. All in float32 and in order over all free dimensions, cast on
    write. With subtract the result before is the right side, so the pseudo code. That also has a ``reverse0``, which
    the signature does not. Dtypes: bfloat16, float16, float32, float8, (u)int8, (u)int16. Memory: SBUF or PSUM. Cost:
    not published; we take one element per cycle.
    Errors: NK101, NK102, NK107 to NK111, NK201, NK301, NK306, NK507, NK606, NK609, NK615, NK621.
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
    _check_loaded(check, "imm1", imm1, reduce_cmd, src)

    lanes = reduce_registers.Lanes(check.instruction, "vector", src)
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
    running = _accumulating(second) if first.name == "multiply" and second.name in _REDUCTIONS else None
    compute = _scanning(steps, running, data0.shape[0], dst.dtype)
    exactly, inputs = _scanned_in_float64(steps, data0.shape[0]), (data0.dtype, data1.dtype)
    compute = lost_integers.watched(compute, exactly, dst.dtype, inputs)

    elements = made(dst={"data0": SCAN, "data1": SCAN, "initial": BROADCAST})
    return Plan("vector", streaming(check.chip, data0, 2), compute, elements, lanes="apart")


def _sided(operator: Operator, reverse: bool) -> Callable[..., Any]:
    """Return the operator as ``function(left, right, out=)``, called so often that a step between would be felt."""
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
