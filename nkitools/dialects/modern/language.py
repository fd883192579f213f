"""``nki.language`` 0.6."""

from __future__ import annotations

from typing import Any

from nkitools.chip.dialect_semantics import MODERN
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
from nkitools.chip.tensor import NkiTensor
from nkitools.dialects.absent import missing
from nkitools.dialects.call_form import with_call_forms
from nkitools.dialects.mixed import in_dialect
from nkitools.dialects.modern.annotation import annotation_of
from nkitools.dialects.modern.objects import NKIObject
from nkitools.engines.operators import token
from nkitools.language.broadcast import broadcast_to
from nkitools.language.constants import shared_constant, shared_identity_matrix
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
from nkitools.language.gather import gather_flattened
from nkitools.language.indexing import ds, expand_dims
from nkitools.language.linear import matmul, transpose
from nkitools.language.math import (
    abs,
    abs_max,
    abs_min,
    add,
    all,
    arctan,
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
    var,
)
from nkitools.language.modulo import fmod, mod
from nkitools.language.normalization import rms_norm
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
from nkitools.language.random import dropout, rand, random_seed
from nkitools.language.rounding import ceil, floor, trunc
from nkitools.language.select import where
from nkitools.language.transfer import copy, load, load_transpose2d, store
from nkitools.language.trigonometry import cos, sin, tan
from nkitools.rules.finding import not_modelled
from nkitools.rules.removed import LANGUAGE as REMOVED

bool = bool_
range = range


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


DOCUMENTED: frozenset[str] = frozenset()  # what the reference has and this version refuses
_OWN = (
    "Any",
    "DOCUMENTED",
    "MODERN",
    "REMOVED",
    "annotation_of",
    "annotations",
    "in_dialect",
    "missing",
    "not_modelled",
    "region",
    "token",
    "with_call_forms",
)
__all__ = sorted(name for name in globals() if not name.startswith("_") and name not in _OWN)
globals().update(with_call_forms("nl", {name: globals()[name] for name in __all__}, in_dialect(MODERN)))
globals()["ndarray"] = annotation_of(globals()["ndarray"])


def __getattr__(name: str) -> Any:
    return missing("nki.language", name, DOCUMENTED, REMOVED)
