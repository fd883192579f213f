"""Guards of single instructions: dimensions, elements, dtypes, whole GpSimd cores, 32-bit numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nkitools.chip.argument_types import Number
from nkitools.chip.dtypes import DType
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.issue import guards
from nkitools.issue.instruction import Check, Operand, OptionalOperand

PARTITIONS_PER_CORE = 16  # "each of the eight GpSimd cores connects to 16 contiguous SBUF partitions" (local_gather)

_INT32 = np.iinfo(np.int32)


def dimensions(check: Check, role: str, tensor: NkiTensor, most: int, *, least: int = 1) -> None:
    """NK110: how many dimensions an operand may have, the partition dimension included."""
    if not least <= tensor.ndim <= most:
        allowed = f"exactly {most}" if least == most else f"at most {most}"
        check.fail(
            "NK110",
            f"`{role}`, {describe(tensor)}, has {tensor.ndim} dimensions; it may have {allowed}",
            tensor,
            argument=role,
            extent=tensor.ndim,
            limit=most,
        )


def stated_dimensions(check: Check, most: int, **tensors: OptionalOperand) -> None:
    """NK110: how many dimensions operands may have, where the NKI version states a number."""
    for role, tensor in tensors.items():
        if check.language.stated_ranks and isinstance(tensor, NkiTensor):
            dimensions(check, role, tensor, most)


def exactly(check: Check, role: str, tensor: NkiTensor, count: int) -> None:
    """NK109: an operand has this many elements per partition."""
    if tensor.layout.free_elements != count:
        message = (
            f"`{role}`, {describe(tensor)}, has {tensor.layout.free_elements} elements per partition; it must have "
            f"{count}"
        )
        check.refuse("NK109", message, tensor, argument=role, extent=tensor.layout.free_elements)


def one_element(check: Check, role: str, tensor: NkiTensor) -> None:
    """NK201, NK109: what a register or a scalar is loaded from or stored into is one element in HBM or SBUF."""
    guards.memory(check, tensor, role, (*guards.HBM, guards.SBUF))
    if tensor.size != 1:
        message = f"`{role}` must have exactly one element, it is {describe(tensor)}"
        check.refuse("NK109", message, tensor, argument=role, extent=tensor.size)


def at_least(check: Check, role: str, tensor: NkiTensor, count: int) -> None:
    """NK107: fewer elements per partition than this cannot be computed on."""
    if tensor.layout.free_elements < count:
        message = (
            f"`{role}`, {describe(tensor)}, has {tensor.layout.free_elements} elements per partition; it must have at "
            f"least {count}"
        )
        remedy = f"Pad the free dimension to {count} elements with a value that does not change the result."
        extent = tensor.layout.free_elements
        check.refuse("NK107", message, tensor, remedy=remedy, argument=role, extent=extent)


def at_most(check: Check, role: str, tensor: NkiTensor, count: int) -> None:
    """NK107: more elements per partition than this are not read."""
    if tensor.layout.free_elements > count:
        message = (
            f"`{role}`, {describe(tensor)}, has {tensor.layout.free_elements} elements per partition; it may have at "
            f"most {count}"
        )
        check.fail("NK107", message, tensor, argument=role, extent=tensor.layout.free_elements, limit=count)


def of_dtype(check: Check, role: str, tensor: NkiTensor, *allowed: DType) -> None:
    """NK301: an operand is of one of these dtypes."""
    if tensor.dtype not in allowed:
        names = " or ".join(str(dtype) for dtype in allowed)
        message = f"`{role}` must be {names}, it is {describe(tensor)}"
        check.refuse("NK301", message, tensor, remedy=f"Allocate it as nl.{allowed[-1]}; nisa.tensor_copy casts.")


def same_dtype(check: Check, first: tuple[str, NkiTensor], second: tuple[str, NkiTensor]) -> None:
    """NK301: the instruction moves bits and casts nothing."""
    (role, tensor), (other_role, other) = first, second
    if tensor.dtype is not other.dtype:
        message = (
            f"`{role}`, {describe(tensor)}, and `{other_role}`, {describe(other)}, must be of the same dtype; nothing "
            "is cast"
        )
        remedy = f"Allocate `{role}` as nl.{other.dtype} and cast with nisa.tensor_copy before or after."
        check.refuse("NK301", message, tensor, other, remedy=remedy)


def whole_cores(check: Check, role: str, tensor: NkiTensor) -> None:
    """NK113: each GpSimd core works on its 16 partitions together."""
    if tensor.shape[0] % PARTITIONS_PER_CORE:
        message = (
            f"`{role}`, {describe(tensor)}, has {tensor.shape[0]} partitions; they must be a multiple of "
            f"{PARTITIONS_PER_CORE}, the partitions of one GpSimd core"
        )
        check.refuse("NK113", message, tensor)


def integer(
    check: Check, role: str, number: Number | NkiTensor, least: int = int(_INT32.min), most: int = int(_INT32.max)
) -> int:
    """NK609: a whole number, known when the kernel is built, within these bounds (those of int32)."""
    whole = isinstance(number, (int, np.integer)) and not isinstance(number, bool)
    if not whole or not least <= number <= most:
        what = "a 32-bit integer" if least == _INT32.min else f"an integer from {least} to {most}"
        given = describe(number) if isinstance(number, NkiTensor) else repr(number)
        check.refuse("NK609", f"`{role}` must be {what}, it is {given}")
    return int(number)


def known_number(check: Check, role: str, value: Operand) -> None:
    """NK609: a number, not a tensor."""
    if isinstance(value, NkiTensor):
        message = f"`{role}` must be a number, known when the kernel is built; it is {describe(value)}"
        check.refuse("NK609", message, value)


def partitions_of(tensor: NkiTensor, chosen: slice | Sequence[int] | Array) -> Array:
    """Return a mask, broadcastable to ``tensor``, of some of its partitions."""
    mask = np.zeros((tensor.shape[0], *[1] * (tensor.ndim - 1)), np.bool_)
    mask[chosen] = True
    return mask
