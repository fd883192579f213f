"""``nisa.*``: the Vector Engine's instructions of several operators."""

from __future__ import annotations

from functools import partial

from nkitools.chip.dtypes import float32
from nkitools.chip.tensor import NkiTensor
from nkitools.dialects.legacy.indexing.masks import MaskLike
from nkitools.dialects.legacy.kernels.keywords import Keyword
from nkitools.dialects.legacy.nisa.value_calls import check_box, check_tiles, defined, new_result, write_by
from nkitools.dialects.legacy.tiles.dtypes import ResultDType
from nkitools.dialects.legacy.tiles.elementwise import check_tile
from nkitools.dialects.legacy.tiles.result_tiles import new_tile
from nkitools.dialects.legacy.tiles.tensor import Operand, Tensor
from nkitools.engines.operators import OPERATORS, OperatorToken, token_name
from nkitools.isa import elementwise as _elementwise
from nkitools.isa import fused as _fused
from nkitools.isa.move import tensor_copy
from nkitools.isa.reduce import tensor_reduce
from nkitools.isa.scan import tensor_tensor_scan as _tensor_tensor_scan
from nkitools.issue.plan import Operand as EngineOperand
from nkitools.rules.finding import refuse


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
    """Return ``(data <op0> operand0) <op1> operand1`` as a new tile of ``data``'s shape.

    ``operand0``: a number or a (partitions, 1) vector; ``operand1``: a tile of as many elements as ``data``.
    ``reverse0``, ``reverse1``: swap the sides of an operator. ``dtype``, ``mask`` and memory of the result: as for
    nisa.activation. Errors: those of nkitools.isa.fused.scalar_tensor_tensor, NK402, NK603, NK604, NK609, NK612.
    """
    what = "nisa.scalar_tensor_tensor"
    check_tile(what, "operand1", operand1)
    dst, lanes = new_result(what, data, dtype, mask, kwargs)
    call = partial(_fused.scalar_tensor_tensor, op0=op0, op1=op1, reverse0=bool(reverse0), reverse1=bool(reverse1))
    write_by(call, dst, lanes, data=data, operand0=operand0, operand1=operand1)
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
    """Return the new tile with ``result[i] = (data0[i] <op0> result[i - 1]) <op1> data1[i]`` in each partition.

    ``initial``, a number or a (partitions, 1) vector, stands for the element before the first. ``reverse0``,
    ``reverse1``: swap the sides of an operator. ``dtype``: of the result, by default as for nl.add of the tiles.
    ``mask`` must leave a box (NK604), at whose first element the scan begins. Memory: as for nisa.activation.
    Errors: those of nkitools.isa.scan.tensor_tensor_scan, NK402, NK603, NK604, NK609, NK612.
    """
    what = "nisa.tensor_tensor_scan"
    check_tiles(what, data0=data0, data1=data1)
    dst, lanes = new_result(what, data0, dtype, mask, kwargs, data1)
    check_box(what, lanes)
    call = partial(_tensor_tensor_scan, op0=op0, op1=op1, reverse0=bool(reverse0), reverse1=bool(reverse1))
    write_by(call, dst, defined(lanes, data0, data1, initial), data0=data0, data1=data1, initial=initial)
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
    """Return ``data <op0> operand0``, and write its reduction along all free dimensions into ``reduce_res``.

    ``operand0``: a number or a float32 (partitions, 1) vector. ``reduce_op``: np.add, subtract (the first element minus
    all others; the reference does not say), multiply, max or min. ``reduce_res``: a (partitions, 1) tile.
    ``reverse0=True`` is refused (NK609). ``mask`` must leave a box of ``data`` (NK604). ``dtype`` and memory of the
    result: as for nisa.activation.
    Errors: those of nkitools.isa.fused.tensor_scalar_reduce, NK402, NK603, NK604, NK609, NK612.
    """
    what = "nisa.tensor_scalar_reduce"
    dst, lanes = new_result(what, data, dtype, mask, kwargs)
    check_box(what, lanes)
    check_tile(what, "reduce_res", reduce_res)
    by_one_instruction = partial(_fused.tensor_scalar_reduce, reduce_op=reduce_op)
    call = _reduce_by_subtracting if token_name(reduce_op) == "subtract" else by_one_instruction
    operands = {"data": data, "operand0": operand0, "reduce_res": reduce_res}
    write_by(partial(call, op0=op0, reverse0=bool(reverse0)), dst, defined(lanes, data, operand0), **operands)
    return Tensor.made(dst, lanes)


def _reduce_by_subtracting(
    dst: NkiTensor, data: NkiTensor, op0: OperatorToken, operand0: EngineOperand, reduce_res: NkiTensor, reverse0: bool
) -> None:
    """Reduce the results in float32, before they are cast. NK609 for ``reverse0``, as in the instruction."""
    if reverse0:
        refuse("NK609", "nisa.tensor_scalar_reduce: `reverse0` is documented as not supported")
    results = new_tile(data.shape, float32)
    _elementwise.tensor_scalar(dst=results, data=data, op0=op0, operand0=operand0)
    tensor_reduce(dst=reduce_res, op=OPERATORS["subtract"], data=results, axis=tuple(range(1, results.ndim)))
    tensor_copy(dst=dst, src=results)
