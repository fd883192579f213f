"""Matrix functions of tiles."""

from __future__ import annotations

from nkitools.chip.dtypes import DTypeLike, float32
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.isa.matmul import nc_matmul, nc_transpose
from nkitools.isa.move import tensor_copy
from nkitools.issue.shape_remedies import check_product
from nkitools.language.creation import converted, ndarray, psum, sbuf
from nkitools.language.math import check_tile, flag
from nkitools.language.promotion import result_dtype
from nkitools.rules.finding import refuse, report


def _two_dimensional(what: str, **tiles: NkiTensor) -> None:
    for role, tile in tiles.items():
        check_tile(what, role, tile)
        if tile.ndim != 2:
            refuse("NK110", f"nl.{what}: `{role}` must have 2 dimensions, it is {describe(tile)}", about=(tile,))


def transpose(x: NkiTensor, dtype: DTypeLike | None = None) -> NkiTensor:
    """Return ``x`` with its two dimensions swapped, as a new PSUM tile.

    ``x``: 2-D, up to 128 x 128 in SBUF or 32 x 32 in PSUM. ``dtype``: of the result, by default that of ``x``. On
    NeuronCore-v2 a NaN or infinity of a tile in SBUF makes the rest of its column NaN.
    Errors: NK101, NK107, NK108, NK110, NK201, NK301, NK609, NK611. Source: nki.language.transpose (NKI 0.6).
    """
    _two_dimensional("transpose", x=x)
    swapped = ndarray((x.shape[1], x.shape[0]), x.dtype, psum)
    nc_transpose(dst=swapped, data=x)
    return converted(swapped, result_dtype(dtype, x), psum)


def matmul(x: NkiTensor, y: NkiTensor, transpose_x: bool = False) -> NkiTensor:
    """Return ``x @ y`` of 2-D SBUF tiles as a new float32 PSUM tile.

    ``y``: [K, N]. ``x``: [M, K]; with ``transpose_x=True`` [K, M], already transposed. Otherwise ``x`` is transposed
    first, in simulation only (NK615, a warning). K and M are at most 128, N at most 512 (on NeuronCore-v4 4096). Both
    tiles are of floats; float32 and tfloat32 go with each other only (NK302).
    Errors: NK101 to NK105, NK108, NK110, NK201, NK301, NK302, NK606, NK609, NK611, NK615. Source: nki.language.matmul
    (NKI 0.6).
    """
    _two_dimensional("matmul", x=x, y=y)
    transposed = flag("matmul", "transpose_x", transpose_x)
    check_product(x, y, transposed=transposed)
    if transposed:
        stationary = x
    else:
        remedy = "Load `x` transposed and pass transpose_x=True: nl.matmul(x, y, transpose_x=True)."
        report("NK615", "nl.matmul without transpose_x=True works in simulation only", about=(x,), remedy=remedy)
        swapped = transpose(x)
        stationary = ndarray(swapped.shape, x.dtype, sbuf)
        tensor_copy(dst=stationary, src=swapped)
    result = ndarray((stationary.shape[1], y.shape[1]), float32, psum)
    nc_matmul(dst=result, stationary=stationary, moving=y, accumulate=False)
    return result
