"""``nki.language`` of the legacy dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from nkitools.chip.dtypes import DTypeLike
from nkitools.chip.numerics import Array
from nkitools.dialects.legacy.indexing.mesh_grids import Grid, mgrid
from nkitools.dialects.legacy.kernels.error_codes import OUTSIDE
from nkitools.dialects.legacy.semantics import LEGACY
from nkitools.dialects.legacy.tiles.dtypes import element_type
from nkitools.dialects.legacy.tiles.tensor import Operand, Tensor
from nkitools.dialects.public import find, publish
from nkitools.language.programs import legacy_tile_size as tile_size

if TYPE_CHECKING:
    from nkitools.dialects.legacy.aws_names.limits import *
    from nkitools.dialects.legacy.indexing.mesh_grids import *
    from nkitools.dialects.legacy.nisa.gather import *
    from nkitools.dialects.legacy.nisa.moving import *
    from nkitools.dialects.legacy.nl.creation import *
    from nkitools.dialects.legacy.nl.linear import *
    from nkitools.dialects.legacy.nl.loop_reductions import *
    from nkitools.dialects.legacy.nl.math import *
    from nkitools.dialects.legacy.nl.normalization import *
    from nkitools.dialects.legacy.nl.programs import *
    from nkitools.dialects.legacy.nl.random import *
    from nkitools.dialects.legacy.nl.transfer import *
    from nkitools.dialects.legacy.tiles.accumulating import *
    from nkitools.dialects.legacy.tiles.blocks import *
    from nkitools.dialects.legacy.tiles.dtypes import *


def static_cast(input_data: Operand | Array, dtype: DTypeLike) -> Any:
    """Return a number, an array or a tile in another dtype. Errors: NK301."""
    kind = element_type(dtype)
    if isinstance(input_data, Tensor):
        return input_data.astype(kind)
    return np.asarray(input_data).astype(kind.dtype)[()]


def finfo(dtype: DTypeLike) -> Any:
    """Limits of a floating-point dtype, as NumPy's finfo has them. Errors: NK301."""
    return ml_dtypes.finfo(element_type(dtype).dtype)  # type: ignore[no-untyped-call]


def gemm_grid() -> Grid:
    """Return the indices of a tile of a matrix product's result, and of its moving operand: (128, 512).

    The reference says "tile definition" and no more; a grid of nl.mgrid is what such a name gives.
    """
    return mgrid[0 : tile_size.gemm_stationary_fmax, 0 : tile_size.gemm_moving_fmax]


def gemm_stationary_grid() -> Grid:
    """Return the indices of a tile of a matrix product's stationary operand: (128, 128). As nl.gemm_grid."""
    return mgrid[0 : tile_size.pmax, 0 : tile_size.gemm_stationary_fmax]


publish(globals(), "neuronxcc.nki.language", dialect=LEGACY, outside=OUTSIDE)


def __getattr__(name: str) -> Any:
    return find(globals(), "neuronxcc.nki.language", name)
