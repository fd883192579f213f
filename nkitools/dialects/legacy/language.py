"""``nki.language`` of the legacy dialect."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from nkitools.chip.tensor import DynamicSlice
from nkitools.dialects.absent import missing
from nkitools.dialects.call_form import with_call_forms
from nkitools.dialects.legacy.aws_names.limits import bfp16, fp32
from nkitools.dialects.legacy.indexing.indices import Grid, arange, mgrid
from nkitools.dialects.legacy.kernels.error_codes import OUTSIDE
from nkitools.dialects.legacy.nisa.gather import gather_flattened
from nkitools.dialects.legacy.nisa.moving import load_transpose2d
from nkitools.dialects.legacy.nl.creation import (
    empty_like,
    full,
    ndarray,
    ones,
    shared_constant,
    shared_identity_matrix,
    zeros,
    zeros_like,
)
from nkitools.dialects.legacy.nl.linear import matmul, transpose
from nkitools.dialects.legacy.nl.loop_reductions import all_reduce, loop_reduce
from nkitools.dialects.legacy.nl.math import (
    abs,
    add,
    all,
    arctan,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    ceil,
    cos,
    divide,
    equal,
    erf,
    erf_dx,
    exp,
    floor,
    fmod,
    gelu,
    gelu_apprx_sigmoid,
    gelu_apprx_tanh,
    gelu_dx,
    greater,
    greater_equal,
    invert,
    left_shift,
    less,
    less_equal,
    log,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    max,
    maximum,
    mean,
    min,
    minimum,
    mish,
    mod,
    multiply,
    negative,
    not_equal,
    power,
    prod,
    reciprocal,
    relu,
    right_shift,
    rsqrt,
    sigmoid,
    sign,
    silu,
    silu_dx,
    sin,
    softplus,
    sqrt,
    square,
    subtract,
    sum,
    tan,
    tanh,
    trunc,
    var,
    where,
)
from nkitools.dialects.legacy.nl.normalization import rms_norm, softmax
from nkitools.dialects.legacy.nl.programs import (
    affine_range,
    nc,
    num_programs,
    program_id,
    program_ndim,
    sequential_range,
    spmd_dim,
    static_range,
)
from nkitools.dialects.legacy.nl.random import dropout, rand, random_seed
from nkitools.dialects.legacy.nl.transfer import broadcast_to, copy, device_print, expand_dims, load, store
from nkitools.dialects.legacy.semantics import LEGACY
from nkitools.dialects.legacy.tiles.accumulating import atomic_rmw
from nkitools.dialects.legacy.tiles.blocks import par_dim
from nkitools.dialects.legacy.tiles.dtypes import (
    bfloat16,
    bool_,
    element_type,
    float8_e4m3,
    float8_e5m2,
    float16,
    float32,
    int8,
    int16,
    int32,
    tfloat32,
    uint8,
    uint16,
    uint32,
)
from nkitools.dialects.legacy.tiles.tensor import Tensor
from nkitools.dialects.mixed import in_dialect
from nkitools.language.creation import hbm, private_hbm, psum, sbuf, shared_hbm
from nkitools.language.programs import tile_size

ds = DynamicSlice


def static_cast(input_data: Any, dtype: Any) -> Any:
    """A number, an array or a tile in another dtype. Errors: NK301."""
    kind = element_type(dtype)
    if isinstance(input_data, Tensor):
        return input_data.astype(kind)
    return np.asarray(input_data).astype(kind.dtype)[()]


def finfo(dtype: Any) -> Any:
    """Limits of a floating-point dtype, as NumPy's finfo has them. Errors: NK301."""
    return ml_dtypes.finfo(element_type(dtype).dtype)  # type: ignore[no-untyped-call]


def gemm_grid() -> Grid:
    """The indices of a tile of a matrix product's result, and of its moving operand: (128, 512).

    The reference says "tile definition" and no more; a grid of nl.mgrid is what such a name gives.
    """
    return mgrid[0 : tile_size.gemm_stationary_fmax, 0 : tile_size.gemm_moving_fmax]


def gemm_stationary_grid() -> Grid:
    """The indices of a tile of a matrix product's stationary operand: (128, 128). As nl.gemm_grid."""
    return mgrid[0 : tile_size.pmax, 0 : tile_size.gemm_stationary_fmax]


DOCUMENTED: frozenset[str] = frozenset()
_OWN = (
    "Any",
    "DOCUMENTED",
    "DynamicSlice",
    "Grid",
    "LEGACY",
    "OUTSIDE",
    "Tensor",
    "annotations",
    "element_type",
    "in_dialect",
    "missing",
    "ml_dtypes",
    "np",
    "with_call_forms",
)
__all__ = sorted(name for name in globals() if not name.startswith("_") and name not in _OWN)
globals().update(with_call_forms("nl", {name: globals()[name] for name in __all__}, in_dialect(LEGACY), OUTSIDE))


def __getattr__(name: str) -> Any:
    return missing("neuronxcc.nki.language", name, DOCUMENTED)
