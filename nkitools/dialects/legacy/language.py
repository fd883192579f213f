"""``nki.language`` of the legacy dialect.

Beside the errors that its docstring lists a function of tiles can give those of every instruction, which the docstring
of ``neuronxcc.nki.isa`` names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from nkitools.chip.dtypes import DTypeLike
from nkitools.chip.numerics import Array
from nkitools.dialects.legacy.indexing.mesh_grids import Grid, mgrid
from nkitools.dialects.legacy.kernels.error_codes import OUTSIDE
from nkitools.dialects.legacy.semantics import LEGACY
from nkitools.dialects.legacy.tiles.dtypes import element_type, is_number
from nkitools.dialects.legacy.tiles.elementwise import not_a_tile
from nkitools.dialects.legacy.tiles.tensor import Operand, Tensor
from nkitools.dialects.public import find, publish
from nkitools.language.programs import legacy_tile_size as tile_size
from nkitools.rules.finding import refuse

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
    """Return a copy of a tile, an array or a number in another dtype.

    A tile becomes a new SBUF tile; integers are rounded to the nearest and saturate (NK304). A number (which becomes a
    NumPy scalar) or an array is cast as by NumPy's ``astype``, which cuts fractions off.
    Errors: NK101, NK107, NK108, NK110, NK201, NK301, NK402, NK603, NK609, NK611, NK612.
    """
    kind = element_type(dtype)
    if isinstance(input_data, Tensor):
        return input_data.astype(kind)
    if not is_number(input_data) and not isinstance(input_data, (np.ndarray, list, tuple)):
        not_a_tile("nl.static_cast", "input_data", input_data)
    return np.asarray(input_data).astype(kind.dtype)[()]


def finfo(dtype: DTypeLike) -> Any:
    """Return the limits of a floating-point dtype as NumPy's ``finfo`` has them.

    Errors: NK301 (another dtype), NK609.
    """
    kind = element_type(dtype)
    if not kind.is_float:
        refuse("NK301", f"nl.finfo: {kind} is no floating-point dtype")
    return ml_dtypes.finfo(kind.dtype)  # type: ignore[no-untyped-call]


def gemm_grid() -> Grid:
    """Return ``nl.mgrid[0:128, 0:512]``: the indices of a moving operand, or of a product, on the Tensor Engine.

    The sizes are nl.tile_size's. The reference says "tile definition" and no more. Errors: NK609.
    """
    return mgrid[0 : tile_size.gemm_stationary_fmax, 0 : tile_size.gemm_moving_fmax]


def gemm_stationary_grid() -> Grid:
    """Return ``nl.mgrid[0:128, 0:128]``: the indices of a stationary operand on the Tensor Engine.

    The sizes are nl.tile_size's. The reference says "tile definition" and no more. Errors: NK609.
    """
    return mgrid[0 : tile_size.pmax, 0 : tile_size.gemm_stationary_fmax]


publish(globals(), "neuronxcc.nki.language", dialect=LEGACY, outside=OUTSIDE)


def __getattr__(name: str) -> Any:
    return find(globals(), "neuronxcc.nki.language", name)
