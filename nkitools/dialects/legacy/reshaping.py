"""Other shapes and dtypes of a tile: views where a view is possible."""

from __future__ import annotations

from typing import Any

import numpy as np

from nkitools.chip.dtypes import DType
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.views import describe
from nkitools.isa.move import tensor_copy
from nkitools.language.broadcast import spread_partitions
from nkitools.language.creation import checked_shape, ndarray, sbuf
from nkitools.language.math import spread
from nkitools.rules.finding import refuse


def broadcast(tensor: NkiTensor, shape: Any) -> NkiTensor:
    """``tensor`` broadcast to ``shape``: free dimensions as a view, partitions by copies. Errors: NK109, NK609."""
    sizes = checked_shape(shape, "broadcast_to")
    if tensor.shape == sizes:
        return tensor
    try:
        fits = np.broadcast_shapes(tensor.shape, sizes) == sizes
    except ValueError:
        fits = False
    if not fits or (tensor.on_chip and len(sizes) != tensor.ndim):
        refuse("NK109", f"{describe(tensor)} does not broadcast to {list(sizes)}", about=(tensor,))
    for _ in range(len(sizes) - tensor.ndim):
        tensor = tensor.expand_dim(0)
    if tensor.on_chip and tensor.shape[0] != sizes[0]:
        tensor = spread_partitions(tensor, sizes[0])
    return spread(tensor, sizes)


def expanded(tensor: NkiTensor, axis: Any) -> NkiTensor:
    """``tensor`` with new dimensions of size 1 at ``axis`` (an int or ints, positions in the result)."""
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    ndim = tensor.ndim + len(axes)
    for each in sorted(each % ndim if isinstance(each, int) and -ndim <= each < ndim else each for each in axes):
        tensor = tensor.expand_dim(each)
    return tensor


def reshaped(tensor: NkiTensor, shape: Any) -> NkiTensor:
    """``tensor`` in another shape. Errors: NK109, NK609."""
    return tensor.reshape(checked_shape(shape, "reshape"))


def converted(tensor: NkiTensor, dtype: DType) -> NkiTensor:
    """A copy of a tile in SBUF, in another dtype."""
    dst = ndarray(tensor.shape, dtype, sbuf)
    tensor_copy(dst, tensor)
    return dst
