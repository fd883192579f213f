"""``nki.language`` of the legacy dialect."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from nkitools.chip.tensor import DynamicSlice
from nkitools.dialects.absent import missing
from nkitools.dialects.legacy.blocks import par_dim
from nkitools.dialects.legacy.creation import (
    empty_like,
    full,
    ndarray,
    ones,
    shared_constant,
    shared_identity_matrix,
    zeros,
    zeros_like,
)
from nkitools.dialects.legacy.dtypes import (
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
from nkitools.dialects.legacy.indices import arange, mgrid
from nkitools.dialects.legacy.limits import bfp16, fp32
from nkitools.dialects.legacy.linear import matmul, transpose
from nkitools.dialects.legacy.math import (
    abs,
    add,
    all,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    divide,
    equal,
    erf,
    erf_dx,
    exp,
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
    softmax,
    softplus,
    sqrt,
    square,
    subtract,
    sum,
    tanh,
    var,
)
from nkitools.dialects.legacy.programs import (
    affine_range,
    nc,
    num_programs,
    program_id,
    program_ndim,
    sequential_range,
    spmd_dim,
    static_range,
)
from nkitools.dialects.legacy.tensor import Tensor
from nkitools.dialects.legacy.transfer import broadcast_to, copy, device_print, expand_dims, load, store
from nkitools.isa.operators import token
from nkitools.language.creation import hbm, private_hbm, psum, sbuf, shared_hbm
from nkitools.language.programs import tile_size
from nkitools.rules.finding import not_modelled

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


class _Token:
    """A function that is only an operator token in this version."""

    def __init__(self, name: str) -> None:
        self.name = name
        token(name)(self)

    def __repr__(self) -> str:
        return f"nl.{self.name}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        not_modelled(f"nl.{self.name} as a function is not modelled yet; nisa.activation takes it as op")


arctan = _Token("arctan")
sin = _Token("sin")

DOCUMENTED = frozenset(
    [
        "all_reduce",
        "atomic_rmw",
        "ceil",
        "cos",
        "dropout",
        "floor",
        "fmod",
        "gather_flattened",
        "gemm_grid",
        "gemm_stationary_grid",
        "load_transpose2d",
        "loop_reduce",
        "mod",
        "rand",
        "random_seed",
        "rms_norm",
        "tan",
        "trunc",
        "where",
    ]
)
_OWN = (
    "Any",
    "DOCUMENTED",
    "DynamicSlice",
    "Tensor",
    "annotations",
    "element_type",
    "missing",
    "ml_dtypes",
    "not_modelled",
    "np",
    "token",
)
__all__ = sorted(name for name in globals() if not name.startswith("_") and name not in _OWN)


def __getattr__(name: str) -> Any:
    return missing("neuronxcc.nki.language", name, DOCUMENTED)
