"""The operands of fused instructions: numbers or (partitions, 1) vectors, one for each operator."""

from __future__ import annotations

from collections.abc import Callable

from nkitools.chip.dtypes import DType, float32
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.engines.operators import Operator, OperatorToken
from nkitools.issue import guards
from nkitools.issue.instruction import Check
from nkitools.issue.plan import OptionalOperand, Value
from nkitools.rules.finding import report


def arithmetic_operator(check: Check, role: str, token: OperatorToken, *, binary: bool = False) -> Operator:
    """NK306, NK606, NK615, NK621: a math operator that is not one of bits (``binary``: of two operands)."""
    found = (guards.binary_operator if binary else guards.operator)(check, role, token)
    if found.kind == "bitvec":
        check.refuse("NK306", f"`{role}`={found} is a bitvec operator; {check.instruction} takes arithmetic ones")
    guards.documented_operator(check, role, found)
    return found


def operand_of(check: Check, role: str, operator: Operator, operand: OptionalOperand, data: NkiTensor) -> None:
    """NK609, NK109: a number or a (partitions, 1) vector; of a unary operator None or 0."""
    if operator.unary:
        if isinstance(operand, NkiTensor):
            message = f"`{role}` must be None or 0 for the unary operator {operator}"
            check.refuse("NK609", message, operand, remedy=f"Pass {role}=0.")
    elif operand is None and operator.name != "bypass":
        message = f"`{role}` is missing for {operator}"
        check.refuse("NK609", message, remedy=f"Pass a number or a ({data.shape[0]}, 1) tile as {role}.")
    guards.vector_operand(check, role, operand, data)
    guards.not_packed(check, **{role: operand})


def single_precision(check: Check, role: str, operand: OptionalOperand) -> None:
    """NK301: a vector operand that must be float32."""
    if isinstance(operand, NkiTensor) and operand.dtype is not float32:
        message = f"`{role}` must be a number or a float32 vector, it is {describe(operand)}"
        check.fail("NK301", message, operand, remedy="Copy it into a float32 tile with nisa.tensor_copy first.")


def one_of_dtypes(check: Check, role: str, tensor: NkiTensor | None, allowed: tuple[DType, ...]) -> None:
    """NK301: a tile is of one of these dtypes."""
    if tensor is not None and tensor.dtype not in allowed:
        names = ", ".join(str(dtype) for dtype in allowed)
        check.fail("NK301", f"`{role}`, {describe(tensor)}, must be of one of the dtypes {names}", tensor)


def not_both_in_psum(check: Check, first: tuple[str, NkiTensor], second: tuple[str, NkiTensor]) -> None:
    """NK201: the Vector Engine reads at most one of two tiles from PSUM."""
    (role, tensor), (other_role, other) = first, second
    if tensor.buffer is guards.PSUM and other.buffer is guards.PSUM:
        message = (
            f"`{role}`, {describe(tensor)}, and `{other_role}`, {describe(other)}, are both in PSUM; one must be in "
            "SBUF"
        )
        check.fail("NK201", message, tensor, other, remedy="Copy one of them to SBUF with nisa.tensor_copy first.")


def zero_if_unary(
    check: Check, role: str, operator: Operator, operand: OptionalOperand, compute: Callable[..., None], place: int = 0
) -> Callable[..., None]:
    """NK609: the number beside a unary operator is 0. A number is data, so that this is looked at in each call.

    ``place``: of the number among the operands that follow the data.
    """
    if not operator.unary or operand is None:
        return compute
    instruction = check.instruction

    def checked(destination: Array, data: Array, *operands: Value) -> None:
        number = operands[place]
        if number != 0:
            message = f"{instruction}: `{role}` must be None or 0 for the unary operator {operator}, it is {number}"
            report("NK609", message, remedy=f"Pass {role}=0.")
        compute(destination, data, *operands)

    return checked
