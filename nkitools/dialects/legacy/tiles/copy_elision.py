"""Assignments that cost nothing: the instruction that made a value writes to where the value is assigned.

``tile[...] = nl.load(x)`` is one DMA into ``tile`` and ``psum += nl.matmul(a, b)`` is one accumulating matmul. Here a
call makes its value at once, in a tile of its own, and the assignment copies it; the record then shows what the chip
runs, one instruction.
"""

from __future__ import annotations

from typing import Any

from nkitools.chip.core import current_core
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.chip.pictures import UNWRITTEN, picture_of
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.dialects.legacy.kernels.kernel_state import form_of
from nkitools.dialects.legacy.tiles.result_tiles import write_lanes
from nkitools.isa.move import tensor_copy
from nkitools.issue.instruction import Check, Dst, Plan, Src, instruction
from nkitools.issue.overwritten import report_lost
from nkitools.rules.finding import report

# Which memories an engine writes to. Elsewhere the compiler needs a copy indeed.
_REACHES = {
    "dma": frozenset({MemoryRegion.sbuf}),
    "tensor": frozenset({MemoryRegion.psum}),
    "vector": frozenset({MemoryRegion.sbuf, MemoryRegion.psum}),
    "scalar": frozenset({MemoryRegion.sbuf, MemoryRegion.psum}),
    "gpsimd": frozenset({MemoryRegion.sbuf}),
}


def copy(dst: NkiTensor, value: NkiTensor, made_at: int) -> None:
    """``dst = value``, on chip; ``made_at``: how many instructions had been issued when the value was complete."""
    record = current_core("nki").record
    fresh = record.count == made_at and _last_writes(record, value)
    plan = _last_plan(record) if fresh else None
    write_lanes(tensor_copy, dst, (value,), None)
    once = record.count == made_at + 1
    if plan is not None and once and dst.buffer in _REACHES.get(plan.engine, ()) and sum(plan.written) == 1:
        _fold(record)
    elif record.count > made_at >= 0:
        form_of().assigned.add(value.storage.id)


def accumulate(dst: NkiTensor, product: NkiTensor, made_at: int) -> bool:
    """``dst += product`` as the accumulation of the matmul that has just made ``product``; False where it is none.

    Into a tile that was never written the first product is written, as the matmuls of an accumulation group do it:
    AWS's attention tutorial adds to tiles made with nl.ndarray.
    """
    record = current_core("nki").record
    if (
        record.count != made_at
        or not _last_writes(record, product)
        or _last_plan(record).name != "nc_matmul"
        or dst.buffer is not MemoryRegion.psum
        or dst.shape != product.shape
    ):
        return False
    missing = dst.storage.unwritten(dst.layout, dst.byte_offset)
    if missing is not None and not report_lost("+=", dst, missing):
        if missing.all():
            copy(dst, product, made_at)
            return True
        _check_defined(dst, missing, product)
    accumulating_matmul(dst, product)
    _fold(record)
    return True


def _check_defined(dst: NkiTensor, missing: Array, product: NkiTensor) -> None:
    """NK401: a product that is defined is added where nothing was written."""
    undefined = product.storage.unwritten(product.layout, product.byte_offset)
    if undefined is None or (missing & ~undefined).any():
        report(
            "NK401",
            f"`+=` adds a matrix product to {describe(dst)}, of which some elements were written and others never",
            about=(dst,),
            remedy="Write to all of the tile before, or create it with nl.zeros(..., buffer=nl.psum).",
            picture=lambda: picture_of(missing, UNWRITTEN),
        )


@instruction
def accumulating_matmul(check: Check, dst: Dst, product: Src) -> Plan:
    """``dst += product`` in float32, with ``dst`` in one bank of PSUM as the Tensor Engine wants it (NK106, NK303)."""
    if dst.dtype is not product.dtype:
        check.fail("NK303", f"`dst`, {describe(dst)}, must be {product.dtype} to accumulate matrix products", dst)
    chip = check.chip
    span = sum((size - 1) * stride for size, stride in zip(dst.shape[1:], dst.layout.strides[1:], strict=True))
    several_banks = chip.moving_fmax_float32 * 4 > chip.psum_bank_bytes
    if not several_banks and dst.layout.free_offset + span + dst.dtype.itemsize > chip.psum_bank_bytes:
        check.fail(
            "NK106", f"`dst`, {describe(dst)}, does not lie in one PSUM bank of {chip.psum_bank_bytes} bytes", dst
        )

    def compute(destination: Array, values: Array) -> None:
        destination += values.astype(destination.dtype, copy=False)

    return Plan("tensor", 0.0, compute, lanes="travel")


# --- the record ------------------------------------------------------------------------------------------------------


def _last_plan(record: Any) -> Any:
    return record.plan_at(record.count - 1)


def _is_first(record: Any, position: int, value: NkiTensor) -> bool:
    """Return whether an instruction's first operand lies where the value does; the last instruction is at -1."""
    return value.storage.id in record.row(record.count + position).storages()[:1]


def _last_writes(record: Any, value: NkiTensor) -> bool:
    """Whether the last instruction, and not the one before it too, wrote into the value's storage."""
    if not record.count or not _is_first(record, -1, value):
        return False
    return record.count == 1 or not _is_first(record, -2, value)


def _fold(record: Any) -> None:
    """Take the last instruction, a copy, out of the record; the one before writes to the copy's destination instead."""
    record.redirect_last()
    _move_parts(record)
    record.folded()


def _move_parts(record: Any) -> None:
    """What was said of the copy's destination holds of that of the instruction before it."""
    copied = record.parts.pop(record.count, {})
    known = record.parts.get(record.count - 1, {})
    known.pop(0, None)
    if 0 in copied:
        record.parts.setdefault(record.count - 1, known)[0] = copied[0]
