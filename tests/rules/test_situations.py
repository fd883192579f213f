"""The remedy is that of the situation: exchanged operands, empty loops, masks that are there, run-time indices."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import nkitools

nkitools.install_stand_in()
nl, nisa = import_module("nki.language"), import_module("nki.isa")
legacy_nki, lnl = import_module("neuronxcc.nki"), import_module("neuronxcc.nki.language")
X = np.ones((300, 64), np.float32)


def _empty_loop(x: Any) -> Any:
    out = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.sbuf)
    for i in range(x.shape[1] // 128):
        nisa.dma_copy(dst=t, src=x[i * 64 : (i + 1) * 64])
    nisa.dma_copy(dst=out, src=t)
    return out


def _dma_exchanged(x: Any) -> Any:
    out = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x[0:64])
    nisa.dma_copy(dst=t, src=out)
    return out


def _in_sbuf(x: Any) -> Any:
    out = nl.ndarray((64, 64), dtype=x.dtype)
    nisa.dma_copy(dst=out, src=x[0:64])
    return out


def _tall_result(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype)
    t = nl.load(x[0:64])
    nisa.dma_copy(dst=out[0:64], src=t)
    return out


def _number(x: Any) -> Any:
    t = nl.load(x[0:64])
    return float(t[0, 0])


def _indices(x: Any) -> Any:
    t = nl.load(x[0:64])
    return t[0, :, :]


def _activation_function(x: Any) -> Any:
    t = nl.load(x[0:64])
    nisa.tensor_scalar(dst=t, data=t, op0=nl.log, operand0=1.0)
    return x


@legacy_nki.jit
def _store_exchanged(x: Any) -> Any:
    out = lnl.ndarray((64, 64), dtype=x.dtype, buffer=lnl.shared_hbm)
    t = lnl.load(x[0:64])
    lnl.store(t, out)
    return out


@legacy_nki.jit
def _masked(x: Any) -> Any:
    out = lnl.ndarray(x.shape, dtype=x.dtype, buffer=lnl.shared_hbm)
    p, f = lnl.arange(128)[:, None], lnl.arange(64)[None, :]
    for i in lnl.affine_range(3):
        t = lnl.load(x[i * 128 + p, f], mask=(p < 300))
        lnl.store(out[i * 128 + p, f], t, mask=(i * 128 + p < 300))
    return out


@legacy_nki.jit
def _not_masked(x: Any) -> Any:
    out = lnl.ndarray(x.shape, dtype=x.dtype, buffer=lnl.shared_hbm)
    p, f = lnl.arange(128)[:, None], lnl.arange(64)[None, :]
    for i in lnl.affine_range(3):
        lnl.store(out[i * 128 + p, f], lnl.load(x[i * 128 + p, f]))
    return out


def _loop_of_no_turn(x: Any) -> Any:
    out = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(x.shape[1] // 128):
        for _ in range(1):
            nisa.dma_copy(dst=out, src=x[i * 64 : (i + 1) * 64])
    return out


def _result_without_buffer(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype)
    for i in range(5):
        nisa.dma_copy(dst=out[i * 60 : (i + 1) * 60], src=nl.load(x[i * 60 : (i + 1) * 60]))
    return out


def _product(x: Any, *, exchanged: bool) -> Any:
    first, second = nl.load(x[0:64, 0:32]), nl.ndarray((64, 200), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=second, value=1.0)
    total = nl.ndarray((32, 200) if exchanged else (200, 32), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=total, stationary=second, moving=first)
    return x


def _operands_exchanged(x: Any) -> Any:
    return _product(x, exchanged=True)


def _wide_stationary(x: Any) -> Any:
    return _product(x, exchanged=False)


def _vector_broadcast(x: Any) -> Any:
    return x.reshape((300 * 64,)).broadcast(0, 128)


def _matrix_broadcast(x: Any) -> Any:
    return x.broadcast(1, 128)


def _counter_of_the_device(x: Any) -> Any:
    for i in nl.dynamic_range(2):
        nl.load(x[i * 64 : (i + 1) * 64])
    return x


def _overlapping_heads(x: Any) -> Any:
    out = nl.ndarray((64, 96), dtype=nl.float32, buffer=nl.shared_hbm)
    tile, total = nl.load(x[0:64]), nl.ndarray((64, 96), dtype=nl.float32, buffer=nl.psum)
    for head in range(2):
        part = total[:, head * 32 : head * 32 + 64]
        nisa.nc_matmul(dst=part, stationary=tile, moving=tile, accumulate=False)
    result = nl.ndarray((64, 96), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=total)
    nisa.dma_copy(dst=out, src=result)
    return out


def _copy_exchanged_before(x: Any) -> Any:
    out, tile = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.shared_hbm), nl.load(x[0:64])
    result = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=tile, src=result)
    nisa.dma_copy(dst=out, src=result)
    return out


def _returns_in_the_loop(x: Any) -> Any:
    out = nl.ndarray((300, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(3):
        nisa.dma_copy(dst=out[i * 100 : (i + 1) * 100], src=x[i * 100 : (i + 1) * 100])
        return out
    return None


def _one_of_two_loops(x: Any) -> Any:
    out = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    for _ in range(x.shape[0] // 100):
        for i in range(x.shape[1] // 128):
            nisa.dma_copy(dst=out, src=x[i * 64 : (i + 1) * 64])
    return out


def _same_start(x: Any) -> Any:
    out = nl.ndarray((300, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(3):
        rows = min(128, 300 - i * 128)
        nisa.dma_copy(dst=out[0:rows], src=x[i * 128 : i * 128 + rows])
    return out


def _cut_operand(x: Any) -> Any:
    first, second = nl.load(x[0:128]), nl.load(x[128:256])
    total = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=total, stationary=first, moving=second[0:64])
    return x


def _vector_as_column(x: Any) -> Any:
    column, tile = nl.load(x.reshape((300 * 64,))[0:64]), nl.load(x[0:128])
    return nl.multiply(tile, column)


def _tile_as_scalars(x: Any) -> Any:
    first, second = nl.load(x[0:128]), nl.load(x[128:256])
    nisa.tensor_scalar(dst=first, data=first, op0=nl.add, operand0=second)
    return x


def _operator_as_function(x: Any) -> Any:
    tile = nl.load(x[0:128])
    nisa.activation(dst=tile, op=nl.power, data=tile)
    return x


def _unnamed(x: Any) -> Any:
    return nl.multiply(nl.load(x[0:64]), nl.load(x[0:128]))


@legacy_nki.jit
def _result_in_sbuf(x: Any) -> Any:
    out = lnl.ndarray((64, 64), dtype=x.dtype, buffer=lnl.sbuf)
    lnl.store(out, lnl.load(x[0:64]))
    return out


@legacy_nki.jit
def _operand_in_hbm(x: Any) -> Any:
    return lnl.load(x[0:64]) * x


@legacy_nki.jit
def _flat_arange(x: Any) -> Any:
    return lnl.load(x[lnl.arange(128), lnl.arange(64)[None, :]])


@legacy_nki.jit
def _sum_over_rows(x: Any) -> Any:
    return lnl.sum(lnl.load(x[0:64]), axis=0)


@legacy_nki.jit
def _no_such_axis(x: Any) -> Any:
    return lnl.sum(lnl.load(x[0:64]), axis=2)


@legacy_nki.jit
def _float_count(x: Any) -> Any:
    for _ in lnl.affine_range(x.shape[0] / 100):
        lnl.load(x[0:64])
    return x


@legacy_nki.jit
def _mask_one_short(x: Any) -> Any:
    out = lnl.ndarray(x.shape, dtype=x.dtype, buffer=lnl.shared_hbm)
    p, f = lnl.arange(128)[:, None], lnl.arange(64)[None, :]
    for i in lnl.affine_range(3):
        inside = i * 128 + p < x.shape[0] - 1
        lnl.store(out[i * 128 + p, f], lnl.load(x[i * 128 + p, f], mask=inside), mask=inside)
    return out


CASES: dict[Any, tuple[str, str]] = {
    _copy_exchanged_before: ("NK401", "are swapped: tensor_copy(dst, src), the destination comes first."),
    _returns_in_the_loop: ("NK403", "in its first turn: put it behind the loops."),
    _one_of_two_loops: ("NK403", "One of these loops runs zero times: "),
    _same_start: ("NK403", "goes to the same elements each time"),
    _cut_operand: ("NK102", "Slice `second` as [128, 64]: dimension 0 is 64, it must be 128."),
    _vector_as_column: ("NK102", "load the vector as nl.load(v.reshape((1, 64)).broadcast(0, 128))."),
    _tile_as_scalars: ("NK109", "call nisa.tensor_tensor, with `first` as data1 and `second` as data2."),
    _operator_as_function: ("NK306", "nl.power is an operator of nisa.tensor_scalar"),
    _unnamed: ("NK102", "Make the tensor (line "),
    _result_in_sbuf: ("NK201", "with buffer=nl.shared_hbm; between tiles on chip assign"),
    _operand_in_hbm: ("NK102", "Load `x` first: it lies in HBM"),
    _loop_of_no_turn: ("NK403", "runs zero times: `range(x.shape[1] // 128)` is empty."),
    _result_without_buffer: ("NK101", "with buffer=nl.shared_hbm, where results lie"),
    _operands_exchanged: ("NK104", "The operands are exchanged: pass `first` as `stationary` and `second` as `moving`"),
    _wide_stationary: ("NK104", "If the product is to be [32, 200], pass `first` as `stationary`"),
    _vector_broadcast: ("NK109", "Reshape it to a row first, .reshape((1, 19200)), and broadcast dimension 0 of that."),
    _matrix_broadcast: ("NK109", "Take one element of dimension 1 first, [:, 0:1]"),
    _counter_of_the_device: ("NK603", "If it counts a loop, write range(n)"),
    _flat_arange: ("NK603", "Write nl.arange(n)[:, None] for the partition dimension"),
    _sum_over_rows: ("NK112", "To reduce along the free dimension write axis=1;"),
    _no_such_axis: ("NK112", "Write axis=1, the last dimension; the free dimensions are 1."),
    _float_count: ("NK609", "Compute each with // instead of /"),
    _mask_one_short: ("NK403", "The last tile is stored in part, up to 299 of 300 in dimension 0: mend the mask"),
    _empty_loop: ("NK401", "runs zero times: `range(x.shape[1] // 128)` is empty."),
    _dma_exchanged: ("NK401", "The operands are swapped: dma_copy(dst, src)."),
    _in_sbuf: ("NK201", "or make it with buffer=nl.shared_hbm."),
    _number: ("NK602", "Pass the tile itself as an operand"),
    _indices: ("NK603", "Give 2 indices, one for each dimension of [64, 64]."),
    _activation_function: ("NK306", "Call nisa.activation(dst, op=nl.log, data)."),
    _store_exchanged: ("NK201", "The arguments are exchanged: put `out` first, the destination in HBM."),
    _masked: ("NK402", "The mask lets these positions in: compare the whole index"),
    _not_masked: ("NK402", "Pass a mask that leaves out the positions beyond the end"),
}


def finding_of(kernel: Callable[..., Any]) -> Any:
    """Return the finding that ends a run of a kernel."""
    with pytest.raises((nkitools.KernelError, IndexError)) as caught:
        nkitools.simulate(kernel, X)
    return caught.value.finding  # type: ignore[union-attr]


@pytest.mark.parametrize(("kernel", "expected"), CASES.items(), ids=[each.__name__ for each in CASES])
def test_the_remedy_is_that_of_the_situation(kernel: Callable[..., Any], expected: tuple[str, str]) -> None:
    """And of no other mistake that breaks the same rule; it has two sentences at most."""
    found = finding_of(kernel)
    assert found.rule == expected[0]
    assert expected[1] in found.remedy
    assert found.remedy.count(". ") <= 1


def test_a_result_on_chip_is_reported_where_it_is_made() -> None:
    """Not at the line of the caller, which is right."""
    assert finding_of(_in_sbuf).line == _in_sbuf.__code__.co_firstlineno + 1


def test_sums_that_overlap_name_the_columns_that_both_have() -> None:
    """And the line that begins the other one."""
    found = nkitools.simulate(_overlapping_heads, X, rules="report").findings
    remedy = next(each.remedy for each in found if each.rule == "NK506")
    assert remedy.startswith("Both sums lie in columns 32 to 63 of a partition")


def test_a_last_tile_that_is_left_out_is_no_short_store() -> None:
    """The number of tiles was rounded down."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        for i in range(x.shape[0] // 128):
            nisa.dma_copy(dst=out[i * 128 : (i + 1) * 128], src=x[i * 128 : (i + 1) * 128])
        return out

    assert "round the number of tiles up" in finding_of(kernel).remedy


def test_rounded_integers_are_drawn_as_such() -> None:
    """They lose their low bits, and do not saturate."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((64, 4), dtype=nl.int32, buffer=nl.shared_hbm)
        tile = nl.load(x)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1)
        nl.store(out, tile)
        return out

    run = nkitools.simulate(kernel, np.full((64, 4), 2**24 + 2, np.int32), rules="report")
    picture = next(each.picture for each in run.findings if each.rule == "NK307")
    assert picture is not None
    assert dict(picture.meanings)["#"] == "low bits lost"


def test_a_loop_that_has_run_is_not_blamed() -> None:
    """Another mistake left the tile unwritten."""

    def kernel(x: Any) -> Any:
        t = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.sbuf)
        u = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.sbuf)
        for _ in range(2):
            nisa.dma_copy(dst=u, src=x[0:64])
        nisa.dma_copy(dst=x[0:64], src=t)
        return x

    assert "runs zero times" not in finding_of(kernel).remedy
