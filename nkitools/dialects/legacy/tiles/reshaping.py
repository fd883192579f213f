"""Other shapes and dtypes of a tile: views where a view is possible."""

from __future__ import annotations

from collections.abc import Sequence

from nkitools.chip.argument_types import Shape
from nkitools.chip.dtypes import DType
from nkitools.chip.tensor import NkiTensor
from nkitools.dialects.legacy.tiles.result_tiles import value_tile
from nkitools.isa.move import tensor_copy
from nkitools.language.creation import checked_shape, ndarray, sbuf
from nkitools.rules.finding import report


def expanded(tensor: NkiTensor, axis: int | Sequence[int]) -> NkiTensor:
    """``tensor`` with new dimensions of size 1 at ``axis`` (an int or ints, positions in the result)."""
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    ndim = tensor.ndim + len(axes)
    for each in sorted(each % ndim if isinstance(each, int) and -ndim <= each < ndim else each for each in axes):
        tensor = tensor.expand_dim(each)
    return tensor


def reshaped(tensor: NkiTensor, shape: Shape) -> NkiTensor:
    """``tensor`` in another shape, whose sizes may be floats that are whole (NK621). Errors: NK109, NK609."""
    return tensor.reshape(checked_shape(_whole_sizes(shape), "reshape"))


def _whole_sizes(shape: Shape) -> Shape:
    """Return a shape with integers for floats that are whole, as ``height / 2`` has them."""
    if not isinstance(shape, (tuple, list)):
        return shape
    sizes = [int(size) if isinstance(size, float) and size.is_integer() else size for size in shape]
    if any(isinstance(size, float) for size in shape) and not any(isinstance(size, float) for size in sizes):
        message = (
            f"reshape: a shape is {tuple(shape)}; sizes are integers by the documents, and compilers have taken floats"
        )
        report("NK621", message, remedy="Divide with // instead of /.")
    return tuple(sizes)


def converted(tensor: NkiTensor, dtype: DType) -> NkiTensor:
    """Return a copy of a tile in SBUF, in another dtype."""
    dst = ndarray(tensor.shape, dtype, sbuf)
    tensor_copy(dst=dst, src=tensor)
    return dst


def converted_value(tensor: NkiTensor, dtype: DType) -> NkiTensor:
    """Return a copy of a tile in SBUF, in another dtype, as the value of the running call."""
    dst = value_tile(tensor.shape, dtype)
    tensor_copy(dst=dst, src=tensor)
    return dst
