"""``nisa.*``: the Vector Engine's instructions of several operators."""

from __future__ import annotations

from nkitools.chip.dtypes import float32
from nkitools.chip.tensor import NkiTensor
from nkitools.dialects.legacy.indexing.masks import MaskLike
from nkitools.dialects.legacy.kernels.keywords import Keyword
from nkitools.dialects.legacy.nisa.value_calls import check_box, defined, new_result
from nkitools.dialects.legacy.tiles.dtypes import ResultDType
from nkitools.dialects.legacy.tiles.elementwise import check_tile
from nkitools.dialects.legacy.tiles.result_tiles import new_tile, write_lanes
from nkitools.dialects.legacy.tiles.tensor import Operand, Tensor
from nkitools.engines.operators import OPERATORS, OperatorToken, token_name
from nkitools.isa import elementwise as _elementwise
from nkitools.isa import fused as _fused
from nkitools.isa.move import tensor_copy
from nkitools.isa.reduce import tensor_reduce
from nkitools.issue.plan import Operand as EngineOperand


def scalar_tensor_tensor(
    *,
    data: Tensor,
    op0: OperatorToken,
    operand0: Operand,
    op1: OperatorToken,
    operand1: Operand | None,
    reverse0: bool = False,
    reverse1: bool = False,
    dtype: ResultDType = None,
    mask: MaskLike = None,
    **kwargs: Keyword,
) -> Tensor:
    """Return ``(data <op0> operand0) <op1> operand1``: a number or (partitions, 1) vector, then a tile of ``data``'s
    shape.

    The result has ``data``'s dtype. Errors: those of nkitools.isa.fused.scalar_tensor_tensor, NK604.
    """
    what = "nisa.scalar_tensor_tensor"
    check_tile(what, "operand1", operand1)
    dst, lanes = new_result(what, data, dtype, mask, kwargs)

    def into(target: NkiTensor, tile: NkiTensor, first: EngineOperand, second: NkiTensor) -> None:
        _fused.scalar_tensor_tensor(
            dst=target,
            data=tile,
            op0=op0,
            operand0=first,
            op1=op1,
            operand1=second,
            reverse0=bool(reverse0),
            reverse1=bool(reverse1),
        )

    write_lanes(into, dst, (data, operand0, operand1), lanes)
    return Tensor.made(dst, lanes)


def tensor_tensor_scan(
    data0: Tensor,
    data1: Tensor,
    initial: Operand,
    op0: OperatorToken,
    op1: OperatorToken,
    reverse0: bool = False,
    reverse1: bool = False,
    *,
    dtype: ResultDType = None,
    mask: MaskLike = None,
    **kwargs: Keyword,
) -> Tensor:
    """``result[i] = (data0[i] <op0> result[i - 1]) <op1> data1[i]`` in each partition, from ``initial`` on.

    The result has the promoted dtype of the two tiles. Under a mask the scan begins at the first element that it
    leaves. Errors: those of nkitools.isa.fused.tensor_tensor_scan, NK604.
    """
    what = "nisa.tensor_tensor_scan"
    for role, tile in (("data0", data0), ("data1", data1)):
        check_tile(what, role, tile)
    dst, lanes = new_result(what, data0, dtype, mask, kwargs, data1)
    check_box(what, lanes)

    def into(target: NkiTensor, first: NkiTensor, second: NkiTensor, start: NkiTensor | float) -> None:
        _fused.tensor_tensor_scan(
            dst=target,
            data0=first,
            data1=second,
            initial=start,
            op0=op0,
            op1=op1,
            reverse0=bool(reverse0),
            reverse1=bool(reverse1),
        )

    write_lanes(into, dst, (data0, data1, initial), defined(lanes, data0, data1, initial))
    return Tensor.made(dst, lanes)


def tensor_scalar_reduce(
    *,
    data: Tensor,
    op0: OperatorToken,
    operand0: Operand,
    reduce_op: OperatorToken,
    reduce_res: Tensor | None,
    reverse0: bool = False,
    dtype: ResultDType = None,
    mask: MaskLike = None,
    **kwargs: Keyword,
) -> Tensor:
    """Return ``data <op0> operand0``, and its reduction along all free dimensions into ``reduce_res``, in place.

    ``reduce_op``: add, subtract, multiply, max or min. NKI 0.6 has no ``subtract``; the reference does not say which
    elements it subtracts from which, and here it is as in nisa.tensor_reduce: the first minus all the others, by an
    instruction of its own.
    Errors: those of nkitools.isa.fused.tensor_scalar_reduce, NK604.
    """
    what = "nisa.tensor_scalar_reduce"
    dst, lanes = new_result(what, data, dtype, mask, kwargs)
    check_box(what, lanes)
    check_tile(what, "reduce_res", reduce_res)
    subtracts = token_name(reduce_op) == "subtract"

    def into(target: NkiTensor, tile: NkiTensor, operand: EngineOperand, result: NkiTensor) -> None:
        if subtracts:
            _reduce_by_subtracting(target, tile, op0, operand, result, reverse0)
        else:
            _fused.tensor_scalar_reduce(
                dst=target,
                data=tile,
                op0=op0,
                operand0=operand,
                reduce_op=reduce_op,
                reduce_res=result,
                reverse0=bool(reverse0),
            )

    write_lanes(into, dst, (data, operand0, reduce_res), defined(lanes, data, operand0))
    return Tensor.made(dst, lanes)


def _reduce_by_subtracting(
    dst: NkiTensor, data: NkiTensor, op0: OperatorToken, operand0: EngineOperand, reduce_res: NkiTensor, reverse0: bool
) -> None:
    """Reduce the results in float32, before they are cast."""
    results = new_tile(data.shape, float32)
    _elementwise.tensor_scalar(dst=results, data=data, op0=op0, operand0=operand0, reverse0=bool(reverse0))
    tensor_reduce(dst=reduce_res, op=OPERATORS["subtract"], data=results, axis=tuple(range(1, results.ndim)))
    tensor_copy(dst=dst, src=results)
