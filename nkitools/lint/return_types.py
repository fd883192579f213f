"""Abstract values that calls and attributes of NKI return, as far as the documentation gives them."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import Any

from nkitools.facts.light_classes import dataclass, field, replace
from nkitools.lint.abstract_values import (
    UNKNOWN,
    Api,
    Comparison,
    Constant,
    Index,
    Number,
    ParDim,
    Register,
    Scalar,
    Sequence,
    Sizes,
    Span,
    Tensor,
    Value,
    sizes,
    whole,
)

CREATING = frozenset({"full", "ndarray", "ones", "zeros"})
REDUCING = frozenset({"all", "max", "mean", "min", "prod", "sum", "var"})
COMPARING = frozenset({"equal", "greater", "greater_equal", "less", "less_equal", "not_equal"})
# Functions of one tile that keep its shape.
_MAPPING = frozenset({
    "abs", "arctan", "ceil", "copy", "cos", "dropout", "erf", "erf_dx", "exp", "floor", "gelu",
    "gelu_apprx_sigmoid", "gelu_apprx_sigmoid_dx", "gelu_apprx_tanh", "gelu_dx", "invert", "log", "logical_not",
    "mish", "negative", "reciprocal", "relu", "rsqrt", "sigmoid", "sign", "silu", "silu_dx", "sin", "softmax",
    "softplus", "sqrt", "square", "tan", "tanh", "trunc"
})  # fmt: skip
# Other functions of nl.* that make a tile.
_MAKING = frozenset({
    "abs_max", "abs_min", "add", "bitwise_and", "bitwise_or", "bitwise_xor", "broadcast_to", "divide",
    "empty_like", "expand_dims", "fmod", "gather_flattened", "left_shift", "load_transpose2d", "logical_and",
    "logical_or", "logical_xor", "matmul", "maximum", "minimum", "mod", "multiply", "power", "rand",
    "right_shift", "rms_norm", "shared_identity_matrix", "subtract", "transpose", "where", "zeros_like"
})  # fmt: skip
MAKES_TILE = CREATING | REDUCING | COMPARING | _MAPPING | _MAKING | {"load"}
# Functions of nisa.* in the legacy dialect that return no tile.
_NO_TILE = frozenset({"builtin_custom_op", "dma_copy", "get_nc_version", "get_nc_sub_version"})
_TILE_SIZES = {"pmax": 128, "gemm_stationary_fmax": 128, "gemm_moving_fmax": 512, "psum_fmax": 512}
_MEMORIES = {"sbuf": "sbuf", "psum": "psum", "hbm": "hbm", "private_hbm": "hbm", "shared_hbm": "hbm"}
# Methods of a tensor that give a view of it.
VIEWS = frozenset({
    "ap", "astype", "broadcast", "broadcast_to", "expand_dim", "expand_dims", "flatten_dims", "indirect",
    "permute", "rearrange", "reinterpret_cast", "reshape", "reshape_dim", "select", "slice", "squeeze_dim",
    "vector_select", "view"
})  # fmt: skip


@dataclass(frozen=True)
class Arguments:
    """The arguments of a call; ``open`` where ``*`` or ``**`` hide some."""

    positional: tuple[Value, ...] = ()
    named: dict[str, Value] = field(default_factory=dict)
    open: bool = False

    def get(self, name: str, position: int | None = None) -> Value | None:
        """Return the argument of that name or position; None if it is not given."""
        if name in self.named:
            return self.named[name]
        if position is not None and position < len(self.positional):
            return self.positional[position]
        return None


@lru_cache(maxsize=4096)
def parts(name: str) -> tuple[bool, str, str]:
    """Return whether a dotted name is legacy, its module (``language``, ``isa``, ...) and its name in that module."""
    legacy = name.startswith("neuronxcc.nki.") or name == "neuronxcc.nki"
    plain = name.removeprefix("neuronxcc.").removeprefix("nki.")
    module, _, member = plain.rpartition(".")
    return legacy, module, member


def called(name: str, given: Arguments, node: ast.AST | None = None) -> Value:
    """Return the abstract value that a call of NKI's ``name`` returns."""
    made = _called(name, given)
    return replace(made, maker=node) if isinstance(made, Tensor) else made


def _called(name: str, given: Arguments) -> Value:
    legacy, module, member = parts(name)
    if module == "isa":
        if legacy:
            return UNKNOWN if member in _NO_TILE else Tensor()
        if member == "scalar_load":
            src = given.get("src", 0)
            return Scalar(src.dtype if isinstance(src, Tensor) and src.dtype in ("int32", "int64") else "")
        return Register() if member == "register_alloc" else UNKNOWN
    if module != "language":
        return UNKNOWN
    return _language(legacy, member, given)


def _language(legacy: bool, member: str, given: Arguments) -> Value:
    first = given.get("", 0)
    match member:
        case _ if member in CREATING:
            return _created(legacy, member, given)
        case "load":
            return _loaded(given.get("src", 0))
        case _ if member in COMPARING:
            return Comparison(memory="sbuf")
        case _ if member in _MAPPING and isinstance(first, Tensor):
            return Tensor(first.shape, "sbuf")
        case "matmul" | "transpose" if not legacy:
            return Tensor(memory="psum")
        case _ if member in MAKES_TILE:
            return Tensor()
        case "arange" if legacy:
            return Index(1)
        case "par_dim" if legacy:
            return ParDim(given.get("size", 0) or UNKNOWN)
        case "ds":
            return Span(whole(given.get("size", 1) or UNKNOWN), start=given.get("start", 0) or UNKNOWN)
        case "program_id" | "num_programs" | "program_ndim":
            return Number(int)
    return UNKNOWN


def _created(legacy: bool, member: str, given: Arguments) -> Value:
    shape = given.get("shape", 0) or UNKNOWN
    marked = isinstance(shape, Sequence) and any(isinstance(each, ParDim) for each in (shape.items or ())[1:])
    dtype_at = 2 if member == "full" else 1
    dtype = dtype_of(given.get("dtype", dtype_at))
    buffer = given.get("buffer", None if legacy else dtype_at + 1)
    memory = "sbuf" if buffer is None else memory_of(buffer)
    if marked or given.open:
        return Tensor(None, "" if marked else memory, dtype=dtype)  # with block dimensions it is no tile
    return Tensor(sizes(shape), memory, dtype=dtype)


def dtype_of(named: Value | None) -> str:
    """Return the name of the dtype that a ``dtype=`` names, an empty text where it is not known."""
    if isinstance(named, Constant):
        return named.value if isinstance(named.value, str) else ""
    _, module, member = parts(named.name if isinstance(named, Api) else "")
    return member if module == "language" else ""


def memory_of(buffer: Value) -> str:
    """Return the memory that a ``buffer=`` names."""
    name: Any = getattr(buffer, "name", "")
    if isinstance(buffer, Constant):
        return _MEMORIES.get(buffer.value, "") if isinstance(buffer.value, str) else ""
    _, module, member = parts(str(name))
    return _MEMORIES.get(member, "") if module == "language" else ""


def _loaded(src: Value | None) -> Tensor:
    shape = src.shape if isinstance(src, Tensor) else None
    if shape is not None and len(shape) == 1:
        shape = (*shape, 1)
    return Tensor(shape, "sbuf", dtype=src.dtype if isinstance(src, Tensor) else "")


def attribute(name: str) -> Value | None:
    """Return the number behind a name of NKI if it is equal for all chips; None for other names."""
    _, module, member = parts(name)
    if module == "language.tile_size" and member in _TILE_SIZES:
        return Constant(_TILE_SIZES[member])
    return None


def viewed(tensor: Tensor, method: str, given: Arguments) -> Tensor:
    """Return the view that a method of a tensor gives."""
    if method == "reshape":
        shape = sizes(given.get("shape", 0) or UNKNOWN) if len(given.positional) < 2 else None
        return replace(tensor, shape=shape)
    dtype = dtype_of(given.get("dtype", 0)) if method in ("astype", "reinterpret_cast", "view") else tensor.dtype
    return replace(tensor, shape=tensor.shape if method == "astype" else None, dtype=dtype)


def element(tensor: Tensor, keys: tuple[Value, ...]) -> Tensor:
    """Return a part of a tensor by its keys, one a dimension."""
    if tensor.shape is None or len(keys) > len(tensor.shape) or not all(_plain(key) for key in keys):
        return replace(tensor, shape=None)
    rest = tensor.shape[len(keys) :]
    found: list[int | None] = []
    for at, (key, size) in enumerate(zip(keys, tensor.shape, strict=False)):
        if isinstance(key, Span):
            found.append(size if key.whole else key.size)
        elif at == 0 and tensor.on_chip:
            found.append(1)
    shape: Sizes = (*found, *rest)
    return replace(tensor, shape=shape if len(shape) > 1 or not tensor.on_chip else None)


def _plain(key: Value) -> bool:
    """Return whether a key is a slice or an integer."""
    return isinstance(key, (Span, Number)) or whole(key) is not None
