"""Guards that many instructions share. Each names the operand, the limit and the value that broke it."""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeAlias, TypeVar

import numpy as np

from nkitools.chip.core import current_core
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import MEMORY_NAMES, describe, made_at, name_of
from nkitools.engines.enums import engine
from nkitools.engines.operators import (
    ACTIVATIONS,
    ADD_IN_ORDER,
    OPERATORS,
    Activation,
    Operator,
    OperatorToken,
    token_name,
)
from nkitools.facts.generations import Generation, first_with
from nkitools.issue.instruction import Check
from nkitools.issue.plan import OptionalOperand

SBUF = MemoryRegion.sbuf
PSUM = MemoryRegion.psum
ON_CHIP = (SBUF, PSUM)
HBM = (MemoryRegion.private_hbm, MemoryRegion.shared_hbm)
MAX_DIMENSIONS = 5  # a view has up to five dimensions (NKI Language Guide, Tensor Values)

Mode = TypeVar("Mode", bound=Enum)

_BRING = {
    SBUF: "Bring it to SBUF first: nisa.dma_copy or nl.load from HBM, nisa.tensor_copy from PSUM.",
    PSUM: "Allocate it with buffer=nl.psum and copy the result out with nisa.tensor_copy.",
}
_WRITE = "Write into a tile in SBUF, then copy that: nisa.dma_copy or nl.store to HBM, nisa.tensor_copy to PSUM."


def tiles(check: Check, *, on: tuple[MemoryRegion, ...] = ON_CHIP, **tensors: NkiTensor | None) -> None:
    """Memory, size and start of several operands of an engine."""
    present = [(role, tensor) for role, tensor in tensors.items() if tensor is not None]
    check.operands.update(present)
    for role, tensor in present:
        memory(check, tensor, role, on)
    sizes(check, *present)
    for role, tensor in present:
        start(check, tensor, role)


def memory(check: Check, tensor: NkiTensor, role: str, allowed: tuple[MemoryRegion, ...]) -> None:
    """NK201: an operand lies in a memory that the instruction cannot reach."""
    if tensor.buffer in allowed:
        return
    names = tuple(dict.fromkeys("HBM" if region in HBM else region.name.upper() for region in allowed))
    bring = _BRING[PSUM] if SBUF not in allowed else _WRITE if _is_written(role) else _BRING[SBUF]
    message = f"`{role}` must be in {' or '.join(names)}, it is {describe(tensor)}"
    check.fail("NK201", message, tensor, remedy=bring, argument=role, memories=names)


def _is_written(role: str) -> bool:
    return role.startswith("dst") or role.endswith("_res")


def sizes(check: Check, *operands: tuple[str, NkiTensor]) -> None:
    """NK101, NK107, NK110: a tile has at most 128 partitions, fits in a partition, and has at most five dimensions."""
    heights(check, *operands)
    widths(check, *operands)


def heights(check: Check, *operands: tuple[str, NkiTensor]) -> None:
    """NK101: a tile has at most 128 partitions."""
    on_chip = [(role, tensor) for role, tensor in operands if tensor.on_chip]
    _once(check, "NK101", [(role, tensor, *_too_tall(check.chip, tensor)) for role, tensor in on_chip])


def widths(check: Check, *operands: tuple[str, NkiTensor]) -> None:
    """NK107, NK110: a tile fits in a partition and has at most five dimensions."""
    on_chip = [(role, tensor) for role, tensor in operands if tensor.on_chip]
    _once(check, "NK107", [(role, tensor, *_too_long(check.chip, tensor)) for role, tensor in on_chip])
    _once(check, "NK110", [(role, tensor, *_too_many_dimensions(tensor)) for role, tensor in on_chip])


_Size: TypeAlias = tuple[str, dict[str, Any]]  # what is wrong with a size, '' for nothing; and the facts of it
_FITS: _Size = "", {}


def _once(check: Check, rule: str, operands: list[tuple[str, NkiTensor, str, dict[str, Any]]]) -> None:
    """Report a size once, at an input if possible: the result of too large a tile is too large as well."""
    broken = [operand for operand in operands if operand[2]]
    if not broken:
        return
    role, tensor, sentence, facts = next((each for each in broken if each[0] != "dst"), broken[0])
    others = (each for _, each, *_ in broken if each is not tensor)
    remedy = ""
    if rule == "NK101" and "partitions" in facts and tensor.shape == tensor.storage.shape:
        turns = -(-tensor.shape[0] // check.chip.partitions)
        shape = [check.chip.partitions, *tensor.shape[1:]]
        made = f"{name_of(tensor)}{made_at(tensor)}"
        remedy = f"Make{made} as {shape} in a loop over {turns} tiles of nl.tile_size.pmax rows."
    if rule == "NK101" and role == "dst" and check.instruction == "dma_copy" and len(operands) > 1:
        made = f"{name_of(tensor)}{made_at(tensor)}"
        remedy = f"Make{made} with buffer=nl.shared_hbm, where results lie: without buffer= it is a tile in SBUF."
    about = f"`{role}`, {describe(tensor)}, {sentence}"
    check.fail(rule, about, tensor, *others, argument=role, remedy=remedy, **facts)
    for _, each, *_ in broken:
        each.storage.excused |= {rule}


def _too_tall(chip: Generation, tensor: NkiTensor) -> _Size:
    first = tensor.layout.start_partition
    last = first + (tensor.shape[0] - 1) * max(tensor.layout.partition_step, 1)
    if last < chip.partitions:
        return _FITS
    reach = f"has {tensor.shape[0]} partitions" if first == 0 else f"reaches partition {last}"
    facts = {"limit": chip.partitions, **({"partitions": tensor.shape[0]} if first == 0 else {"last_index": last})}
    return f"{reach}; a NeuronCore has {chip.partitions}", facts


def _too_long(chip: Generation, tensor: NkiTensor) -> _Size:
    limit = chip.sbuf_usable_bytes if tensor.buffer is SBUF else chip.psum_partition_bytes
    used = tensor.layout.free_elements * tensor.dtype.itemsize
    if used <= limit or not tensor.layout.injective:
        return _FITS
    where = MEMORY_NAMES[tensor.buffer]
    sentence = f"takes {used} bytes of each partition; a partition of {where} has {limit} usable bytes on {chip.name}"
    return sentence, {"extent": used, "limit": limit}


def _too_many_dimensions(tensor: NkiTensor) -> _Size:
    if tensor.ndim <= MAX_DIMENSIONS:
        return _FITS
    sentence = f"has {tensor.ndim} dimensions; an access pattern has at most {MAX_DIMENSIONS}"
    return sentence, {"extent": tensor.ndim, "limit": MAX_DIMENSIONS}


def start(check: Check, tensor: NkiTensor, role: str) -> None:
    """NK108: an engine accesses neighbouring partitions, and their number decides on allowed start partitions.

    Sources: Trainium/Inferentia2 architecture guide, start_partition; nki-aps, Restriction on SBUF/PSUM Tensors.
    The legacy compiler places tiles itself, and none of its error codes is about start partitions: there NK108 applies
    to tiles that the author has placed. Doubt: it cannot place one tile for two accesses that need different places.
    """
    if not tensor.on_chip:
        return
    count, first, smallest = tensor.shape[0], tensor.layout.start_partition, check.chip.start_partition_step
    if count > 1 and tensor.layout.partition_step > 1:
        message = (
            f"`{role}`, {describe(tensor)}, takes every {tensor.layout.partition_step}th partition; an engine accesses "
            "neighbouring ones"
        )
        remedy = "Gather the rows into a tile of their own with nisa.dma_copy."
        check.fail("NK108", message, tensor, remedy=remedy, argument=role, first_index=first)
    step = next((size for size in (smallest, 2 * smallest) if count <= size), check.chip.partitions)
    if first % step and not tensor.layout.placed_to_fit:
        allowed = ", ".join(str(each) for each in range(0, check.chip.partitions, step))
        message = (
            f"`{role}`, {describe(tensor)}, begins at partition {first}; an access to {count} partitions may begin at "
            f"{allowed}"
        )
        check.fail("NK108", message, tensor, argument=role, first_index=first, partitions=count)


def dma_ends(check: Check, dst: NkiTensor, src: NkiTensor) -> None:
    """Check both ends of a DMA: HBM or SBUF (NK201), tiles of 128 partitions (NK101), a source that fits (NK107).

    Filling a tile that is too long is not yet its use: the instruction that reads it has the better finding (NK104,
    NK105).
    """
    ends = ("dst", dst), ("src", src)
    for role, tensor in ends:
        memory(check, tensor, role, (*HBM, SBUF))
    heights(check, *ends)
    widths(check, ends[1])


def lanes_of_copy(dst: NkiTensor, src: NkiTensor) -> str:
    """Return the value of `Plan.lanes` for a DMA copy.

    A kernel's own scratch in HBM is written and read like a tile: AWS's paged attention puts padding there.
    """
    if dst.buffer is MemoryRegion.shared_hbm:
        return "leave"
    return "use" if src.buffer is MemoryRegion.shared_hbm else "copy"


def bank(check: Check, dst: NkiTensor) -> None:
    """NK106: the Tensor Engine writes into one PSUM bank (NeuronCore-v4: anywhere in PSUM)."""
    chip = check.chip
    first, span = dst.layout.free_offset, dst.layout.reach
    if chip.one_bank_matmul and first + span > chip.psum_bank_bytes:
        message = (
            f"`dst`, {describe(dst)}, spans {span} bytes of a PSUM partition from byte {first} of its bank; "
            f"{check.instruction} of {chip.name} writes one bank of {chip.psum_bank_bytes} bytes"
        )
        check.fail("NK106", message, dst, argument="dst", extent=span, limit=chip.psum_bank_bytes)


def same_partitions(check: Check, first: tuple[str, NkiTensor], second: tuple[str, NkiTensor]) -> None:
    """NK102 (NK111 if one has a single partition): operands of an instruction must have equally many partitions."""
    (role, tensor), (other_role, other) = first, second
    count, other_count = tensor.shape[0], other.shape[0]
    if count == other_count:
        return
    sentence = (
        f"`{role}`, {describe(tensor)}, has {count} partitions and `{other_role}`, {describe(other)}, has {other_count}"
    )
    if 1 in (count, other_count) and role != "dst":
        single = other if other_count == 1 else tensor
        message, partitions = f"{sentence}; one partition is not broadcast to others", max(count, other_count)
        check.refuse("NK111", message, single, partitions=partitions)
    from nkitools.issue.shape_remedies import to_fit

    remedy = _of_blocks(tensor, other) or _of_blocks(other, tensor)
    change = to_fit(check.operands, first, second)
    other = other if change.tensor is tensor else tensor
    facts = {**change.facts, "partitions": count}
    check.refuse("NK102", sentence, change.tensor, other, remedy=remedy or change.remedy, argument=role, **facts)


def _of_blocks(tensor: NkiTensor, other: NkiTensor) -> str:
    """Return the remedy for a tensor whose blocks are in dimension 0 if the other operand is one block; else ''."""
    if tensor.ndim <= other.ndim or tensor.shape[-other.ndim :] != other.shape:
        return ""
    whole = tensor.storage.shape
    blocks = list(whole[: -other.ndim])
    return (
        f"Dimension 0 is the partition dimension, here that of the blocks: create the tensor as "
        f"{[other.shape[0], *blocks, *other.shape[1:]]} and index the blocks behind, or in the legacy dialect mark the "
        f"partition dimension: nl.ndarray(({', '.join(map(str, blocks))}, nl.par_dim({other.shape[0]}), ...)."
    )


def same_elements(check: Check, first: tuple[str, NkiTensor], second: tuple[str, NkiTensor], remedy: str = "") -> None:
    """NK102, NK109: equally many partitions, and equally many elements in each."""
    same_partitions(check, first, second)
    (role, tensor), (other_role, other) = first, second
    count, other_count = tensor.layout.free_elements, other.layout.free_elements
    if count != other_count:
        message = (
            f"`{role}`, {describe(tensor)}, has {count} elements per partition and `{other_role}`, {describe(other)}, "
            f"has {other_count}"
        )
        from nkitools.issue.shape_remedies import to_fit

        change = to_fit(check.operands, first, second)
        column = next((each for each in (tensor, other) if each.layout.free_elements == 1), None)
        if not remedy and column is not None and check.instruction == "tensor_tensor" and role != "dst":
            whole = other if column is tensor else tensor
            remedy = f"Call nisa.tensor_scalar with{name_of(whole)} as data and{name_of(column)} as operand0."
        whole = other if change.tensor is tensor else tensor
        check.refuse("NK109", message, change.tensor, whole, remedy=remedy or change.remedy, **change.facts)


def vector_operand(check: Check, role: str, operand: OptionalOperand, data: NkiTensor) -> None:
    """Check that a vector operand is a (partitions, 1) tile in SBUF or PSUM."""
    if not isinstance(operand, NkiTensor):
        return
    memory(check, operand, role, ON_CHIP)
    sizes(check, (role, operand))
    start(check, operand, role)
    same_partitions(check, ("data", data), (role, operand))
    if operand.layout.free_elements != 1:
        message = f"`{role}` must be a number or a tile of shape ({data.shape[0]}, 1), it is {describe(operand)}"
        remedy = f"Pass a number, or a tile with one value for each partition, ({data.shape[0]}, 1)."
        if operand.shape == data.shape and role == "operand0" and check.instruction == "tensor_scalar":
            both = f"{name_of(data)} as data1 and{name_of(operand)} as data2"
            remedy = f"For two tiles of one shape call nisa.tensor_tensor, with{both}."
        check.refuse("NK109", message, operand, argument=role, remedy=remedy)


def one_of(check: Check, role: str, value: Enum | None, kind: type, allowed: tuple[Any, ...] | None = None) -> None:
    """Check that an enum argument is of its enum (NK609), and among the members that the instruction takes (NK206)."""
    if not isinstance(value, kind):
        check.refuse("NK609", f"`{role}` must be a nki.isa.{kind.__name__}, it is {value!r}")
    if allowed is not None and value not in allowed:
        names = ", ".join(str(member) for member in allowed)
        rule = "NK206" if kind is engine else "NK609"
        check.fail(rule, f"`{role}`={value} is not possible here; possible are {names}", argument=role)


def mode(check: Check, role: str, value: Enum | str, kind: type[Mode]) -> Mode:
    """Return a member of an enum that may be given by name beyond the documents (NK621); else NK609."""
    if isinstance(value, str) and value in kind.__members__:
        message = f"`{role}`={value!r} is a string; the documents have nki.isa.{kind.__name__}.{value}"
        check.goes_beyond(message, remedy=f"Pass {role}=nisa.{kind.__name__}.{value}.")
        return kind[value]
    one_of(check, role, value, kind)  # type: ignore[arg-type]
    return value  # type: ignore[return-value]


def came_later(check: Check, ability: str, what: str, remedy: str = "", *, argument: str = "") -> None:
    """NK606: something came with a later generation than this chip's; ``argument`` asks for it."""
    if not getattr(check.chip, ability):
        message = f"{what} came with {first_with(ability)}; {check.chip.name} does not have it"
        check.fail("NK606", message, remedy=remedy, **({"argument": argument} if argument else {}))


def has_instruction(check: Check, ability: str, remedy: str) -> None:
    """NK606: the instruction came with a later generation than this chip's."""
    if not getattr(check.chip, ability):
        message = f"{check.chip.name} does not have the instruction; it came with {first_with(ability)}"
        check.fail("NK606", message, remedy=remedy)


def gpsimd_reaches(check: Check, chosen: engine, **tensors: OptionalOperand) -> None:
    """NK206: the GpSimd Engine cannot access PSUM."""
    for role, tensor in tensors.items():
        if chosen is engine.gpsimd and isinstance(tensor, NkiTensor) and tensor.buffer is PSUM:
            message = f"the GpSimd Engine cannot access PSUM, where `{role}`, {describe(tensor)}, lies"
            check.fail("NK206", message, tensor, argument="engine")


def operator(check: Check, role: str, token: OperatorToken) -> Operator:
    """NK306, NK606: the math operator that a token stands for, on this chip."""
    found = _operator(check, role, token)
    if found.needs:
        came_later(check, found.needs, f"`{role}`={found}", argument=role)
    return found


def _operator(check: Check, role: str, token: OperatorToken) -> Operator:
    found = token if isinstance(token, Operator) else None
    name = token_name(token)
    if found is None and name is not None:
        found = OPERATORS.get(name)
    if found is None and name in ACTIVATIONS:
        check.refuse(
            "NK306",
            f"`{role}`=nl.{name} is an activation function, not a math operator; nisa.activation takes it",
            remedy=f"Call nisa.activation(dst, op=nl.{name}, data).",
            argument=role,
        )
    if found is None:
        check.refuse("NK306", f"`{role}`={token!r} is not a math operator of NKI")
    return found


def documented_operator(check: Check, role: str, found: Operator) -> None:
    """NK615, NK621: an operator that no engine has, or that has a page for nisa.activate2 alone."""
    if found.name not in ("divide", "bypass") or not current_core(check.instruction).dialect.has_known_issues:
        return
    if found.name == "bypass":
        message = f"`{role}`=nl.bypass is documented for nisa.activate2 only; it passes the operand on here"
        remedy = "Leave the operator out, or call nisa.tensor_copy where nothing is to be computed."
        check.goes_beyond(message, remedy=remedy)
    else:
        message = (
            f"`{role}`=nl.divide does not compile for the chip: division is not available as a hardware instruction"
        )
        remedy = "Multiply by the reciprocal: nl.multiply(x, nl.reciprocal(y))."
        check.goes_beyond(message, remedy=remedy, rule="NK615", severity="error")


def binary_operator(check: Check, role: str, token: OperatorToken) -> Operator:
    """NK306, NK606: a math operator of two operands."""
    if _operator(check, role, token).unary:
        check.refuse("NK306", f"`{role}`={_operator(check, role, token)} takes one operand, two are given")
    return operator(check, role, token)


def reduction_operator(check: Check, role: str, token: OperatorToken) -> Operator:
    """NK306: a math operator that may reduce."""
    name = token.name if isinstance(token, Operator) else token_name(token)
    known = OPERATORS.get(name) if name is not None else None
    if known is not None and known.reduce is None:
        legal = ", ".join(f"nl.{each}" for each, found in OPERATORS.items() if found.reduce is not None)
        check.refuse("NK306", f"`{role}`={known} cannot reduce; legal are {legal}")
    return in_sum_order(check, operator(check, role, token))


def in_sum_order(check: Check, operator: Operator) -> Operator:
    """Return the operator, or one that adds in the order of elements if the run asks for that."""
    return ADD_IN_ORDER if check.sums_in_order and operator is OPERATORS["add"] else operator


def activation_function(check: Check, role: str, token: OperatorToken) -> Activation:
    """NK306: the activation function that a token stands for."""
    if isinstance(token, Activation):
        return token
    name = token_name(token)
    if name == "prelu":
        check.refuse("NK607", f"`{role}`=nl.prelu needs relu_param, which only nisa.activate2 has")
    found = ACTIVATIONS.get(name) if name else None
    if found is None:
        shown = f"nl.{name}" if name else repr(token)
        remedy = (
            f"nl.{name} is an operator of nisa.tensor_scalar (a tile and a number) and nisa.tensor_tensor (two tiles)."
        )
        remedy = remedy if name in OPERATORS else ""
        check.refuse("NK306", f"`{role}`={shown} is not an activation function of the Scalar Engine", remedy=remedy)
    return found


def integers(check: Check, **operands: OptionalOperand) -> None:
    """NK301: bitvec operators take and give integers."""
    for role, operand in operands.items():
        if isinstance(operand, NkiTensor) and not (operand.dtype.is_integer or operand.dtype.kind == "bool"):
            check.refuse("NK301", f"a bitvec operator needs integers, `{role}` is {describe(operand)}", operand)
        if isinstance(operand, (float, np.floating)):
            check.refuse("NK301", f"a bitvec operator needs integers, `{role}` is a {type(operand).__name__}")


def not_packed(check: Check, **tensors: OptionalOperand) -> None:
    """NK301: packed x4 dtypes are operands of the microscaling instructions only."""
    for role, tensor in tensors.items():
        if isinstance(tensor, NkiTensor) and tensor.dtype.kind == "packed":
            check.refuse(
                "NK301", f"the engine cannot compute on packed elements, `{role}` is {describe(tensor)}", tensor
            )
