"""``nki.language`` 0.6."""

from __future__ import annotations

from typing import Any

from nkitools.chip.dtypes import (
    DType,
    bfloat16,
    bool_,
    float4_e2m1fn_x4,
    float8_e4m3,
    float8_e4m3fn,
    float8_e4m3fn_x4,
    float8_e5m2,
    float8_e5m2_x4,
    float8_e8m0fnu,
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
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.tensor import DynamicSlice, NkiTensor
from nkitools.dialects.absent import missing
from nkitools.dialects.call_form import with_call_forms
from nkitools.dialects.modern.objects import NKIObject
from nkitools.isa.operators import token
from nkitools.language.broadcast import broadcast_to
from nkitools.language.control import dynamic_range, fori_loop, no_reorder, while_loop
from nkitools.language.creation import (
    empty_like,
    full,
    hbm,
    ndarray,
    ones,
    private_hbm,
    psum,
    region,
    sbuf,
    shared_hbm,
    zeros,
    zeros_like,
)
from nkitools.language.linear import matmul, transpose
from nkitools.language.math import (
    abs,
    abs_max,
    abs_min,
    add,
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
    gelu_apprx_sigmoid_dx,
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
)
from nkitools.language.programs import (
    affine_range,
    device_print,
    num_programs,
    program_id,
    program_ndim,
    sequential_range,
    static_range,
    tile_size,
)
from nkitools.language.select import where
from nkitools.language.transfer import copy, load, store
from nkitools.rules.finding import not_modelled, refuse

bool = bool_
range = range
ds = DynamicSlice


class _Token:
    """An operator that is only a token, not a function."""

    def __init__(self, name: str) -> None:
        self.name = name
        token(name)(self)

    def __repr__(self) -> str:
        return f"nl.{self.name}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        not_modelled(f"nl.{self.name} as a function is not modelled yet; it is an operator token in this version")


bypass = _Token("bypass")
prelu = _Token("prelu")
average = _Token("average")
arctan = _Token("arctan")
sin = _Token("sin")


def is_hbm(buffer: Any) -> Any:
    """Whether a memory is one of HBM's."""
    return region(buffer) in (private_hbm, shared_hbm)


def is_on_chip(buffer: Any) -> Any:
    """Whether a memory is SBUF or PSUM."""
    return region(buffer) in (sbuf, psum)


def is_psum(buffer: Any) -> Any:
    """Whether a memory is PSUM."""
    return region(buffer) is psum


def is_sbuf(buffer: Any) -> Any:
    """Whether a memory is SBUF."""
    return region(buffer) is sbuf


def expand_dims(x: NkiTensor, axis: int) -> NkiTensor:
    """A view with a new dimension of size 1 at ``axis``. Errors: NK109, NK609."""
    if not isinstance(x, NkiTensor):
        refuse("NK609", f"nl.expand_dims: x must be a tensor, it is {type(x).__name__}")
    return x.expand_dim(axis)


DOCUMENTED = frozenset(
    {
        "all",
        "ceil",
        "cos",
        "dropout",
        "floor",
        "fmod",
        "gather_flattened",
        "load_transpose2d",
        "mod",
        "rand",
        "random_seed",
        "rms_norm",
        "shared_constant",
        "shared_identity_matrix",
        "tan",
        "trunc",
        "var",
    }
)
_INDEX = "Index with integers, slices, nl.ds(start, size) or .ap()."
_DTYPE = "Name the dtype itself: nl.float32, nl.bfloat16."
REMOVED = {
    "all_reduce": "Use nki.collectives.all_reduce between ranks, nisa.tensor_reduce within a tile.",
    "arange": _INDEX,
    "atomic_rmw": "Use nisa.dma_compute.",
    "bfp16": _DTYPE,
    "finfo": "Write the number itself.",
    "fp32": _DTYPE,
    "loop_reduce": "Accumulate into a tile that is made before the loop.",
    "mgrid": _INDEX,
    "nc": "Launch with kernel[1] or kernel[2].",
    "par_dim": "The partition dimension is dimension 0; keep a Python list of tiles for more.",
    "spmd_dim": "Launch with kernel[1] or kernel[2].",
    "static_cast": "Copy with a dtype: nl.copy(x, dtype=...).",
}
_OWN = (
    "Any",
    "DOCUMENTED",
    "DynamicSlice",
    "REMOVED",
    "annotations",
    "missing",
    "not_modelled",
    "refuse",
    "region",
    "token",
    "with_call_forms",
)
__all__ = sorted(name for name in globals() if not name.startswith("_") and name not in _OWN)
globals().update(with_call_forms("nl", {name: globals()[name] for name in __all__}))


def __getattr__(name: str) -> Any:
    return missing("nki.language", name, DOCUMENTED, REMOVED)
