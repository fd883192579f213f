"""Assignments that cost nothing: the instruction that made a value writes to where the value is assigned.

``tile[...] = nl.load(x)`` is one DMA into ``tile`` and ``psum += nl.matmul(a, b)`` is one accumulating matmul. Here a
call makes its value at once, so that its errors are those of its line, and leaves open where the instruction writes
(`nkitools.record.open_instruction`): an assignment that follows brings the value to its tile, and closes it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, TypeGuard

from nkitools.chip.core import current_core
from nkitools.chip.masked_out import travelled
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.chip.pictures import UNWRITTEN, picture_of
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.dialects.legacy.kernels.kernel_state import form_of
from nkitools.dialects.legacy.tiles.result_tiles import copy_tile
from nkitools.facts.kept import Kept
from nkitools.isa.move import tensor_copy
from nkitools.issue import guards
from nkitools.issue.element_maps import made
from nkitools.issue.element_rules import SAME
from nkitools.issue.instruction import Check, Dst, Plan, Src, instruction
from nkitools.issue.overwritten import report_lost
from nkitools.record.open_instruction import OpenInstruction
from nkitools.rules.finding import report

_adding_plans = Kept[int, Plan](
    "plans of matmuls that add, by the plans that overwrite", 1_200, "as many as plans of a chip are kept"
)

# Which memories an engine writes to. Elsewhere the compiler needs a copy indeed.
_REACHES = {
    "dma": frozenset({MemoryRegion.sbuf}),
    "tensor": frozenset({MemoryRegion.psum}),
    "vector": frozenset({MemoryRegion.sbuf, MemoryRegion.psum}),
    "scalar": frozenset({MemoryRegion.sbuf, MemoryRegion.psum}),
    "gpsimd": frozenset({MemoryRegion.sbuf}),
}


def copy(dst: NkiTensor, value: NkiTensor, opened: OpenInstruction | None) -> None:
    """Do ``dst = value`` on chip; ``opened``: the open instruction that made the value, or None."""
    if _may_write(opened, dst, value):
        if _record().assign(partial(tensor_copy.call, dst=dst, src=value)):
            return
    else:
        copy_tile(dst, value, None)
    if opened is not None:
        form_of().assigned.add(value.storage.id)


def accumulate(dst: NkiTensor, product: NkiTensor, opened: OpenInstruction | None) -> bool:
    """Do ``dst += product`` as the accumulation of the open matmul that made ``product``; return False if there is
    none.

    The first product is written into a tile that was never written, as the matmuls of an accumulation group do:
    AWS's attention tutorial adds to tiles made with nl.ndarray.
    """
    if not _is_open(opened, product) or opened.plan.name != "nc_matmul":
        return False
    if dst.buffer is not MemoryRegion.psum or dst.shape != product.shape:
        return False
    missing = dst.storage.unwritten(dst.layout, dst.byte_offset)
    undefined = None if missing is None else travelled(dst, missing)
    if missing is not None and undefined is not None:
        missing = missing & ~undefined
    if missing is not None and missing.any() and not report_lost("+=", dst, missing):
        if missing.all():
            copy(dst, product, opened)
            return True
        _check_defined(dst, missing, product)
    opened.plan = _adding(opened.plan)
    _record().assign(partial(accumulating_matmul.call, dst=dst, product=product))
    if undefined is not None:
        dst.storage.mark_unwritten(dst.layout, dst.byte_offset, undefined)
    return True


def _adding(plan: Plan) -> Plan:
    """Return the plan of a matmul that adds, in place of one that overwrites."""
    found = _adding_plans.get(plan.id)
    if found is None:
        operands = {source.operand: rule for source, rule in plan.elements.of("dst")}
        found = replace(plan, elements=made(dst={**operands, "dst": SAME}))
        found.number()
        _adding_plans[plan.id] = found
    return found


def _record() -> Any:
    return current_core("nki").record


def _is_open(opened: OpenInstruction | None, value: NkiTensor) -> TypeGuard[OpenInstruction]:
    """Return whether an instruction is still open, and has made all of a value."""
    return (
        opened is not None
        and not opened.is_closed
        and opened is _record().open
        and opened.tile is value.storage
        and opened.is_only_writer
    )


def _may_write(opened: OpenInstruction | None, dst: NkiTensor, value: NkiTensor) -> TypeGuard[OpenInstruction]:
    """Return whether the instruction that has made a value can write to ``dst`` itself, and is not closed."""
    return (
        _is_open(opened, value)
        and dst.buffer in _REACHES.get(opened.plan.engine, ())
        and len(dst.shape) <= guards.MAX_DIMENSIONS
    )


def _check_defined(dst: NkiTensor, missing: Array, product: NkiTensor) -> None:
    """NK401: a product that is defined is added where nothing was written."""
    undefined = product.storage.unwritten(product.layout, product.byte_offset)
    if undefined is None or (missing & ~undefined).any():
        report(
            "NK401",
            f"`+=` adds a matrix product to {describe(dst)}, some elements written and others never",
            about=(dst,),
            remedy="Write to all of the tile before, or create it with nl.zeros(..., buffer=nl.psum).",
            picture=lambda: picture_of(missing, UNWRITTEN),
        )


@instruction
def accumulating_matmul(check: Check, dst: Dst, product: Src) -> Plan:
    """``dst += product`` in float32, with ``dst`` in one bank of PSUM as the Tensor Engine wants it (NK106, NK303)."""
    if dst.dtype is not product.dtype:
        message = f"`dst`, {describe(dst)}, must be {product.dtype} to accumulate matrix products"
        check.fail("NK303", message, dst, argument="dst")
    guards.bank(check, dst)

    def compute(destination: Array, values: Array) -> None:
        destination += values.astype(destination.dtype, copy=False)

    return Plan("tensor", 0.0, compute, made(dst={"product": SAME, "dst": SAME}), lanes="travel")
