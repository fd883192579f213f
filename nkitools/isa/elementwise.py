"""Element-wise instructions of the Vector, Scalar and GpSimd Engines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nkitools.chip.dtypes import DType, float32, int32, uint32
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.numerics import Array, to_float32
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.views import describe
from nkitools.isa import guards
from nkitools.isa.costs import is_half, streaming
from nkitools.isa.enums import engine as engines
from nkitools.isa.instruction import Check, Dst, Operand, OptionalOperand, Plan, Src, instruction
from nkitools.isa.operators import Operator
from nkitools.isa.results import in_float32, like, put, widened

_WORDS = (int32, uint32)


def _is_words(*tensors: NkiTensor) -> bool:
    return all(tensor.dtype in _WORDS for tensor in tensors)


def _in_integers(function: Callable[..., Any], dtype: DType, shape: tuple[int, ...]) -> Callable[..., None]:
    """``function(*operands, out=)`` on the operands' own integers; results wrap as the native arithmetic does."""

    def compute(destination: Array, *operands: Any) -> None:
        out = np.empty(shape, dtype.dtype)
        function(*operands, out=out, casting="unsafe")
        np.copyto(destination, out.reshape(destination.shape))

    return compute


def _bitvec(operator: Operator, dtype: DType, shape: tuple[int, ...]) -> Callable[..., None]:
    def compute(destination: Array, *operands: Any) -> None:
        out = np.empty(shape, dtype.dtype)
        operator.compute(*(_bits(each, dtype) for each in operands), out=out)
        np.copyto(destination, out.reshape(destination.shape))

    return compute


def _bits(value: Any, dtype: DType) -> Any:
    """An operand of a bitvec operator: its bits, as integers of the destination's dtype."""
    if isinstance(value, np.ndarray):
        return value.astype(dtype.dtype, copy=False)
    return np.asarray(int(value)).astype(dtype.dtype)


@instruction
def tensor_tensor(
    check: Check,
    dst: Dst,
    data1: Src,
    data2: Src,
    op: Any,
    engine: Any = engines.unknown,
    name: Any = None,
) -> Plan:
    """``dst = data1 <op> data2``, element by element, on the Vector or GpSimd Engine.

    Shapes: equal partitions and equally many elements per partition. Memory: SBUF or PSUM, the inputs not both in PSUM;
    nothing in PSUM on the GpSimd Engine (``nl.power``, 32-bit integers). Arithmetic runs in float32 and is cast once to
    ``dst.dtype``; int32/uint32 throughout is exact on the GpSimd Engine; bitvec operators need integers.
    Errors: NK101, NK102, NK107, NK109, NK110, NK111, NK201, NK206, NK301, NK306, NK609. Source: nki.isa.tensor_tensor (NKI 0.6).
    """
    operator = guards.binary_operator(check, "op", op)
    guards.one_of(check, "engine", engine, engines, (engines.vector, engines.gpsimd, engines.unknown))
    guards.tiles(check, dst=dst, data1=data1, data2=data2)
    guards.same_elements(check, ("data1", data1), ("data2", data2))
    guards.same_elements(check, ("dst", dst), ("data1", data1))
    guards.not_packed(check, dst=dst, data1=data1, data2=data2)
    in_psum = [tensor for tensor in (dst, data1, data2) if tensor.buffer is MemoryRegion.psum]
    if data1.buffer is MemoryRegion.psum and data2.buffer is MemoryRegion.psum:
        check.fail(
            "NK201",
            f"`data1`, {describe(data1)}, and `data2`, {describe(data2)}, are both in PSUM; one of them must be in SBUF",
            data1,
            data2,
            remedy="Copy one of them to SBUF with nisa.tensor_copy first.",
        )
    if operator.name == "power" and engine is engines.vector:
        check.fail("NK206", "nl.power runs on the GpSimd Engine, not on the Vector Engine")
    words = _is_words(dst, data1, data2)
    chosen = engine
    if chosen is engines.unknown:
        exact = words and not in_psum and operator.kind == "arithmetic"
        chosen = engines.gpsimd if operator.name == "power" or exact else engines.vector
    guards.gpsimd_reaches(check, chosen, dst=dst, data1=data1, data2=data2)

    if operator.kind == "bitvec":
        guards.integers(check, dst=dst, data1=data1, data2=data2)
        compute = _aligned(_bitvec(operator, dst.dtype, data1.shape), data1.shape)
    elif words and chosen is engines.gpsimd:
        compute = _aligned(_exact(operator, dst.dtype, data1.shape), data1.shape)
    elif in_float32(dst.dtype, data1.dtype, data2.dtype) and dst.shape == data1.shape == data2.shape:
        compute = _direct(operator)
    else:
        compute = _aligned(widened(operator.compute, dst.dtype, data1.shape), data1.shape)

    one_psum = (data1.buffer is MemoryRegion.psum) != (data2.buffer is MemoryRegion.psum)
    fast = one_psum or is_half(dst, data1, data2)
    return Plan(chosen.name, streaming(check.chip, data1, 1 if fast else 2), compute, lanes="travel")


def _direct(operator: Operator) -> Callable[..., None]:
    function = operator.compute

    def compute(destination: Array, first: Array, second: Array) -> None:
        function(first, second, out=destination)

    return compute


def _exact(operator: Operator, dtype: DType, shape: tuple[int, ...]) -> Callable[..., None]:
    """32-bit integer arithmetic; comparisons and logical operators give 0 or 1."""
    if isinstance(operator.compute, np.ufunc) and operator.name not in ("divide", "power"):
        return _in_integers(operator.compute, dtype, shape)

    def compute(destination: Array, first: Array, second: Any) -> None:
        out = np.empty(shape, np.float64)
        operator.compute(first.astype(np.float64), np.asarray(second, np.float64), out=out)
        put(destination, out, dtype)

    return compute


def _aligned(compute: Callable[..., None], shape: tuple[int, ...]) -> Callable[..., None]:
    """``compute`` with every full-size operand brought into one shape (equal elements per partition, other dimensions)."""

    def aligned(destination: Array, *operands: Any) -> None:
        compute(destination, *(like(each, shape) for each in operands))

    return aligned


@instruction
def tensor_scalar(
    check: Check,
    dst: Dst,
    data: Src,
    op0: Any,
    operand0: OptionalOperand,
    reverse0: Any = False,
    op1: Any = None,
    operand1: OptionalOperand = None,
    reverse1: Any = False,
    engine: Any = engines.unknown,
    name: Any = None,
) -> Plan:
    """``dst = (data <op0> operand0) <op1> operand1`` with numbers or (partitions, 1) vectors as operands.

    ``reverse0``/``reverse1`` swap the sides. Both operators are arithmetic (float32; vector operands must be float32) or both
    bitvec (Vector Engine, integers). Memory: SBUF or PSUM. The Scalar Engine (NeuronCore-v3 on) does multiply, add, and multiply
    then add; the GpSimd Engine does rsqrt. int32 and uint32 vector operands are taken where ``data`` and ``dst`` are of that
    dtype too, and then computed exactly: the docstring mentions such an address-arithmetic form without describing it.
    Errors: NK101, NK102, NK107, NK109, NK111, NK201, NK206, NK301, NK306, NK606, NK609. Source: nki.isa.tensor_scalar (NKI 0.6).
    """
    first = guards.operator(check, "op0", op0)
    second = None if op1 is None else guards.operator(check, "op1", op1)
    _operand_form(check, "operand0", first, operand0)
    if second is None and operand1 is not None:
        check.refuse("NK609", "`operand1` is given without `op1`")
    if second is not None:
        _operand_form(check, "operand1", second, operand1)
        if first.kind != second.kind:
            check.refuse("NK306", f"op0={first} and op1={second} must both be arithmetic or both be bitvec")
    guards.tiles(check, dst=dst, data=data)
    guards.same_elements(check, ("dst", dst), ("data", data))
    guards.not_packed(check, dst=dst, data=data)
    guards.vector_operand(check, "operand0", operand0, data)
    guards.vector_operand(check, "operand1", operand1, data)
    chosen = _scalar_engine(check, engine, first, second)
    guards.gpsimd_reaches(check, chosen, dst=dst, data=data, operand0=operand0, operand1=operand1)

    steps = _steps(first, second, bool(reverse0), bool(reverse1))
    if first.kind == "bitvec":
        guards.integers(check, dst=dst, data=data, operand0=operand0, operand1=operand1)
        compute = _chained(steps, dst.dtype, data.shape, lambda each: _bits(each, dst.dtype), dst.dtype.dtype)
    elif _exact_operands(check, dst, data, operand0, operand1):
        compute = _chained(steps, dst.dtype, data.shape, lambda each: np.asarray(each, np.float64), np.dtype(np.float64))
    elif in_float32(dst.dtype, data.dtype) and dst.shape == data.shape:
        compute = _in_place(steps, data.ndim)
    else:
        compute = _chained(steps, dst.dtype, data.shape, _as_float32, np.dtype(np.float32))

    return Plan(chosen.name, streaming(check.chip, data), compute, lanes="travel", several_steps=second is not None)


def _as_float32(value: Any) -> Any:
    return to_float32(value) if isinstance(value, np.ndarray) else np.float32(value)


def _operand_form(check: Check, role: str, operator: Operator, operand: Any) -> None:
    """A unary operator takes no operand (None or 0); a binary one needs one."""
    if operator.unary:
        if operand is not None and (isinstance(operand, NkiTensor) or operand != 0):
            check.refuse("NK609", f"`{role}` must be None or 0 for the unary operator {operator}")
    elif operand is None:
        check.refuse("NK609", f"`{role}` is missing for {operator}")


def _scalar_engine(check: Check, engine: Any, first: Operator, second: Operator | None) -> engines:
    guards.one_of(check, "engine", engine, engines, (engines.vector, engines.scalar, engines.gpsimd, engines.unknown))
    names = (first.name, second.name if second is not None else None)
    if engine is engines.unknown:
        slow = {"rsqrt", "power"} & set(names)
        return engines.gpsimd if slow and first.kind == "arithmetic" else engines.vector
    if first.kind == "bitvec" and engine is not engines.vector:
        check.fail("NK206", f"the bitvec operator {first} runs on the Vector Engine only")
    if engine is engines.gpsimd and "rsqrt" not in names and "power" not in names:
        check.fail("NK206", f"the GpSimd Engine does nl.rsqrt here, not {first}")
    if engine is engines.scalar:
        if not check.chip.scalar_engine_arithmetic:
            check.fail("NK606", f"the Scalar Engine of {check.chip.name} has no tensor_scalar; it came with NeuronCore-v3")
        if names not in (("multiply", "add"), ("multiply", None), ("add", None)):
            check.fail("NK206", f"the Scalar Engine does multiply, add, and multiply then add, not {names[0]} then {names[1]}")
    assert isinstance(engine, engines)
    return engine


def _exact_operands(check: Check, dst: NkiTensor, data: NkiTensor, *operands: Any) -> bool:
    """Whether this is the 32-bit integer form; float32 is what every other vector operand must be (NK301)."""
    vectors = [operand for operand in operands if isinstance(operand, NkiTensor)]
    words = bool(vectors) and _is_words(dst, data, *vectors)
    for vector in vectors:
        if vector.dtype is not float32 and not words:
            check.fail(
                "NK301",
                f"a vector operand of an arithmetic operator must be float32, it is {describe(vector)}",
                vector,
                remedy="Copy it into a float32 tile with nisa.tensor_copy first.",
            )
    return words


Step = Callable[[Any, Any, Array], None]


def _steps(first: Operator, second: Operator | None, reverse0: bool, reverse1: bool) -> tuple[Step, ...]:
    """One function (value, operand, out) for each operator."""
    return tuple(
        _step(operator, reverse)
        for operator, reverse in ((first, reverse0), (second, reverse1))
        if operator is not None
    )


def _step(operator: Operator, reverse: bool) -> Step:
    function = operator.compute
    if operator.unary:
        return lambda value, operand, out: function(value, out=out)
    if reverse:
        return lambda value, operand, out: function(operand, value, out=out)
    return lambda value, operand, out: function(value, operand, out=out)


def _column(operand: Any, ndim: int) -> Any:
    """A (partitions, 1) vector so that it broadcasts over all free dimensions."""
    if isinstance(operand, np.ndarray) and operand.ndim != ndim:
        return operand.reshape(operand.shape[0], *[1] * (ndim - 1))
    return operand


def _in_place(steps: tuple[Step, ...], ndim: int) -> Callable[..., None]:
    """All in float32: the first step writes the destination, the second works on it."""
    if len(steps) == 1:
        (only,) = steps

        def single(destination: Array, data: Array, operand0: Any, operand1: Any = None) -> None:
            only(data, _scalar(operand0, ndim), destination)

        return single
    first, second = steps

    def double(destination: Array, data: Array, operand0: Any, operand1: Any) -> None:
        first(data, _scalar(operand0, ndim), destination)
        second(destination, _scalar(operand1, ndim), destination)

    return double


def _scalar(operand: Any, ndim: int) -> Any:
    if isinstance(operand, np.ndarray):
        return _column(operand, ndim)
    return None if operand is None else np.float32(operand)


def _chained(
    steps: tuple[Step, ...],
    dtype: DType,
    shape: tuple[int, ...],
    convert: Callable[[Any], Any],
    working: np.dtype[Any],
) -> Callable[..., None]:
    """The steps on converted operands in a working dtype, the result cast once."""

    def compute(destination: Array, data: Array, *operands: Any) -> None:
        value = convert(data)
        out = np.empty(shape, working)
        for step, operand in zip(steps, operands, strict=False):
            step(value, None if operand is None else _column(convert(operand), len(shape)), out)
            value = out
        put(destination, out, dtype)

    return compute


@instruction
def reciprocal(check: Check, dst: Dst, data: Src, name: Any = None) -> Plan:
    """``dst = 1 / data`` on the Vector Engine, in float32.

    Shapes: equal partitions and elements per partition. Memory: SBUF or PSUM.
    Errors: NK101, NK102, NK107, NK109, NK201, NK301. Source: nki.isa.reciprocal (NKI 0.6).
    """
    guards.tiles(check, dst=dst, data=data)
    guards.same_elements(check, ("dst", dst), ("data", data))
    guards.not_packed(check, dst=dst, data=data)

    one = np.float32(1)
    if in_float32(dst.dtype, data.dtype) and dst.shape == data.shape:

        def compute(destination: Array, values: Array) -> None:
            np.divide(one, values, out=destination)

    else:
        compute = widened(lambda values, out: np.divide(one, values, out=out), dst.dtype, data.shape)

    return Plan("vector", streaming(check.chip, data, 8), compute, lanes="travel")
