"""Remedies for operands whose shapes do not fit: which tile to change, in which dimension, and where it is made.

The wrong tile is the one that the other operands outvote. Where nothing votes, it is a part of a tensor that is off by
one, else the destination on chip. A tensor in HBM is changed only where none on chip could be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe, made_at, name_of
from nkitools.rules.finding import refuse

Operand = tuple[str, NkiTensor]


@dataclass(frozen=True)
class Change:
    """The tensor to change, the sentence that says so, and its facts."""

    tensor: NkiTensor
    remedy: str
    facts: dict[str, int] = field(default_factory=dict)


def to_fit(operands: Mapping[str, NkiTensor], first: Operand, second: Operand) -> Change:
    """Return the change that makes two operands fit; ``operands``: all operands of the call by role."""
    wrong, right = _odd_one(operands, first, second)
    if wrong.ndim == right.ndim == 2 and wrong.shape == right.shape[::-1] and wrong.shape[0] != wrong.shape[1]:
        return turned(wrong, right.shape)
    if wrong.shape[1:] == (1,) and wrong.shape[0] == _size(right)[1] != right.shape[0]:
        size, rows = wrong.shape[0], right.shape[0]
        said = f"{_tensor(wrong)} is a column of {size} elements, where {rows} rows are needed"
        return Change(wrong, f"{said}: load the vector as nl.load(v.reshape((1, {size})).broadcast(0, {rows})).")
    return resized(wrong, _shape_like(wrong, right))


def to_transpose(dst: NkiTensor, src: NkiTensor, order: Sequence[int]) -> Change:
    """Return the change that makes ``dst`` the transpose of ``src``: of a part that is off by one, else of ``dst``."""
    off = [axis for place, axis in enumerate(order) if src.shape[axis] != dst.shape[place]]
    if _is_part(src) and not _is_part(dst) and len(off) == 1:
        place = list(order).index(off[0])
        if abs(src.shape[off[0]] - dst.shape[place]) == 1:
            return resized(src, [dst.shape[place] if axis == off[0] else size for axis, size in enumerate(src.shape)])
    return resized(dst, [src.shape[axis] for axis in order])


def to_contract(stationary: NkiTensor, moving: NkiTensor) -> Change:
    """Return the change for a common contraction: transpose the operand whose free size is the other's partitions."""
    (k, m), (rows, n) = _size(stationary), _size(moving)
    for cut, other in ((moving, stationary), (stationary, moving)):
        if _is_part(cut) and cut.storage.shape[0] == other.shape[0] and not _is_part(other):
            return resized(cut, (other.shape[0], *cut.shape[1:]))
    if n == k and m != rows:
        return turned(moving, (k, rows))
    if m == rows and n != k:
        return turned(stationary, (rows, k))
    change = to_fit({}, ("moving", moving), ("stationary", stationary))
    wrong, right = (moving, stationary) if change.tensor is moving else (stationary, moving)
    return resized(wrong, (right.shape[0], *wrong.shape[1:]))


def turned(tensor: NkiTensor, shape: Sequence[int]) -> Change:
    """Return the change of a tile whose transpose is wanted."""
    sentence = (
        f"{_tensor(tensor)} is {list(tensor.shape)}, the transpose of the {list(shape)} that is needed: turn it with "
        "nisa.nc_transpose into a PSUM tile, or load it with nisa.dma_transpose."
    )
    return Change(tensor, sentence)


def resized(tensor: NkiTensor, shape: Sequence[int]) -> Change:
    """Return the change of a tensor's shape: of its allocation, or of its slice where it is a part of a tensor."""
    pairs = list(enumerate(zip(tensor.shape, shape, strict=False)))
    axis = next((axis for axis, (has, needs) in pairs if has != needs), -1)
    facts, why = {}, ""
    if axis >= 0 and len(shape) == tensor.ndim:
        has, needs = tensor.shape[axis], shape[axis]
        facts, why = {"axis": axis, "extent": has, "limit": needs}, f": dimension {axis} is {has}, it must be {needs}"
    whole = tensor.shape == tensor.storage.shape
    subject = f"Make{name_of(tensor)}{made_at(tensor)}" if whole else f"Slice{name_of(tensor)}"
    part = ""
    if whole and why and all(has >= needs for has, needs in zip(tensor.shape, shape, strict=True)):
        indices = ", ".join(f"0:{each}" for each in shape)
        part = f", or take{name_of(tensor, part=f'[{indices}]')}"
    return Change(tensor, f"{subject} as {list(shape)}{part}{why}.", facts)


def check_product(x: NkiTensor, y: NkiTensor, *, transposed: bool) -> None:
    """NK102: nl.matmul sums over as many elements of ``x`` as ``y`` has partitions."""
    k, other = (x.shape[0], x.shape[1]) if transposed else (x.shape[1], x.shape[0])
    if k == y.shape[0]:
        return
    change = turned(y, (k, y.shape[0])) if y.shape[1] == k else resized(y, (k, y.shape[1]))
    remedy = change.remedy
    if other == y.shape[0]:
        said = "Leave transpose_x out" if transposed else "Pass transpose_x=True"
        remedy = f"{said}: the dimension of{name_of(x)} to sum over is {'1' if transposed else '0'}."
    message = (
        f"nl.matmul: `x`, {describe(x)}, has {k} elements to sum over and `y`, {describe(y)}, has {y.shape[0]} "
        "partitions"
    )
    refuse("NK102", message, about=(y, x), remedy=remedy, facts={"partitions": y.shape[0]})


def _tensor(tensor: NkiTensor) -> str:
    return f"The tile{name_of(tensor)}{made_at(tensor)}"


def _odd_one(operands: Mapping[str, NkiTensor], first: Operand, second: Operand) -> tuple[NkiTensor, NkiTensor]:
    """Return the operand that is wrong, and the one that it should be like."""
    (role, tensor), (other_role, other) = first, second
    others = [each for key, each in operands.items() if key not in (role, other_role) and _size(each)[1] > 1]
    votes = sum(_size(each) == _size(tensor) for each in others), sum(_size(each) == _size(other) for each in others)
    if votes[0] != votes[1]:
        return (tensor, other) if votes[0] < votes[1] else (other, tensor)
    off_by_one = [each for each in (tensor, other) if _is_part(each) and abs(tensor.size - other.size) == _row(each)]
    if len(off_by_one) == 1:
        return (tensor, other) if off_by_one[0] is tensor else (other, tensor)
    cut = [_is_part(each) and each.storage.shape == like.shape for each, like in ((tensor, other), (other, tensor))]
    cut = cut if any(cut) else [_is_part(each) for each in (tensor, other)]
    if cut[0] != cut[1] and tensor.on_chip == other.on_chip:
        return (tensor, other) if cut[0] else (other, tensor)
    if tensor.on_chip != other.on_chip:
        return (tensor, other) if tensor.on_chip else (other, tensor)
    return (tensor, other) if role.startswith("dst") else (other, tensor)


def _size(tensor: NkiTensor) -> tuple[int, int]:
    return tensor.shape[0], tensor.size // max(tensor.shape[0], 1)


def _is_part(tensor: NkiTensor) -> bool:
    return tensor.shape != tensor.storage.shape


def _row(tensor: NkiTensor) -> int:
    """Return the elements of one step of the first dimension that is only a part of its tensor's."""
    cut = [size for size, whole in zip(tensor.shape, tensor.storage.shape, strict=False) if size < whole]
    return tensor.size // cut[0] if cut else -1


def _shape_like(wrong: NkiTensor, right: NkiTensor) -> tuple[int, ...]:
    return tuple(right.shape) if wrong.ndim >= 2 or right.ndim < 2 else (right.size,)
