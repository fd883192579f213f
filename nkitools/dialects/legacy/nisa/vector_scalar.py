"""``nisa.*``: instructions of the Vector, Scalar and GpSimd Engines that return their result as a new tile."""

from __future__ import annotations

import math
from functools import partial

from nkitools.chip import dtypes
from nkitools.chip.argument_types import Axes
from nkitools.chip.core import current_core
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.dialects.legacy.aws_names.enums import engine, reduce_cmd, translated
from nkitools.dialects.legacy.indexing.masks import MaskLike, lanes_of
from nkitools.dialects.legacy.kernels.kernel_state import form_of
from nkitools.dialects.legacy.kernels.keywords import Keyword
from nkitools.dialects.legacy.nisa.value_calls import (
    check_box,
    check_tiles,
    defined,
    memory_of,
    new_result,
    spread,
    write_by,
)
from nkitools.dialects.legacy.tiles.dtypes import ResultDType, result_type
from nkitools.dialects.legacy.tiles.elementwise import are_both_in_psum, beside, check_tile, report_product
from nkitools.dialects.legacy.tiles.reductions import are_last, arranged, reduce
from nkitools.dialects.legacy.tiles.result_tiles import value_tile, write_lanes
from nkitools.dialects.legacy.tiles.tensor import Operand, Tensor
from nkitools.engines.operators import OperatorToken, token_name
from nkitools.isa import activation as _activation
from nkitools.isa import activation_fused as _fused
from nkitools.isa import elementwise as _elementwise
from nkitools.isa import move as _move
from nkitools.isa import reduce as _reduce
from nkitools.rules.finding import report

_BIAS = (dtypes.float32, dtypes.float16, dtypes.bfloat16)


def activation(
    op: OperatorToken,
    data: Tensor,
    *,
    bias: Operand | None = None,
    scale: Operand = 1.0,
    reduce_op: OperatorToken | None = None,
    reduce_res: Tensor | None = None,
    reduce_cmd: reduce_cmd = reduce_cmd.idle,
    mask: MaskLike = None,
    dtype: ResultDType = None,
    **kwargs: Keyword,
) -> Tensor:
    """Return ``op(data * scale + bias)`` as a new tile of ``data``'s shape, computed on the Scalar Engine.

    ``bias``: None (0) or a (partitions, 1) vector of float32, float16 or bfloat16 (NK301), on NeuronCore-v3 also a
    number; ``scale``: a number or a float32 vector. ``reduce_op=np.add`` sums the results of each partition into the
    engine's registers, as ``reduce_cmd`` says; ``reduce_res``, a (partitions, 1) vector, receives them in place. With
    ``reduce_cmd=idle`` (NK507, a hint) it is the sum of this call alone. ``dtype``: of the result, by default
    ``data``'s. Elements that ``mask`` leaves out are undefined. The result is in SBUF, with ``buffer=nl.psum`` in PSUM.
    Errors: those of nkitools.isa.activation.activation, NK402, NK603, NK604, NK609, NK612.
    """
    dst, lanes = new_result("nisa.activation", data, dtype, mask, kwargs)
    if reduce_op is not None or reduce_res is not None:
        check_box("nisa.activation", lanes)
    _check_bias("nisa.activation", bias)
    call = partial(_activation.activation, op=op, reduce_op=reduce_op, reduce_cmd=translated(reduce_cmd))
    issued = lanes if reduce_op is None else defined(lanes, data)
    write_by(call, dst, issued, data=data, bias=bias, scale=scale, reduce_res=reduce_res)
    return Tensor.made(dst, lanes)


def _check_bias(what: str, bias: Operand | None) -> None:
    """NK301 in AWS's words; that there is no bias is noted, for kernels that must have one (NK614)."""
    if bias is None:
        form_of().unbiased.add(current_core(what).record.count)
    if isinstance(bias, Tensor) and bias.element not in _BIAS:
        report(
            "NK301",
            f"{what}: `bias` must be float32, float16 or bfloat16, it is {describe(bias.base)} "
            "(err_activation_bias_invalid_type)",
            about=(bias.base,),
            facts={"argument": "bias", "code": "err_activation_bias_invalid_type"},
        )


def activation_reduce(
    op: OperatorToken,
    data: Tensor,
    *,
    reduce_op: OperatorToken,
    reduce_res: Tensor | None,
    bias: Operand | None = None,
    scale: Operand = 1.0,
    mask: MaskLike = None,
    dtype: ResultDType = None,
    **kwargs: Keyword,
) -> Tensor:
    """Return ``op(data * scale + bias)``, and write its sum along all free dimensions into ``reduce_res``.

    ``reduce_op``: np.add, the only one. ``reduce_res``: a (partitions, 1) tile. ``mask`` must leave a box of ``data``
    (NK604); what it leaves out is undefined in the result and not in the sum. All else is as for nisa.activation.
    Errors: those of nkitools.isa.activation_fused.activation_reduce, NK402, NK603, NK604, NK609, NK612.
    """
    what = "nisa.activation_reduce"
    dst, lanes = new_result(what, data, dtype, mask, kwargs)
    check_box(what, lanes)
    check_tile(what, "reduce_res", reduce_res)
    _check_bias(what, bias)
    call = partial(_fused.activation_reduce, op=op, reduce_op=reduce_op)
    write_by(call, dst, defined(lanes, data), data=data, reduce_res=reduce_res, bias=bias, scale=scale)
    return Tensor.made(dst, lanes)


def reciprocal(data: Tensor, *, dtype: ResultDType = None, mask: MaskLike = None, **kwargs: Keyword) -> Tensor:
    """Return ``1 / data`` as a new tile, computed on the Vector Engine; 1 / 0 is infinity.

    ``dtype``, ``mask`` and memory of the result: as for nisa.activation.
    Errors: those of nkitools.isa.elementwise.reciprocal, NK402, NK603, NK604, NK609, NK612.
    """
    dst, lanes = new_result("nisa.reciprocal", data, dtype, mask, kwargs)
    write_by(partial(_elementwise.reciprocal), dst, lanes, data=data)
    return Tensor.made(dst, lanes)


def tensor_copy(
    src: Tensor, *, mask: MaskLike = None, dtype: ResultDType = None, engine: engine = engine.unknown, **kwargs: Keyword
) -> Tensor:
    """Return a copy of a tile in SBUF or PSUM as a new tile.

    ``dtype``, ``mask`` and memory of the result: as for nisa.activation.
    Errors: those of nkitools.isa.move.tensor_copy, NK402, NK603, NK604, NK609, NK612.
    """
    dst, lanes = new_result("nisa.tensor_copy", src, dtype, mask, kwargs)
    write_by(partial(_move.tensor_copy, engine=translated(engine)), dst, lanes, src=src)
    return Tensor.made(dst, lanes)


def tensor_tensor(
    data1: Tensor,
    data2: Tensor,
    op: OperatorToken,
    *,
    dtype: ResultDType = None,
    mask: MaskLike = None,
    engine: engine = engine.unknown,
    **kwargs: Keyword,
) -> Tensor:
    """Return ``data1 <op> data2`` as a new tile, element by element.

    Both tiles have equally many partitions, and equally many elements or free dimensions of 1, which broadcast.
    ``dtype``: of the result, by default as for nl.add. ``mask`` and memory of the result: as for nisa.activation.
    Errors: those of nkitools.isa.elementwise.tensor_tensor, NK402, NK603, NK604, NK609, NK612.
    """
    what = "nisa.tensor_tensor"
    memory = memory_of(what, kwargs)
    check_tiles(what, data1=data1, data2=data2)
    shape = _broadcast(data1.shape, data2.shape)
    dst = value_tile(shape, result_type(dtype, what, data1, data2), memory)
    lanes = lanes_of(mask, shape, what)
    report_product(what, token_name(op), data1, data2, columns=True)
    call = partial(_elementwise.tensor_tensor, op=op, engine=translated(engine))

    def into(target: NkiTensor, first: NkiTensor, second: NkiTensor) -> None:
        call(dst=target, data1=spread(first, target.shape), data2=spread(_beside(first, second), target.shape))

    write_lanes(into, dst, (data1, data2), lanes)
    return Tensor.made(dst, lanes)


def _broadcast(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    """Return the form of the first operand, with free dimensions of 1 as wide as the second's.

    "If you need broadcasting capability in the free dimension for either input tile, you should consider using
    tensor_scalar instead, which has better performance": it works, and AWS's double_row_matmul does it. So does a tile
    of one element a partition beside one of any number of dimensions, a bias beside an image.
    """
    if math.prod(second[1:]) == 1 or math.prod(first[1:]) == math.prod(second[1:]):
        return first
    if math.prod(first[1:]) == 1:
        return (first[0], *second[1:])
    if len(first) != len(second):
        return first
    return (first[0], *(other if size == 1 else size for size, other in zip(first[1:], second[1:], strict=True)))


def _beside(first: NkiTensor, second: NkiTensor) -> NkiTensor:
    """Return the second operand, or a copy in SBUF if both operands are in PSUM (NK621)."""
    if are_both_in_psum(first, second):
        message = (
            f"nisa.tensor_tensor: {describe(first)} and {describe(second)} are both in PSUM, which the documents "
            "exclude; compilers have taken it, with a copy of their own"
        )
        remedy = "Copy one of them to SBUF with nisa.tensor_copy first."
        report("NK621", message, about=(first, second), remedy=remedy)
    found: NkiTensor = beside(first, second)
    return found


def tensor_scalar(
    data: Tensor,
    op0: OperatorToken,
    operand0: Operand,
    reverse0: bool = False,
    op1: OperatorToken | None = None,
    operand1: Operand | None = None,
    reverse1: bool = False,
    *,
    dtype: ResultDType = None,
    mask: MaskLike = None,
    engine: engine = engine.unknown,
    **kwargs: Keyword,
) -> Tensor:
    """Return ``(data <op0> operand0) <op1> operand1``, or without ``op1`` ``data <op0> operand0``, as a new tile.

    ``operand0``, ``operand1``: numbers or (partitions, 1) vectors. ``reverse0``, ``reverse1``: swap the sides of an
    operator. ``dtype``, ``mask`` and memory of the result: as for nisa.activation.
    Errors: those of nkitools.isa.elementwise.tensor_scalar, NK402, NK603, NK604, NK609, NK612.
    """
    dst, lanes = new_result("nisa.tensor_scalar", data, dtype, mask, kwargs)
    call = partial(_elementwise.tensor_scalar, op0=op0, op1=op1, engine=translated(engine))
    call = partial(call, reverse0=bool(reverse0), reverse1=bool(reverse1))
    write_by(call, dst, lanes, data=data, operand0=operand0, operand1=operand1)
    return Tensor.made(dst, lanes)


def tensor_reduce(
    op: OperatorToken,
    data: Tensor,
    axis: Axes,
    *,
    mask: MaskLike = None,
    dtype: ResultDType = None,
    negate: bool = False,
    keepdims: bool = False,
    **kwargs: Keyword,
) -> Tensor:
    """Return ``data`` reduced by ``op`` along ``axis`` as a new tile; ``negate`` multiplies the result by -1.

    ``axis``: one or several free dimensions; others than the last ones give NK621, a hint. The result lacks them unless
    ``keepdims``; without free dimensions it gets one of size 1. ``dtype``: of the result, by default ``data``'s. What
    ``mask`` leaves out does not take part; it must leave a box of ``data`` (NK604). Memory: as for nisa.activation.
    Errors: those of nkitools.isa.reduce.tensor_reduce, NK402, NK603, NK604, NK609, NK612, NK621.
    """
    memory = memory_of("nisa.tensor_reduce", kwargs)
    check_tile("nisa.tensor_reduce", "data", data)

    def into(dst: NkiTensor, tile: NkiTensor, axes: tuple[int, ...]) -> None:
        if not are_last(tile, axes):
            message = (
                f"nisa.tensor_reduce: `axis`={axis} of {describe(tile)} is not the last dimensions, for which the "
                "documents ask; compilers have taken any free dimensions"
            )
            remedy = "Lay the tile out with the dimensions to reduce at the end, or call nl.sum, nl.max, ..."
            report("NK621", message, about=(tile,), remedy=remedy)
        dst, tile, axes = arranged(dst, tile, axes)
        _reduce.tensor_reduce(dst=dst, op=op, data=tile, axis=axes, negate=bool(negate))

    kind = result_type(dtype, "nisa.tensor_reduce", data)
    return reduce("nisa.tensor_reduce", into, data, axis, kind, mask, bool(keepdims), memory)
