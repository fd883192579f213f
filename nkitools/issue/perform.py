"""Perform a call: compute, judge what the computation has left behind, and put the results where they belong."""

from __future__ import annotations

from typing import Any

import numpy as np

from nkitools.chip.column_gather import ColumnTensor
from nkitools.chip.numerics import Array
from nkitools.chip.rounding_noise import NOISE
from nkitools.chip.runtime_views import VectorTensor
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.issue.careful_call import CarefulCall
from nkitools.issue.plan import WRITTEN


def perform(call: CarefulCall) -> None:
    """Carry a call out."""
    if call.full is not None:
        call.full.renew()
    for tensor, seen in call.outputs:
        if tensor.storage.guard is not None:
            from nkitools.issue.written_arguments import open_views

            open_views(tensor, seen)
    results = {
        id(seen): seen.array if seen.direct and not call.lost else np.array(seen.read()) for _, seen in call.outputs
    }
    keywords = {"fresh": call.fresh} if call.plan.wants_fresh else {}
    arrays = [_array(seen, results) for _, seen, _ in call.data]
    noise = NOISE.get()
    if noise is not None and call.full is not None:
        from nkitools.issue.noisy_call import with_sum_errors

        arrays = with_sum_errors(noise, call, arrays)
    if call.plan.lanes == "exchange":
        call.undefined = call.meaning.compute(*arrays, undefined=call.undefined)
    else:
        call.meaning.compute(*arrays, **keywords)
    if noise is not None:
        from nkitools.issue.noisy_call import add_quantisation_errors, add_rounding_errors

        add_quantisation_errors(noise, call, results)
        if call.full is not None:
            add_rounding_errors(noise, call, results)
    if call.core.evidence:
        from nkitools.issue.value_rules import judge_carefully

        judge_carefully(call, results)
    _store(call, results)
    if call.beyond:
        from nkitools.issue.refused_instructions import leave_rows_undone

        leave_rows_undone(call)
    if call.plan.in_psum:
        from nkitools.issue.accumulation import note_accesses

        note_accesses(call.plan, [value for value, _, _ in call.data])


def _store(call: CarefulCall, results: dict[int, Array]) -> None:
    """Put the results where they belong, and count them as written."""
    operands = zip(call.plan.operands, call.tensors, call.touches, strict=True)
    written = [(name, touched) for name, (_, role), touched in operands if role in WRITTEN]
    for (tensor, seen), (name, touched) in zip(call.outputs, written, strict=True):
        _put(call, seen, name, results[id(seen)], touched)
        _mark(call, tensor, name, touched)
        if call.full is not None:
            call.full.written(tensor, touched)


def _array(value: Any, results: dict[int, Array]) -> Any:
    """Return the argument of ``compute`` for an operand: the array for its result, its elements, or a number."""
    if not isinstance(value, NkiTensor):
        return value
    return results[id(value)] if id(value) in results else value.read()


def _put(call: CarefulCall, tensor: NkiTensor, name: str, result: Array, touched: Array | None) -> None:
    """Put a result where it belongs."""
    if isinstance(tensor, VectorTensor):
        if not call.plan.unique_rows:
            from nkitools.issue.scatter_order import check_order

            check_order(call.plan, tensor, result, call.kept(name, tensor))
        tensor.write(result, call.kept(name, tensor))
    elif isinstance(tensor, ColumnTensor):
        tensor.write(result, touched)
    elif name in call.lost:
        np.copyto(tensor.array, result, where=call.kept(name, tensor))
    elif not tensor.direct:
        tensor.write(result)


def _mark(call: CarefulCall, tensor: NkiTensor, name: str, touched: Array | None) -> None:
    """Remember which elements are now written."""
    if isinstance(tensor, VectorTensor):
        tensor.mark_written(call.kept(name, tensor))
        return
    if isinstance(tensor, ColumnTensor):
        tensor.mark_written(touched)
        return
    where = call.kept(name, tensor)
    if touched is not None:
        touched = np.broadcast_to(touched, tensor.shape)
        where = touched if where is None else where & touched
    storage = tensor.storage
    if not storage.full:
        storage.mark_written(tensor.layout, tensor.byte_offset, where)
        if touched is not None and call.plan.chooses is None:
            from nkitools.chip.masked_out import UNMODIFIED, leave_out

            leave_out(storage, call.core.record.site(), tensor, UNMODIFIED)
    undefined = call.undefined.elements.get(name)
    if undefined is not None and undefined.any():
        from nkitools.chip.masked_out import Use, carry

        storage.mark_unwritten(tensor.layout, tensor.byte_offset, undefined if where is None else undefined & where)
        is_copy = call.plan.lanes == "exchange" or (call.plan.lanes == "copy" and tensor.on_chip)
        site = call.core.record.site()
        for source, missing, mixes in call.undefined.sources:
            some = f"{call.plan.name}: {np.count_nonzero(missing)} of {missing.size} elements of {describe(source)}"
            carry(tensor, source, missing, None if is_copy else Use(some, site, mixes or not tensor.on_chip))
