"""Element-wise instructions of the Vector, Scalar and GpSimd Engines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nkitools.chip.core import current_core
from nkitools.chip.dtypes import float32, int32, uint32
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.engines import arithmetic, lost_integers
from nkitools.engines.cast_on_write import in_float32, widened
from nkitools.engines.costs import elements_per_cycle, on_scalar_engine, streaming, two_tiles
from nkitools.engines.enums import engine as engines
from nkitools.engines.operators import COMPARISONS, Operator, OperatorToken
from nkitools.issue import guards, scalar_operands
from nkitools.issue.element_maps import made
from nkitools.issue.element_rules import BROADCAST, SAME
from nkitools.issue.instruction import Check, Dst, OptionalOperand, Plan, Src, instruction

_WORDS = (int32, uint32)
_SCALAR_ENGINE = (("multiply", "add"), ("multiply",), ("add",))
_GPSIMD = {"rsqrt", "power"}


def _is_words(*tensors: NkiTensor) -> bool:
    return all(tensor.dtype in _WORDS for tensor in tensors)


@instruction
def tensor_tensor(
    check: Check,
    dst: Dst,
    data1: Src,
    data2: Src,
    op: OperatorToken,
    engine: engines = engines.unknown,
    name: str | None = None,
) -> Plan:
    """``dst = data1 <op> data2``, element by element, on the Vector or GpSimd Engine.

    Shapes: equal partitions and equally many elements per partition. Memory: SBUF or PSUM, the inputs not both in PSUM,
    nothing in PSUM on the GpSimd Engine. No packed dtypes. Arithmetic runs in float32 and is cast once to
    ``dst.dtype``; if all three tiles are int32 or uint32, the GpSimd Engine computes exactly, and results wrap (those
    of power and divide are rounded and saturate). Comparisons and logical operators give 1 or 0. Bitvec operators need
    integers.
    ``engine``: without it GpSimd for ``nl.power``, which Vector does not do, and for all but bitvec operators on int32
    and uint32 if all three tiles are in SBUF; else Vector.
    Errors: NK101, NK102, NK107 to NK111, NK201, NK206, NK301, NK306, NK606, NK609, NK615, NK621.
    Source: nki.isa.tensor_tensor (NKI 0.6).
    """
    operator = guards.binary_operator(check, "op", op)
    guards.documented_operator(check, "op", operator)
    guards.one_of(check, "engine", engine, engines, (engines.vector, engines.gpsimd, engines.unknown))
    guards.tiles(check, dst=dst, data1=data1, data2=data2)
    guards.same_elements(check, ("data1", data1), ("data2", data2))
    guards.same_elements(check, ("dst", dst), ("data1", data1))
    guards.not_packed(check, dst=dst, data1=data1, data2=data2)
    scalar_operands.not_both_in_psum(check, ("data1", data1), ("data2", data2))
    words = _is_words(dst, data1, data2)
    chosen = _tensor_engine(check, engine, operator, words, (dst, data1, data2))
    if operator.kind == "bitvec":
        guards.integers(check, dst=dst, data1=data1, data2=data2)

    compute = _two_tiles(operator, words and chosen is engines.gpsimd, dst, data1, data2)

    cycles = two_tiles(check.chip, operator.name, dst, data1, data2)
    return Plan(chosen.name, cycles, compute, made(dst={"data1": SAME, "data2": SAME}), lanes="travel")


def _tensor_engine(
    check: Check, engine: engines, operator: Operator, words: bool, tensors: tuple[NkiTensor, NkiTensor, NkiTensor]
) -> engines:
    """Return the engine asked for, else the documented one: GpSimd for power, and for 32-bit integers in SBUF."""
    chosen: engines = engine
    if engine is engines.unknown:
        in_psum = any(tensor.buffer is MemoryRegion.psum for tensor in tensors)
        integers = words and not in_psum and operator.kind == "arithmetic"
        chosen = engines.gpsimd if operator.name == "power" or integers else engines.vector
    if operator.name == "power" and chosen is engines.vector:
        check.fail("NK206", "nl.power runs on the GpSimd Engine, not on the Vector Engine", argument="engine")
    dst, data1, data2 = tensors
    guards.gpsimd_reaches(check, chosen, dst=dst, data1=data1, data2=data2)
    return chosen


def _two_tiles(
    operator: Operator, exact: bool, dst: NkiTensor, data1: NkiTensor, data2: NkiTensor
) -> Callable[..., None]:
    if operator.kind == "bitvec":
        return arithmetic.bitvec(operator, dst.dtype, data1.shape)
    if exact:
        return arithmetic.exact(operator, dst.dtype, data1.shape)
    if in_float32(dst.dtype, data1.dtype, data2.dtype) and dst.shape == data1.shape == data2.shape:
        return arithmetic.direct(operator)
    compute = arithmetic.converted(operator, dst.dtype, data1.shape)
    exactly = arithmetic.in_float64(operator.compute, data1.shape)
    inputs, compares = (data1.dtype, data2.dtype), operator.name in COMPARISONS
    return lost_integers.watched(compute, exactly, dst.dtype, inputs, compares=compares)


@instruction
def tensor_scalar(
    check: Check,
    dst: Dst,
    data: Src,
    op0: OperatorToken,
    operand0: OptionalOperand,
    reverse0: bool = False,
    op1: OperatorToken | None = None,
    operand1: OptionalOperand = None,
    reverse1: bool = False,
    engine: engines = engines.unknown,
    name: str | None = None,
) -> Plan:
    """``dst = (data <op0> operand0) <op1> operand1`` with numbers or (partitions, 1) vectors as operands.

    ``op1`` and ``operand1`` may be left out. Equal partitions and elements per partition of ``dst`` and ``data``.
    ``reverse0``/``reverse1`` swap the sides of an operator; they change nothing beside a unary one or nl.bypass. Both
    operators are arithmetic (in float32, cast once; vector operands must be float32) or both bitvec (Vector Engine,
    integers). A unary operator takes None or 0. Memory: SBUF or PSUM. No packed dtypes.
    ``engine``: without it GpSimd for rsqrt and power if nothing is in PSUM, else Vector. The Scalar Engine
    (NeuronCore-v3 on) does multiply, add, and multiply then add; the GpSimd Engine rsqrt and power, alone or with
    another operator. int32 and uint32 vector operands are taken if ``data`` and ``dst`` are of such a dtype too; all is
    then computed in integers, which wrap (in float64, which saturates, with a float number, divide, power, rsqrt or
    reciprocal). AWS's docstring mentions that address-arithmetic form without describing it.
    Errors: NK101, NK102, NK107 to NK111, NK201, NK206, NK301, NK306, NK606, NK609, NK615, NK621.
    Source: nki.isa.tensor_scalar (NKI 0.6).
    """
    first = guards.operator(check, "op0", op0)
    second = None if op1 is None else guards.operator(check, "op1", op1)
    if second is None and reverse1:
        check.refuse("NK609", "`reverse1` is given without `op1`")
    _operand_forms(check, first, operand0, second, operand1)
    guards.documented_operator(check, "op0", first)
    if second is not None:
        guards.documented_operator(check, "op1", second)
    guards.tiles(check, dst=dst, data=data)
    guards.same_elements(check, ("dst", dst), ("data", data))
    guards.not_packed(check, dst=dst, data=data)
    guards.vector_operand(check, "operand0", operand0, data)
    guards.vector_operand(check, "operand1", operand1, data)
    operators = (first,) if second is None else (first, second)
    chosen = _scalar_engine(check, engine, operators, (dst, data, operand0, operand1))
    if _on_bits(operators):
        binary = {f"operand{i}": (operand0, operand1)[i] for i, each in enumerate(operators) if not each.unary}
        guards.integers(check, dst=dst, data=data, **binary)

    steps = arithmetic.steps_of(first, second, bool(reverse0), bool(reverse1))
    compute = _stepwise(check, operators, steps, dst, data, (operand0, operand1))
    for place in reversed(range(len(operators))):
        role, operand = f"operand{place}", (operand0, operand1)[place]
        compute = scalar_operands.zero_if_unary(check, role, operators[place], operand, compute, place)

    cycles = streaming(check.chip, data, 1 / elements_per_cycle(check.chip, chosen, dst, data))
    elements = made(dst={"data": SAME, "operand0": BROADCAST, "operand1": BROADCAST})
    free = engine is engines.unknown and chosen is engines.vector and not _on_bits(operators)
    elsewhere = on_scalar_engine(check.chip, dst, data) if free else ()
    return Plan(chosen.name, cycles, compute, elements, lanes="travel", elsewhere=elsewhere)


def _on_bits(operators: tuple[Operator, ...]) -> bool:
    return any(operator.kind == "bitvec" for operator in operators)


def _operand_forms(
    check: Check, first: Operator, operand0: OptionalOperand, second: Operator | None, operand1: OptionalOperand
) -> None:
    """NK609, NK306: each operator has its operand, and both are of one kind."""
    for role, operator in (("op0", first), ("op1", second)):
        if operator is not None and operator.name == "reciprocal" and _takes_two(check):
            message = f"`{role}`=nl.reciprocal takes one operand; nki 0.6.0 takes operators of two here"
            check.refuse("NK306", message, remedy="Call nisa.reciprocal(dst, data).")
    _operand_form(check, "operand0", first, operand0)
    if second is None:
        if operand1 is not None:
            check.refuse("NK609", "`operand1` is given without `op1`")
        return
    _operand_form(check, "operand1", second, operand1)
    if first.kind != second.kind and "bypass" not in (first.name, second.name):
        check.refuse("NK306", f"op0={first} and op1={second} must both be arithmetic or both be bitvec")


def _takes_two(check: Check) -> bool:
    return current_core(check.instruction).dialect.has_known_issues and not check.language.reciprocal_operator


def _operand_form(check: Check, role: str, operator: Operator, operand: OptionalOperand) -> None:
    if operator.unary:
        if isinstance(operand, NkiTensor):
            check.refuse("NK609", f"`{role}` must be None or 0 for the unary operator {operator}", operand)
    elif operand is None and operator.name != "bypass":
        check.refuse("NK609", f"`{role}` is missing for {operator}")


def _scalar_engine(check: Check, engine: engines, operators: tuple[Operator, ...], tensors: tuple[Any, ...]) -> engines:
    """Return the engine asked for, else the Vector Engine, but the GpSimd Engine for rsqrt and power in SBUF."""
    guards.one_of(check, "engine", engine, engines, (engines.vector, engines.scalar, engines.gpsimd, engines.unknown))
    names = tuple(operator.name for operator in operators)
    chosen: engines = engine
    if engine is engines.unknown:
        in_psum = any(isinstance(each, NkiTensor) and each.buffer is MemoryRegion.psum for each in tensors)
        chosen = engines.gpsimd if _GPSIMD & set(names) and not in_psum else engines.vector
    elif _on_bits(operators) and engine is not engines.vector:
        message = f"`engine`={engine}: bitvec operators, here {operators[0]}, run on the Vector Engine only"
        check.fail("NK206", message, argument="engine")
    elif engine is engines.gpsimd and not _GPSIMD & set(names):
        message = f"`engine`={engine}: the GpSimd Engine does nl.rsqrt and nl.power here, not {operators[0]}"
        check.fail("NK206", message, argument="engine")
    elif engine is engines.scalar and not check.chip.scalar_engine_arithmetic:
        check.fail(
            "NK606",
            f"`engine`={engine}: the Scalar Engine of {check.chip.name} has no tensor_scalar; it came with "
            "NeuronCore-v3",
            remedy="Use nisa.activation, whose scale and bias do the same there, or leave the engine out.",
            argument="engine",
        )
    elif engine is engines.scalar and names not in _SCALAR_ENGINE:
        asked = " then ".join(f"nl.{name}" for name in names)
        check.fail(
            "NK206",
            f"`engine`={engine}: the Scalar Engine does nl.multiply, nl.add, and nl.multiply then nl.add, not {asked}",
            argument="engine",
        )
    _check_root(check, chosen, names)
    dst, data, operand0, operand1 = tensors
    guards.gpsimd_reaches(check, chosen, dst=dst, data=data, operand0=operand0, operand1=operand1)
    return chosen


def _check_root(check: Check, chosen: engines, names: tuple[str, ...]) -> None:
    """NK621: a reverse square root on the Vector Engine, asked for or since the GpSimd Engine cannot reach PSUM."""
    if "rsqrt" in names and chosen is engines.vector and current_core(check.instruction).dialect.has_known_issues:
        message = "nl.rsqrt is documented for the GpSimd Engine, of tiles in SBUF; the Vector Engine computes it here"
        remedy = "Call nisa.activation(op=nl.rsqrt), on the Scalar Engine, or leave out `engine` for tiles in SBUF."
        check.goes_beyond(message, remedy=remedy)


def _stepwise(
    check: Check,
    operators: tuple[Operator, ...],
    steps: tuple[arithmetic.Step, ...],
    dst: NkiTensor,
    data: NkiTensor,
    operands: tuple[Any, ...],
) -> Callable[..., None]:
    if _on_bits(operators):
        return arithmetic.steps_on_bits(steps, dst.dtype, data.shape)
    vectors = [each for each in operands if isinstance(each, NkiTensor)]
    if vectors and _is_words(dst, data, *vectors):
        working = arithmetic.working_dtype(operators, operands)
        return arithmetic.steps_in_integers(steps, dst.dtype, data.shape, working)
    _check_vectors(check, operands)
    if in_float32(dst.dtype, data.dtype) and dst.shape == data.shape:
        return arithmetic.steps_in_place(steps, data.ndim)
    compute = arithmetic.steps_in_float32(steps, dst.dtype, data.shape)
    exactly, compares = arithmetic.steps_in_float64(steps, data.shape), operators[-1].name in COMPARISONS
    return lost_integers.watched(compute, exactly, dst.dtype, (data.dtype,), compares=compares)


def _check_vectors(check: Check, operands: tuple[Any, ...]) -> None:
    """NK301: a vector operand is float32. NK621: the legacy dialect casts other floats.

    The first legacy docstrings have no restriction, and the engine casts its input to float32.
    """
    for index, vector in enumerate(operands):
        if not isinstance(vector, NkiTensor) or vector.dtype is float32:
            continue
        if vector.dtype.is_float and not current_core(check.instruction).dialect.has_known_issues:
            message = (
                f"`operand{index}` is {describe(vector)}; the documents of later versions take float32 vectors only"
            )
            check.goes_beyond(message, vector, remedy="Load or copy it with dtype=nl.float32.")
            continue
        message = f"`operand{index}` of an arithmetic operator must be a float32 vector, it is {describe(vector)}"
        check.fail("NK301", message, vector, remedy="Copy it into a float32 tile with nisa.tensor_copy first.")


@instruction
def reciprocal(check: Check, dst: Dst, data: Src, name: str | None = None) -> Plan:
    """``dst = 1 / data`` on the Vector Engine, in float32, cast once to ``dst.dtype``; 1 / 0 is infinity.

    Shapes: equal partitions and elements per partition. Dtypes: any but packed ones. Memory: SBUF or PSUM.
    Errors: NK101, NK102, NK107 to NK110, NK201, NK301, NK609. Source: nki.isa.reciprocal (NKI 0.6).
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

    cycles, elsewhere = streaming(check.chip, data, 8), on_scalar_engine(check.chip, dst, data)
    return Plan("vector", cycles, compute, made(dst={"data": SAME}), lanes="travel", elsewhere=elsewhere)
