"""DMA that does more than copy: transposing, and adding on the way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nkitools.chip.dtypes import uint32
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.numerics import Array, to_float32, working
from nkitools.chip.runtime_views import VectorTensor
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.engines.cast_on_write import put
from nkitools.engines.costs import DMA_COMPLETION_NS, dma
from nkitools.engines.enums import dge_mode as dge_modes
from nkitools.engines.enums import oob_mode as oob_modes
from nkitools.engines.operators import OperatorToken
from nkitools.issue import dma_descriptors, guards, instruction_guards
from nkitools.issue.element_maps import made
from nkitools.issue.element_rules import SAME, Transpose
from nkitools.issue.instruction import Check, Dst, Plan, Src, instruction
from nkitools.issue.plan import Sources

AXES = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}  # the permutations of dma_transpose, by the number of dimensions
SIXTEEN = 16  # rows that the DMA engines transpose together
TRANSPOSED_LAST = 128  # src.shape[-1] <= 128 (dma_transpose, Constraints)
MOST_SOURCES = 16  # "the max number of source tensors in srcs is 16" (dma_compute)


@instruction
def dma_transpose(
    check: Check,
    dst: Dst,
    src: Src,
    axes: Sequence[int] | None = None,
    priority: int | None = None,
    dge_mode: dge_modes = dge_modes.unknown,
    oob_mode: oob_modes = oob_modes.error,
    name: str | None = None,
) -> Plan:
    """``dst = src`` by DMA with its dimensions permuted: 2-D (1, 0), 3-D (2, 1, 0), 4-D (3, 1, 2, 0); bit-accurate.

    ``axes``: None or that permutation. ``src`` in HBM or SBUF, ``dst`` in SBUF with the shape of the transposed
    ``src``; equal dtypes. ``priority``: 0 to 3, on NeuronCore-v4 only.
    Direct, ``dge_mode`` is unknown or hwdge; dge_mode.none is computed too, but AWS's docstring does not have it
    (NK621). hwdge (NeuronCore-v3 on) takes 2-byte dtypes, a last dimension of at most 128, and a first dimension of 16
    (2-D), or one of 1, 2, 4, 8, 16 that makes a multiple of 16 with the last but one (3-D, 4-D). The DGE guide, which
    is older, asks of hwdge a first dimension of 16 and a last that 128 divides; we follow AWS's docstring.

    Indirect (``src`` gathered by vector_offset, NeuronCore-v3 on), ``dge_mode`` is unknown or swdge: the row of each
    index, column after column, becomes a column of ``dst``; 2-byte dtypes, a last dimension of at most 128, rows a
    multiple of 16; 4-D with a size of 1 in dimension 1 or 2; indices uint32 [n, 1] with n a multiple of 16, or [128,
    m]. ``oob_mode=skip`` is for the indirect form and leaves the columns of indices out of bounds as they were.
    Errors: NK101, NK107, NK109, NK110, NK113, NK201, NK301, NK401, NK402, NK606, NK609, NK621. Source:
    nki.isa.dma_transpose (NKI 0.6); nki-dge. Cost: trainium2_arch, DMA Transpose.
    """
    dge_mode = dma_descriptors.mode_of(dge_mode)
    dma_descriptors.modes(check, priority, dge_mode, oob_mode)
    guards.memory(check, src, "src", (*guards.HBM, MemoryRegion.sbuf))
    guards.memory(check, dst, "dst", (MemoryRegion.sbuf,))
    instruction_guards.same_dtype(check, ("dst", dst), ("src", src))
    order = _order(check, src, axes)
    if isinstance(src, VectorTensor):
        _check_gathered(check, src, dge_mode)
    else:
        _check_direct(check, src, dge_mode, oob_mode)
    guards.sizes(check, ("dst", dst), ("src", src))
    _check_transposed(check, dst, src, order)

    def compute(destination: Array, source: Array) -> None:
        np.copyto(destination, source.transpose(order).reshape(destination.shape))

    efficiency = 0.5 if src.buffer is MemoryRegion.sbuf else 0.9
    nanoseconds = (dma(check.chip, dst, src) - DMA_COMPLETION_NS) / efficiency + DMA_COMPLETION_NS
    lanes = guards.lanes_of_copy(dst, src)
    return Plan("dma", 0.0, compute, made(dst={"src": Transpose(order)}), nanoseconds=nanoseconds, lanes=lanes)


def _order(check: Check, src: NkiTensor, axes: Sequence[int] | None) -> tuple[int, ...]:
    """NK110, NK609: the one permutation that there is for so many dimensions."""
    order = AXES.get(src.ndim)
    if order is None:
        check.refuse("NK110", f"`src`, {describe(src)}, must have 2, 3 or 4 dimensions", src)
    if axes is not None and not (isinstance(axes, tuple) and axes == order):
        check.refuse("NK609", f"`axes` of a source of {src.ndim} dimensions must be {order}, it is {axes!r}")
    return order


def _check_transposed(check: Check, dst: NkiTensor, src: NkiTensor, order: tuple[int, ...]) -> None:
    """NK109: the destination has the shape of the transposed source, "exactly, including rank" (NKI 0.4)."""
    shape = tuple(src.shape[axis] for axis in order)
    if dst.shape != shape:
        message = f"`src`, {describe(src)}, transposes to {list(shape)}; `dst` is {describe(dst)}"
        if dst.ndim != src.ndim:
            remedy = "Give both as many dimensions, with expand_dim, reshape_dim or ap: the compiler pads neither."
            check.refuse("NK109", message, dst, src, remedy=remedy)
        from nkitools.issue.shape_remedies import to_transpose

        change = to_transpose(dst, src, order)
        other = src if change.tensor is dst else dst
        check.refuse("NK109", message, change.tensor, other, remedy=change.remedy, **change.facts)


def _check_direct(check: Check, src: NkiTensor, mode: dge_modes, oob: oob_modes) -> None:
    """NK609, and what hardware descriptor generation asks for."""
    if oob is oob_modes.skip:
        check.fail("NK609", f"`oob_mode`={oob} goes with a source that is addressed by a vector_offset only")
    if mode is dge_modes.none:
        message = f"`dge_mode`={mode}; the documents have unknown and hwdge, and AWS's own kernels pass it"
        check.goes_beyond(message, src, remedy="Leave dge_mode out.")
    elif mode not in (dge_modes.unknown, dge_modes.hwdge):
        message = (
            f"`dge_mode`={mode} does not transpose {describe(src)}, whose address is direct; possible are unknown and "
            "hwdge"
        )
        check.fail("NK609", message, src)
    if mode is not dge_modes.hwdge:
        return
    _check_elements(check, src)
    first = src.shape[0]
    if src.ndim == 2 and first != SIXTEEN:
        check.fail("NK113", f"`src`, {describe(src)}, must have {SIXTEEN} rows with dge_mode=hwdge", src)
    elif src.ndim > 2 and (first not in (1, 2, 4, 8, SIXTEEN) or first * src.shape[-2] % SIXTEEN):
        message = (
            f"`src`, {describe(src)}, must have a first dimension of 1, 2, 4, 8 or {SIXTEEN} with dge_mode=hwdge, and "
            f"its product with the last but one must be a multiple of {SIXTEEN}; they are {first} and {src.shape[-2]}"
        )
        check.fail("NK113", message, src)


def _check_elements(check: Check, src: NkiTensor) -> None:
    """NK101, NK301: the last dimension becomes partitions, and elements have two bytes."""
    if src.shape[-1] > TRANSPOSED_LAST:
        message = (
            f"`src`, {describe(src)}, has a last dimension of {src.shape[-1]}, which becomes the partition dimension; "
            f"it may have at most {TRANSPOSED_LAST}"
        )
        check.fail("NK101", message, src, axis=src.ndim - 1, extent=src.shape[-1], limit=TRANSPOSED_LAST)
    if src.dtype.itemsize != 2:
        message = f"`src`, {describe(src)}, has elements of {src.dtype.itemsize} bytes; this transpose moves those of 2"
        check.fail("NK301", message, src)


def _check_gathered(check: Check, src: VectorTensor, mode: dge_modes) -> None:
    """Check the constraints of the indirect transpose (dma_gather_transpose)."""
    chip, index = check.chip, src.index
    guards.came_later(check, "indirect_transpose", "the indirect transpose")
    dma_descriptors.addresses(check, mode, src=src)
    instruction_guards.of_dtype(check, "vector_offset", index, uint32)
    _check_elements(check, src)
    instruction_guards.dimensions(check, "vector_offset", index, 2, least=2)
    if src.ndim == 4 and 1 not in src.shape[1:3]:
        check.fail("NK109", f"`src`, {describe(src)}, must have a size of 1 in dimension 1 or 2", src)
    if src.shape[0] % SIXTEEN:
        check.fail("NK113", f"`src`, {describe(src)}, must gather a multiple of {SIXTEEN} rows", src)
    rows, columns = index.shape[0], index.layout.free_elements
    if rows % SIXTEEN or (columns > 1 and rows != chip.partitions):
        wanted = f"{chip.partitions}, as it has {columns} columns" if columns > 1 else f"a multiple of {SIXTEEN}"
        check.fail("NK113", f"the vector_offset, {describe(index)}, has {rows} partitions; it must be {wanted}", index)


@instruction
def dma_compute(
    check: Check,
    dst: Dst,
    srcs: Sources,
    reduce_op: OperatorToken,
    scales: Sequence[float] | None = None,
    unique_indices: bool = True,
    oob_mode: oob_modes = oob_modes.error,
    name: str | None = None,
) -> Plan:
    """``dst = srcs[0] + srcs[1] + …``, element by element, by the DMA engines.

    ``srcs``: a list of 1 to 16 tensors of as many elements as ``dst``. Each tensor is in HBM or SBUF, of any dtype but
    packed ones and 64 bits: added in float32 in the order of the list, the sum cast once to ``dst.dtype``.
    ``reduce_op``: nl.add. ``scales``: None, or 1.0 for each source.
    With a vector_offset there are two sources, one of them ``dst`` itself. Scatter: ``dst`` and one source are the same
    indirect view of HBM, the other source lies in SBUF. Gather: one source is an indirect view of HBM, the other is
    ``dst``, in SBUF. An index out of bounds is NK402; with ``oob_mode=skip``, which needs a vector_offset, its row is
    left out. ``unique_indices`` must be True then, and rows that a scatter names twice are NK505. Other run-time
    addresses (a register, scalar_offset) are refused.
    Errors: NK101, NK107, NK109, NK110, NK201, NK301, NK306, NK401, NK402, NK505, NK606, NK609.
    Source: nki.isa.dma_compute (NKI 0.6). Cost: half the throughput of a copy before NeuronCore-v4 (trainium3_arch).
    """
    guards.one_of(check, "oob_mode", oob_mode, oob_modes)
    if not 1 <= len(srcs) <= MOST_SOURCES:
        check.refuse("NK609", f"`srcs` must hold 1 to {MOST_SOURCES} tensors, it holds {len(srcs)}")
    _check_sum(check, reduce_op, scales, len(srcs))
    operands = [("dst", dst), *((f"srcs[{number}]", src) for number, src in enumerate(srcs))]
    for role, tensor in operands:
        guards.memory(check, tensor, role, (*guards.HBM, MemoryRegion.sbuf))
        guards.not_packed(check, **{role: tensor})
    guards.sizes(check, *operands)
    _check_elements_match(check, operands)
    _check_indirect(check, dst, srcs, unique_indices, oob_mode, operands)

    shape, dtype = dst.shape, dst.dtype

    def compute(destination: Array, first: Array, *others: Array) -> None:
        total = np.array(first, working(destination, first, *others)).reshape(shape)
        for other in others:
            np.add(total, to_float32(other).reshape(shape), out=total)
        put(destination, total, dtype)

    elements = made(dst={f"srcs[{number}]": SAME for number in range(len(srcs))})
    nanoseconds = check.chip.dma_compute_passes * dma(check.chip, dst, srcs[0])
    return Plan("dma", 0.0, compute, elements, nanoseconds=nanoseconds, unique_rows=True)


def _check_sum(check: Check, reduce_op: OperatorToken, scales: Sequence[float] | None, count: int) -> None:
    """NK306, NK609: "currently only nl.add is supported", and all scales must be 1.0."""
    operator = guards.operator(check, "reduce_op", reduce_op)
    if operator.name != "add":
        check.refuse("NK306", f"`reduce_op`={operator} is not supported; nl.add is")
    if scales is None:
        return
    if not isinstance(scales, tuple) or len(scales) != count:
        check.refuse("NK609", f"`scales` must be a list of {count} numbers, one for each source, it is {scales!r}")
    for number, scale in enumerate(scales):
        if isinstance(scale, NkiTensor) or scale != 1:
            check.refuse("NK609", f"`scales[{number}]` must be 1.0, the only scale that is supported; it is {scale!r}")


def _check_elements_match(check: Check, operands: list[tuple[str, NkiTensor]]) -> None:
    """NK109: "the element count of each tensor in srcs and dst must match exactly"."""
    dst = operands[0][1]
    for role, tensor in operands[1:]:
        if tensor.size != dst.size:
            message = (
                f"`dst`, {describe(dst)}, has {dst.size} elements and `{role}`, {describe(tensor)}, has {tensor.size}"
            )
            from nkitools.issue.shape_remedies import to_fit

            change = to_fit(dict(operands), ("dst", dst), (role, tensor))
            check.refuse("NK109", message, dst, tensor, remedy=change.remedy)


def _check_indirect(
    check: Check,
    dst: NkiTensor,
    srcs: list[NkiTensor],
    unique_indices: bool,
    oob: oob_modes,
    operands: list[tuple[str, NkiTensor]],
) -> None:
    """NK609, NK201: which run-time addresses there may be, and what a read-modify-write looks like."""
    for role, tensor in operands:
        if tensor.is_indirect() and not isinstance(tensor, VectorTensor):
            message = (
                f"`{role}`, {describe(tensor)}, has an address that is known only when the kernel runs; only a "
                "vector_offset is possible here"
            )
            check.refuse("NK609", message, tensor)
    if not isinstance(unique_indices, bool):
        check.refuse("NK609", f"`unique_indices` must be True or False, it is {unique_indices!r}")
    if not any(isinstance(tensor, VectorTensor) for _, tensor in operands):
        if oob is oob_modes.skip:
            check.refuse("NK609", f"`oob_mode`={oob} goes with a vector_offset only, and no operand has one")
        return
    dma_descriptors.one_index_each(check, **dict(operands))
    if not unique_indices:
        check.refuse("NK609", "`unique_indices` must be True with a vector_offset; others are not supported yet")
    updated = [number for number, src in enumerate(srcs) if src.same_place(dst)]
    if len(srcs) != 2 or not updated:
        message = (
            f"with a vector_offset `srcs` must be two tensors, one of them `dst` itself, {describe(dst)}; there are "
            f"{len(srcs)}, and {len(updated)} of them are"
        )
        remedy = "Scatter: srcs=[dst, tile]. Gather: srcs=[dst, table.vector_select(0, index)]."
        check.refuse("NK609", message, dst, remedy=remedy)
    other = 1 - updated[0]
    if not isinstance(dst, VectorTensor):
        guards.memory(check, dst, "dst", (MemoryRegion.sbuf,))
    elif isinstance(srcs[other], VectorTensor):
        check.refuse("NK609", "a scatter adds a tile in SBUF; both sources are addressed by a vector_offset", dst)
    else:
        guards.memory(check, srcs[other], f"srcs[{other}]", (MemoryRegion.sbuf,))
