"""Loading, storing and copying tiles."""

from __future__ import annotations

from nkitools.chip.dtypes import DType, DTypeLike
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.engines.operators import token
from nkitools.isa.dma import dma_transpose
from nkitools.isa.move import dma_copy, tensor_copy
from nkitools.issue.guards import HBM
from nkitools.language.creation import converted, ndarray, sbuf
from nkitools.language.programs import current_generation
from nkitools.language.promotion import result_dtype
from nkitools.rules.finding import refuse, report

OF_A_ROW = (
    "A tensor of one dimension is loaded one element a partition. To have it along the columns, load it as a row: "
    "x.reshape((1, x.shape[0]))."
)
"""The remedy of NK101 for what has no rows."""


def _tensor(value: NkiTensor, what: str) -> NkiTensor:
    if not isinstance(value, NkiTensor):
        refuse("NK609", f"{what} must be a tensor, it is {type(value).__name__}")
    return value


def load(src: NkiTensor, dtype: DTypeLike | None = None) -> NkiTensor:
    """Return a new SBUF tile with the values and the shape of an HBM tensor; of shape [P, 1] if the tensor has [P].

    The first dimension is at most 128 (NK101). ``dtype``: of the tile, by default that of ``src``. To another dtype
    values are cast by way of float32; an integer dtype saturates (NK304).
    Errors: NK101, NK201, NK301, NK609, NK611. Source: nki.language.load (NKI 0.6).
    """
    src = _in_hbm("nl.load", src, "Use nl.copy or nisa.tensor_copy between on-chip tiles.")
    shape = src.shape if src.ndim > 1 else (src.shape[0], 1)
    tile = _tile("nl.load", src, shape, result_dtype(dtype, src))
    dma_copy(dst=tile, src=src)
    return tile


def load_transpose2d(src: NkiTensor, dtype: DTypeLike | None = None) -> NkiTensor:
    """Return a new SBUF tile [P, F] with the transposed values of a 2-D HBM tensor [F, P].

    P is at most 128 (NK101). ``dtype``: of the tile, by default that of ``src``. The transfer is a nisa.dma_transpose,
    which moves elements of any size; another dtype takes a nisa.tensor_copy more. How AWS composes it is not published;
    the performance guide counts it among the DMA transposes.
    Errors: NK101, NK107, NK110, NK201, NK301, NK609, NK611. Source: nki.language.load_transpose2d (NKI 0.6); SDK 2.26
    for the limit of P.
    """
    src = _in_hbm("nl.load_transpose2d", src, "Use nl.transpose or nisa.nc_transpose on chip.")
    if src.ndim != 2:
        refuse("NK110", f"nl.load_transpose2d: `src` must have 2 dimensions, it is {describe(src)}", about=(src,))
    target = result_dtype(dtype, src)
    tile = _tile("nl.load_transpose2d", src, (src.shape[1], src.shape[0]), src.dtype)
    dma_transpose(dst=tile, src=src)
    return converted(tile, target)


def _in_hbm(what: str, src: NkiTensor, remedy: str) -> NkiTensor:
    """NK609, NK201: a tensor in HBM."""
    tensor = _tensor(src, f"{what}: src")
    if tensor.buffer not in HBM:
        facts = {"instruction": what.rpartition(".")[2], "argument": "src", "memories": ("HBM",)}
        message = f"{what}: `src` must be in HBM, it is {describe(tensor)}"
        report("NK201", message, about=(tensor,), remedy=remedy, facts=facts)
    return tensor


def _tile(what: str, src: NkiTensor, shape: tuple[int, ...], dtype: DType) -> NkiTensor:
    """Return a new tile; NK101 about the tensor that it is for, which has a name."""
    tile = ndarray(shape, dtype, sbuf)
    partitions = current_generation().partitions
    if shape[0] > partitions:
        tile.storage.excused |= {"NK101"}
        message = (
            f"{what}: `src`, {describe(src)}, makes a tile of {shape[0]} partitions; a NeuronCore has {partitions}"
        )
        facts = {"instruction": what.rpartition(".")[2], "partitions": shape[0], "limit": partitions}
        report("NK101", message, about=(src,), remedy=OF_A_ROW if src.ndim == 1 else "", facts=facts)
    return tile


def store(dst: NkiTensor, value: NkiTensor) -> None:
    """Copy an SBUF tile, or an HBM tensor, into an HBM tensor with as many elements, in the order of the elements.

    The shapes may differ. To another dtype, that of ``dst``, values are cast by way of float32; an integer dtype
    saturates (NK304).
    Errors: NK101, NK107, NK109, NK110, NK201, NK301, NK609, NK611. Source: nki.language.store (NKI 0.6).
    """
    dst, value = _tensor(dst, "nl.store: dst"), _tensor(value, "nl.store: value")
    if dst.buffer not in HBM:
        message = f"nl.store: `dst` must be in HBM, it is {describe(dst)}"
        facts = {"instruction": "store", "argument": "dst", "memories": ("HBM",)}
        report("NK201", message, about=(dst,), remedy="Use nisa.tensor_copy between on-chip tiles.", facts=facts)
    dma_copy(dst=dst, src=value)


@token("copy")
def copy(x: NkiTensor, dtype: DTypeLike | None = None) -> NkiTensor:
    """Return a copy in SBUF of a tile in SBUF or PSUM, of its shape.

    ``dtype``: of the copy, by default that of ``x``: then every bit is kept. To another dtype values are cast by way of
    float32; an integer dtype saturates (NK304). nisa.activation takes ``op=nl.copy``.
    Errors: NK101, NK107, NK108, NK110, NK201, NK301, NK609, NK611. Source: nki.language.copy (NKI 0.6).
    """
    x = _tensor(x, "nl.copy: x")
    tile = ndarray(x.shape, result_dtype(dtype, x), MemoryRegion.sbuf)
    tensor_copy(dst=tile, src=x)
    return tile
