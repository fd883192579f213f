"""``nki.isa`` of the legacy dialect: instructions that return their result as a new tile."""

from __future__ import annotations

from typing import Any

from nkitools.chip import dtypes
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.views import describe
from nkitools.dialects.absent import missing
from nkitools.dialects.legacy import linear, reshaping
from nkitools.dialects.legacy.dtypes import element_type, is_number, result_type
from nkitools.dialects.legacy.elementwise import check_tile
from nkitools.dialects.legacy.immutable import check_writable
from nkitools.dialects.legacy.indices import Index, NonAffine, whole
from nkitools.dialects.legacy.keywords import check_keywords
from nkitools.dialects.legacy.limits import fp32
from nkitools.dialects.legacy.masks import Lanes, lanes_of, not_affine
from nkitools.dialects.legacy.reductions import reduce
from nkitools.dialects.legacy.results import new_tile, view_of, write_lanes
from nkitools.dialects.legacy.tensor import Tensor
from nkitools.dialects.legacy.transfer import copy_lanes
from nkitools.isa import activation as _activation
from nkitools.isa import elementwise as _elementwise
from nkitools.isa import matmul as _matmul
from nkitools.isa import move as _move
from nkitools.isa import reduce as _reduce
from nkitools.isa.enums import dge_mode, dma_engine, engine, matmul_perf_mode, nc_version, oob_mode, reduce_cmd
from nkitools.language.creation import checked_shape, ndarray, region
from nkitools.language.programs import current_generation
from nkitools.rules.finding import not_modelled, refuse, report

tensor_engine = engine.tensor
vector_engine = engine.vector
scalar_engine = engine.scalar
gpsimd_engine = engine.gpsimd
unknown_engine = engine.unknown

_BIAS = (dtypes.float32, dtypes.float16, dtypes.bfloat16)


def get_nc_version() -> nc_version:
    """The generation of the chip that runs (outside a kernel: that a launch would take)."""
    return nc_version(current_generation().version)


def _result(
    what: str, data: Any, dtype: Any, mask: Any, kwargs: dict[str, Any], *operands: Any
) -> tuple[NkiTensor, Lanes | None]:
    """A new tile of ``data``'s shape in the memory that ``buffer=`` names, and the lanes that the mask leaves."""
    buffer = region(kwargs.pop("buffer")) if kwargs.get("buffer") is not None else MemoryRegion.sbuf
    check_keywords(what, {name: value for name, value in kwargs.items() if name != "buffer"})
    check_tile(what, "data", data)
    lanes = lanes_of(mask, data.shape, what)
    return new_tile(data.shape, result_type(dtype, what, data, *operands), buffer), lanes


def activation(
    op: Any,
    data: Any,
    *,
    bias: Any = None,
    scale: Any = 1.0,
    reduce_op: Any = None,
    reduce_res: Any = None,
    reduce_cmd: Any = reduce_cmd.idle,
    mask: Any = None,
    dtype: Any = None,
    **kwargs: Any,
) -> Tensor:
    """``op(data * scale + bias)`` on the Scalar Engine; ``reduce_res`` receives the reduce registers in place.

    Errors: those of nkitools.isa.activation, NK604.
    """
    dst, lanes = _result("nisa.activation", data, dtype, mask, kwargs)
    if lanes is not None and lanes.where is not None and (reduce_op is not None or reduce_res is not None):
        not_affine("nisa.activation: the mask of a reduction must leave a box of the tile")
    if isinstance(bias, Tensor) and bias.element not in _BIAS:
        report(
            "NK301",
            f"nisa.activation: `bias` must be float32, float16 or bfloat16, it is {describe(bias.base)} "
            "(err_activation_bias_invalid_type)",
            about=(bias.base,),
        )

    def into(target: NkiTensor, tile: NkiTensor, bias: Any, scale: Any, result: Any) -> None:
        _activation.activation(target, op, tile, bias, scale, reduce_op, result, reduce_cmd)

    write_lanes(into, dst, (data, bias, scale, reduce_res), lanes)
    return Tensor.made(dst, lanes)


def reciprocal(data: Any, *, dtype: Any = None, mask: Any = None, **kwargs: Any) -> Tensor:
    """``1 / data`` on the Vector Engine. Errors: those of nkitools.isa.elementwise.reciprocal, NK604."""
    dst, lanes = _result("nisa.reciprocal", data, dtype, mask, kwargs)
    write_lanes(_elementwise.reciprocal, dst, (data,), lanes)
    return Tensor.made(dst, lanes)


def tensor_copy(
    src: Any, *, mask: Any = None, dtype: Any = None, engine: Any = engine.unknown, **kwargs: Any
) -> Tensor:
    """A copy on chip, in SBUF. Errors: those of nkitools.isa.move.tensor_copy, NK604."""
    dst, lanes = _result("nisa.tensor_copy", src, dtype, mask, kwargs)
    write_lanes(lambda target, tile: _move.tensor_copy(target, tile, engine), dst, (src,), lanes)
    return Tensor.made(dst, lanes)


def tensor_tensor(
    data1: Any, data2: Any, op: Any, *, dtype: Any = None, mask: Any = None, engine: Any = engine.unknown, **kwargs: Any
) -> Tensor:
    """``data1 <op> data2`` of tiles with equally many partitions and elements.

    Errors: those of the instruction, NK604.
    """
    check_tile("nisa.tensor_tensor", "data2", data2)
    dst, lanes = _result("nisa.tensor_tensor", data1, dtype, mask, kwargs, data2)

    def into(target: NkiTensor, first: NkiTensor, second: NkiTensor) -> None:
        _elementwise.tensor_tensor(target, first, second, op, engine)

    write_lanes(into, dst, (data1, data2), lanes)
    return Tensor.made(dst, lanes)


def tensor_scalar(
    data: Any,
    op0: Any,
    operand0: Any,
    reverse0: Any = False,
    op1: Any = None,
    operand1: Any = None,
    reverse1: Any = False,
    *,
    dtype: Any = None,
    mask: Any = None,
    engine: Any = engine.unknown,
    **kwargs: Any,
) -> Tensor:
    """``(data <op0> operand0) <op1> operand1`` with numbers or (partitions, 1) vectors.

    Errors: those of the instruction, NK604.
    """
    dst, lanes = _result("nisa.tensor_scalar", data, dtype, mask, kwargs)

    def into(target: NkiTensor, tile: NkiTensor, first: Any, second: Any) -> None:
        _elementwise.tensor_scalar(target, tile, op0, first, bool(reverse0), op1, second, bool(reverse1), engine)

    write_lanes(into, dst, (data, operand0, operand1), lanes)
    return Tensor.made(dst, lanes)


def tensor_reduce(
    op: Any,
    data: Any,
    axis: Any,
    *,
    mask: Any = None,
    dtype: Any = None,
    negate: Any = False,
    keepdims: Any = False,
    **kwargs: Any,
) -> Tensor:
    """``data`` reduced along its last free dimensions. Errors: those of the instruction, NK604."""
    check_keywords("nisa.tensor_reduce", kwargs)
    check_tile("nisa.tensor_reduce", "data", data)

    def into(dst: NkiTensor, tile: NkiTensor, axes: tuple[int, ...]) -> None:
        _reduce.tensor_reduce(dst, op, tile, axes, negate=bool(negate))

    kind = result_type(dtype, "nisa.tensor_reduce", data)
    return reduce("nisa.tensor_reduce", into, data, axis, kind, mask, bool(keepdims), name="data")


def memset(
    shape: Any, value: Any, dtype: Any, *, mask: Any = None, engine: Any = engine.unknown, **kwargs: Any
) -> Tensor:
    """A new tile filled with a number; its first dimension is the partition dimension.

    Errors: those of the instruction, NK604.
    """
    check_keywords("nisa.memset", kwargs)
    if not is_number(value):
        refuse("NK609", f"nisa.memset: `value` must be a number, it is {type(value).__name__}")
    dst = ndarray(checked_shape(shape, "nisa.memset"), element_type(dtype))
    lanes = lanes_of(mask, dst.shape, "nisa.memset")
    write_lanes(lambda target: _move.memset(target, value, engine), dst, (), lanes)
    return Tensor.made(dst, lanes)


def iota(expr: Any, dtype: Any, *, mask: Any = None, **kwargs: Any) -> Tensor:
    """A new SBUF tile with the values of an index expression. Errors: those of the instruction, NK603, NK604."""
    check_keywords("nisa.iota", kwargs)
    if isinstance(expr, NonAffine):
        expr.refuse()
    number = whole(expr)
    index = expr if number is None else Index(number, (0, 0), (1, 1))
    if not isinstance(index, Index) or index.ndim < 2:
        refuse(
            "NK603",
            "nisa.iota takes an affine expression of indices with at least two dimensions: nl.arange(n)[None, :]",
        )
    dst = new_tile(index.shape, element_type(dtype))
    lanes = lanes_of(mask, dst.shape, "nisa.iota")
    pattern = tuple(zip(index.coefficients[1:], index.shape[1:], strict=True))
    if lanes is None:
        _move.iota(dst, pattern, index.constant, index.coefficients[0])
    else:
        whole_tile = new_tile(index.shape, element_type(dtype))
        _move.iota(whole_tile, pattern, index.constant, index.coefficients[0])
        write_lanes(_move.tensor_copy, dst, (Tensor(whole_tile),), lanes)
    return Tensor.made(dst, lanes)


def nc_matmul(
    stationary: Any,
    moving: Any,
    *,
    is_stationary_onezero: Any = False,
    is_moving_onezero: Any = False,
    is_transpose: Any = False,
    tile_position: Any = (),
    tile_size: Any = (),
    mask: Any = None,
    **kwargs: Any,
) -> Tensor:
    """``stationary.T @ moving`` as a float32 tile in PSUM. Errors: those of nkitools.isa.matmul.nc_matmul, NK604.

    ``perf_mode="double_row_gen3"`` is undocumented, but AWS's own test passes it.
    """
    mode = kwargs.pop("perf_mode", None)
    check_keywords("nisa.nc_matmul", kwargs)
    options = {} if mode is None else {"perf_mode": _performance_mode(mode)}
    return linear.product(
        "nisa.nc_matmul",
        stationary,
        moving,
        mask,
        is_stationary_onezero=bool(is_stationary_onezero),
        is_moving_onezero=bool(is_moving_onezero),
        is_transpose=bool(is_transpose),
        tile_position=tuple(tile_position),
        tile_size=tuple(tile_size),
        **options,
    )


def _performance_mode(mode: Any) -> matmul_perf_mode:
    if mode not in (matmul_perf_mode.double_row, "double_row", "double_row_gen3"):
        not_modelled(f"nisa.nc_matmul(perf_mode={mode!r})", remedy='Leave perf_mode out, or pass "double_row_gen3".')
    return matmul_perf_mode.double_row


def nc_transpose(
    data: Any, *, mask: Any = None, dtype: Any = None, engine: Any = engine.unknown, **kwargs: Any
) -> Tensor:
    """Partition and free dimension swapped: in PSUM by the Tensor Engine, in SBUF by the Vector Engine.

    Errors: those of nkitools.isa.matmul.nc_transpose, NK604.
    """
    check_keywords("nisa.nc_transpose", kwargs)
    check_tile("nisa.nc_transpose", "data", data)
    lanes = lanes_of(mask, data.shape, "nisa.nc_transpose")
    if lanes is not None:
        not_modelled("nisa.nc_transpose(mask=...) is not modelled yet", remedy="Transpose a slice of the tile instead.")
    source = data.resolved()
    memory = MemoryRegion.sbuf if engine is vector_engine else MemoryRegion.psum
    dst = new_tile((source.layout.free_elements, source.shape[0]), source.dtype, memory)
    _matmul.nc_transpose(dst, source, engine)
    kind = source.dtype if dtype is None else element_type(dtype)
    return Tensor.made(dst if kind is source.dtype else reshaping.converted(dst, kind))


def dma_copy(
    *,
    dst: Any,
    src: Any,
    mask: Any = None,
    dst_rmw_op: Any = None,
    oob_mode: Any = oob_mode.error,
    dge_mode: Any = dge_mode.unknown,
) -> None:
    """``dst = src`` by DMA, in place, on the lanes of the mask.

    Errors: those of nkitools.isa.move.dma_copy, NK402, NK604.
    """
    if dst_rmw_op is not None:
        not_modelled("nisa.dma_copy(dst_rmw_op=...) is not modelled yet", remedy="Load, add and store.")
    for role, tile in (("dst", dst), ("src", src)):
        check_tile("nisa.dma_copy", role, tile)
    check_writable("nisa.dma_copy", dst)
    lanes = lanes_of(mask, dst.shape, "nisa.dma_copy")
    if lanes is None:
        _move.dma_copy(view_of(dst), view_of(src), None, oob_mode, dge_mode)
    else:
        copy_lanes(dst, src, lanes)


DOCUMENTED = frozenset(
    [
        "activation_reduce",
        "affine_select",
        "bn_aggr",
        "bn_stats",
        "builtin_custom_op",
        "dma_transpose",
        "dropout",
        "local_gather",
        "max8",
        "nc_find_index8",
        "nc_match_replace8",
        "nc_stream_shuffle",
        "range_select",
        "scalar_tensor_tensor",
        "select_reduce",
        "sequence_bounds",
        "tensor_copy_dynamic_dst",
        "tensor_copy_dynamic_src",
        "tensor_copy_predicated",
        "tensor_partition_reduce",
        "tensor_scalar_reduce",
        "tensor_tensor_scan",
    ]
)

__all__ = [
    "activation",
    "dge_mode",
    "dma_copy",
    "dma_engine",
    "engine",
    "fp32",
    "get_nc_version",
    "gpsimd_engine",
    "iota",
    "memset",
    "nc_matmul",
    "nc_transpose",
    "nc_version",
    "oob_mode",
    "reciprocal",
    "reduce_cmd",
    "scalar_engine",
    "tensor_copy",
    "tensor_engine",
    "tensor_reduce",
    "tensor_scalar",
    "tensor_tensor",
    "unknown_engine",
    "vector_engine",
]


def __getattr__(name: str) -> Any:
    return missing("neuronxcc.nki.isa", name, DOCUMENTED)
