"""Guards that many instructions share. Each names the tensor, the limit and the value that broke it."""

from __future__ import annotations

from typing import Any

from nkitools.chip.memory import MemoryRegion
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.views import MEMORY_NAMES, describe
from nkitools.isa.enums import engine
from nkitools.isa.instruction import Check
from nkitools.isa.operators import ACTIVATIONS, OPERATORS, Activation, Operator, token_name

SBUF = MemoryRegion.sbuf
PSUM = MemoryRegion.psum
ON_CHIP = (SBUF, PSUM)
HBM = (MemoryRegion.private_hbm, MemoryRegion.shared_hbm)
MAX_DIMENSIONS = 5  # a view has up to five dimensions (NKI Language Guide, Tensor Values)


def memory(check: Check, tensor: NkiTensor, role: str, allowed: tuple[MemoryRegion, ...]) -> None:
    """NK201: an operand lies in a memory that the instruction cannot reach."""
    if tensor.buffer not in allowed:
        names = " or ".join(dict.fromkeys("HBM" if region in HBM else region.name.upper() for region in allowed))
        move = {
            "SBUF": "Bring it there first: nisa.dma_copy or nl.load from HBM, nisa.tensor_copy from PSUM.",
            "PSUM": "Allocate it with buffer=nl.psum and copy the result out with nisa.tensor_copy.",
            "HBM": "Allocate it with buffer=nl.shared_hbm or pass it as an argument of the kernel.",
        }
        check.fail(
            "NK201",
            f"`{role}` must be in {names}, it is {describe(tensor)}",
            tensor,
            remedy=move[names.split(" or ", maxsplit=1)[0]] if tensor.buffer in HBM or names in move else "",
        )


def tile(check: Check, tensor: NkiTensor, role: str) -> None:
    """NK101, NK107, NK110: a tile has at most 128 partitions, fits in a partition, and has at most five dimensions."""
    if not tensor.on_chip:
        return
    chip = check.chip
    if tensor.shape[0] > chip.partitions:
        check.fail(
            "NK101",
            f"`{role}`, {describe(tensor)}, has {tensor.shape[0]} partitions; a NeuronCore has {chip.partitions}",
            tensor,
        )
    partition_bytes = chip.sbuf_usable_bytes if tensor.buffer is SBUF else chip.psum_partition_bytes
    used = tensor.layout.free_elements * tensor.dtype.itemsize
    if used > partition_bytes and tensor.layout.injective:
        check.fail(
            "NK107",
            f"`{role}`, {describe(tensor)}, takes {used} bytes of each partition; a partition of "
            f"{MEMORY_NAMES[tensor.buffer]} has {partition_bytes} usable bytes on {chip.name}",
            tensor,
        )
    if tensor.ndim > MAX_DIMENSIONS:
        check.fail(
            "NK110",
            f"`{role}`, {describe(tensor)}, has {tensor.ndim} dimensions; an access pattern has at most {MAX_DIMENSIONS}",
            tensor,
        )


def tiles(check: Check, *, on: tuple[MemoryRegion, ...] = ON_CHIP, **tensors: NkiTensor | None) -> None:
    """Memory and size guards of several operands."""
    for role, tensor in tensors.items():
        if tensor is not None:
            memory(check, tensor, role, on)
    for role, tensor in tensors.items():
        if tensor is not None:
            tile(check, tensor, role)


def same_partitions(check: Check, first: tuple[str, NkiTensor], second: tuple[str, NkiTensor]) -> None:
    """NK102 (NK111 where one has a single partition): operands of one instruction have equally many partitions."""
    (role, tensor), (other_role, other) = first, second
    count, other_count = tensor.shape[0], other.shape[0]
    if count == other_count:
        return
    single = other if other_count == 1 else tensor
    rule = "NK111" if 1 in (count, other_count) and role != "dst" else "NK102"
    sentence = (
        f"`{role}`, {describe(tensor)}, has {count} partitions and `{other_role}`, {describe(other)}, has {other_count}"
    )
    if rule == "NK111":
        check.refuse(rule, f"{sentence}; one partition is not broadcast to others", single)
    check.refuse(rule, sentence, tensor, other)


def same_elements(check: Check, first: tuple[str, NkiTensor], second: tuple[str, NkiTensor]) -> None:
    """NK102, NK109: equally many partitions, and equally many elements in each."""
    same_partitions(check, first, second)
    (role, tensor), (other_role, other) = first, second
    count, other_count = tensor.layout.free_elements, other.layout.free_elements
    if count != other_count:
        check.refuse(
            "NK109",
            f"`{role}`, {describe(tensor)}, has {count} elements per partition and `{other_role}`, {describe(other)}, "
            f"has {other_count}",
            tensor,
            other,
        )


def vector_operand(check: Check, role: str, operand: Any, data: NkiTensor) -> None:
    """A vector operand is a (partitions, 1) tile in SBUF or PSUM."""
    if not isinstance(operand, NkiTensor):
        return
    tiles(check, **{role: operand})
    same_partitions(check, ("data", data), (role, operand))
    if operand.layout.free_elements != 1:
        check.refuse(
            "NK109",
            f"`{role}` must be a number or a tile of shape ({data.shape[0]}, 1), it is {describe(operand)}",
            operand,
        )


def one_of(check: Check, role: str, value: Any, kind: type, allowed: tuple[Any, ...] | None = None) -> None:
    """NK609, NK206: an enum argument is of its enum, and among the members that the instruction knows."""
    if not isinstance(value, kind):
        check.refuse("NK609", f"`{role}` must be a nki.isa.{kind.__name__}, it is {value!r}")
    if allowed is not None and value not in allowed:
        names = ", ".join(str(member) for member in allowed)
        rule = "NK206" if kind is engine else "NK609"
        check.fail(rule, f"`{role}`={value} is not possible here; possible are {names}")


def gpsimd_reaches(check: Check, chosen: engine, **tensors: Any) -> None:
    """NK206: the GpSimd Engine cannot access PSUM."""
    for role, tensor in tensors.items():
        if chosen is engine.gpsimd and isinstance(tensor, NkiTensor) and tensor.buffer is PSUM:
            check.fail(
                "NK206",
                f"the GpSimd Engine cannot access PSUM, where `{role}`, {describe(tensor)}, lies",
                tensor,
            )


def operator(check: Check, role: str, token: Any) -> Operator:
    """NK306: the math operator that a token stands for."""
    if isinstance(token, Operator):
        return token
    name = token_name(token)
    found = OPERATORS.get(name) if name else None
    if found is None:
        if name in ACTIVATIONS:
            check.refuse("NK306", f"`{role}`=nl.{name} is an activation function, not a math operator; nisa.activation takes it")
        check.refuse("NK306", f"`{role}`={token!r} is not a math operator of NKI")
    return found


def binary_operator(check: Check, role: str, token: Any) -> Operator:
    """NK306: a math operator of two operands."""
    found = operator(check, role, token)
    if found.unary:
        check.refuse("NK306", f"`{role}`={found} takes one operand, two are given")
    return found


def reduction_operator(check: Check, role: str, token: Any) -> Operator:
    """NK306: a math operator that may reduce."""
    found = operator(check, role, token)
    if found.reduce is None:
        legal = ", ".join(f"nl.{name}" for name, each in OPERATORS.items() if each.reduce is not None)
        check.refuse("NK306", f"`{role}`={found} cannot reduce; legal are {legal}")
    return found


def activation_function(check: Check, role: str, token: Any) -> Activation:
    """NK306: the activation function that a token stands for."""
    if isinstance(token, Activation):
        return token
    name = token_name(token)
    if name == "prelu":
        check.refuse("NK607", f"`{role}`=nl.prelu needs relu_param, which only nisa.activate2 has")
    found = ACTIVATIONS.get(name) if name else None
    if found is None:
        check.refuse("NK306", f"`{role}`={token!r} is not an activation function of the Scalar Engine")
    return found


def integers(check: Check, **tensors: Any) -> None:
    """NK301: bitvec operators take and give integers."""
    for role, tensor in tensors.items():
        if isinstance(tensor, NkiTensor) and not (tensor.dtype.is_integer or tensor.dtype.kind == "bool"):
            check.refuse("NK301", f"a bitvec operator needs integers, `{role}` is {describe(tensor)}", tensor)


def not_packed(check: Check, **tensors: Any) -> None:
    """NK301: packed x4 dtypes are operands of the microscaling instructions only."""
    for role, tensor in tensors.items():
        if isinstance(tensor, NkiTensor) and tensor.dtype.kind == "packed":
            check.refuse("NK301", f"the engine cannot compute on packed elements, `{role}` is {describe(tensor)}", tensor)
