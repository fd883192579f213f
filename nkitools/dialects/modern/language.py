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
from nkitools.isa.operators import token
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


class NKIObject:
    """Base class of kernel dataclasses and configuration objects: keywords become attributes."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Annotate plain class attributes, so that @dataclass takes them as fields as AWS's does."""
        super().__init_subclass__(**kwargs)
        annotations = cls.__dict__.get("__annotations__", {})
        for name, value in list(cls.__dict__.items()):
            if not name.startswith("__") and not callable(value) and not isinstance(value, (property, classmethod, staticmethod)):
                annotations.setdefault(name, Any)
        if annotations:
            cls.__annotations__ = annotations

    def __init__(self, **kwargs: Any) -> None:
        for name, value in kwargs.items():
            setattr(self, name, value)


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
    """all broadcast_to ceil cos dropout dynamic_range floor fmod fori_loop gather_flattened load_transpose2d mod no_reorder
    rand random_seed rms_norm shared_constant shared_identity_matrix tan trunc var where while_loop""".split()
)
_OWN = ("Any", "DOCUMENTED", "DynamicSlice", "annotations", "missing", "not_modelled", "refuse", "region", "token")
__all__ = sorted(name for name in globals() if not name.startswith("_") and name not in _OWN)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    return missing("nki.language", name, DOCUMENTED)
