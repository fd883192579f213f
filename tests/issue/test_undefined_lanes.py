"""Undefined rows and columns travel through copies, transposes and element-wise work, and are refused at a use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

import nkitools
from tests.issue.outcomes import done, refused
from tests.nki_versions import SINCE_0_7


def line_of(mark: str) -> int:
    """The number of this file's line that ends in a comment."""
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# {mark}"))


X = np.random.default_rng(7).standard_normal((128, 64)).astype(np.float32)


# --- undefined lanes travel -------------------------------------------------------------------------------------------


def test_rows_that_are_cut_off_later_may_be_undefined() -> None:
    """Of a tile of 128 rows 100 are loaded; copies, activations and transposes go over all of them."""

    @nki.jit
    def kernel(x: Any) -> Any:
        out = nl.ndarray((64, 100), dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile[0:100, :], src=x[0:100, :])
        squares = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.activation(dst=squares, op=nl.square, data=tile)
        sums = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=sums, data1=squares, data2=tile, op=nl.add)
        turned = nl.ndarray((64, 128), dtype=x.dtype, buffer=nl.psum)
        nisa.nc_transpose(dst=turned, data=sums)
        copied = nl.ndarray((64, 128), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(dst=copied, src=turned)
        nisa.dma_copy(dst=out, src=copied[:, 0:100])
        return out

    output, findings = done(kernel, X)
    assert findings == []
    np.testing.assert_allclose(output, (X * X + X)[:100].T, rtol=1e-6)


def test_undefined_rows_are_reduced_and_cut_off_later() -> None:
    """Reductions of several forms, scans and statistics of 128 rows, 100 of them loaded."""

    @nki.jit
    def kernel(x: Any) -> Any:
        out = nl.ndarray((100, 6), dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile[0:100, :], src=x[0:100, :])
        results = nl.ndarray((128, 6), dtype=x.dtype, buffer=nl.sbuf)
        same = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=results[:, 0:1], op=nl.maximum, data=tile, axis=1)
        nisa.activation_reduce(
            dst=same, op=nl.square, data=tile, reduce_op=nl.add, reduce_res=results[:, 1:2], bias=None, scale=1.0
        )
        nisa.tensor_tensor_scan(dst=same, data0=tile, data1=tile, initial=0.0, op0=nl.multiply, op1=nl.add)
        nisa.tensor_copy(dst=results[:, 2:3], src=same[:, 63:64])
        triples = nl.ndarray((128, 6), dtype=x.dtype, buffer=nl.sbuf)
        nisa.bn_stats(dst=triples, data=tile)
        nisa.bn_aggr(dst=results[:, 3:5], data=triples)
        largest = nl.ndarray((128, 8), dtype=x.dtype, buffer=nl.sbuf)
        nisa.max8(dst=largest, src=tile)
        nisa.tensor_copy(dst=results[:, 5:6], src=largest[:, 1:2])
        nisa.dma_copy(dst=out, src=results[0:100, :])
        return out

    output, findings = done(kernel, X)
    assert findings == []
    rows = X[:100].astype(np.float64)
    scan = np.zeros(100)
    for column in rows.T:
        scan = column * scan + column
    moments = [rows.max(1), (rows**2).sum(1), scan, rows.mean(1), rows.var(1), np.sort(rows, 1)[:, -2]]
    np.testing.assert_allclose(output, np.stack(moments, axis=1), rtol=1e-3, atol=1e-5)


def test_a_reduction_of_defined_and_undefined_elements_is_a_use() -> None:
    """NK401 where a row's last columns were never written, and where no element of the operand was."""

    @nki.jit
    def kernel(x: Any, rows: int, columns: int) -> Any:
        out = nl.ndarray((100, 1), dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        if rows:
            nisa.dma_copy(dst=tile[0:rows, 0:columns], src=x[0:rows, 0:columns])
        total = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=total, op=nl.add, data=tile, axis=1)
        nisa.dma_copy(dst=out, src=total[0:100, :])
        return out

    for rows, columns, missing in ((128, 60, 512), (0, 0, 8192)):
        with pytest.raises(nkitools.KernelError) as caught:
            nkitools.simulate(kernel, X, rows, columns)
        assert caught.value.finding.rule == "NK401"
        assert f"tensor_reduce: {missing} of 8192 elements of tensor `tile`" in caught.value.finding.message


@pytest.mark.parametrize("rows", [2, 3])
@pytest.mark.parametrize("by", ["local_gather", "nc_n_gather"])
def test_gathers_leave_undefined_rows_undefined(by: str, rows: int) -> None:
    """Of 16 rows 2 are loaded, and of the second one 6 columns of 8: what is gathered of the others is undefined."""
    chosen = np.arange(16 * 4).reshape(16, 4) % 6

    @nki.jit
    def kernel(x: Any, indices: Any) -> Any:
        out = nl.ndarray((rows, 64 if by == "local_gather" else 4), dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray((16, 8), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile[0:1, :], src=x[0:1, 0:8])
        nisa.dma_copy(dst=tile[1:2, 0:6], src=x[1:2, 0:6])
        index = nl.load(indices)
        gathered = nl.ndarray((16, out.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        if by == "local_gather":
            nisa.local_gather(dst=gathered, src_buffer=tile, index=index)
        else:
            nisa.nc_n_gather(dst=gathered, data=tile, indices=index)
        nisa.dma_copy(dst=out, src=gathered[0:rows, :])
        return out

    indices = chosen.astype(np.uint16 if by == "local_gather" else np.uint32)
    if rows == 3:
        with pytest.raises(nkitools.KernelError) as caught:
            nkitools.simulate(kernel, X, indices)
        assert caught.value.finding.rule == "NK401"
        return
    output, findings = done(kernel, X, indices)
    assert findings == []
    places = np.tile(chosen.T.reshape(-1), (2, 1)) if by == "local_gather" else chosen[:2]
    np.testing.assert_array_equal(output, np.take_along_axis(X[:2], places, axis=1))


@pytest.mark.parametrize("reduces", [False, pytest.param(True, marks=SINCE_0_7)])
def test_undefined_rows_go_to_the_other_core(*, reduces: bool) -> None:
    """Core 0 sends 100 defined rows of 128, core 1 all: each row is defined where the core that it came from has it."""

    @nki.jit
    def kernel(x: Any, rows: int) -> Any:
        out = nl.ndarray((2, 128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        core, other = nl.program_id(0), 1 - nl.program_id(0)
        mine = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        theirs = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        loaded = 128 if core else 100
        nisa.dma_copy(dst=mine[0:loaded, :], src=x[core, 0:loaded, :])
        if reduces:
            nisa.sendrecv_compute(src=mine, dst=theirs, send_to_rank=other, recv_from_rank=other, reduce_op=nl.add)
        else:
            nisa.sendrecv(src=mine, dst=theirs, send_to_rank=other, recv_from_rank=other, pipe_id=0)
        kept = rows if core or reduces else 128
        nisa.dma_copy(dst=out[core, 0:kept, :], src=theirs[0:kept, :])
        return out

    x = np.stack([X, 2 * X])
    with nkitools.allow_findings("NK403", reason="the last rows are left out"):
        output, findings = done(kernel, x, 100, grid=2)
    assert findings == []
    np.testing.assert_array_equal(output[:, :100], 3 * x[[0, 0], :100] if reduces else x[::-1, :100])
    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(kernel, x, 101, grid=2)
    finding = caught.value.finding
    assert (finding.rule, finding.program) == ("NK401", (1,))
    assert "64 of 6464 elements of tensor `theirs`" in finding.message
    assert "undefined elements came from `mine` made at line" in finding.message


@pytest.mark.parametrize("order", [(1, 0, 1), (0, 1, 1), (1, 1, 0)])
@pytest.mark.parametrize("side", ["moving", "stationary"])
@pytest.mark.parametrize("says", [True, False])
def test_undefined_columns_stay_undefined_in_a_sum_of_products(
    *, says: bool, side: str, order: tuple[int, ...]
) -> None:
    """Whatever products are added before and after; the other columns, or rows, are those of NumPy."""

    @nki.jit
    def kernel(x: Any, kept: int) -> Any:
        out = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        whole, part = nl.load(x), nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=part[:, 0:40], src=x[:, 0:40])
        total = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.psum)
        for number, each in enumerate(order):
            operands = {"stationary": whole, "moving": whole, side: whole if each else part}
            nisa.nc_matmul(dst=total, **operands, accumulate=number > 0 if says else None)
        result = nl.copy(total)
        if side == "moving":
            nisa.dma_copy(dst=out[:, 0:kept], src=result[:, 0:kept])
        else:
            nisa.dma_copy(dst=out[0:kept, :], src=result[0:kept, :])
        return out

    with nkitools.allow_findings("NK403", reason="the undefined part is left out"):
        output, findings = done(kernel, X, 40)
        assert findings == []
        part = (slice(None), slice(40)) if side == "moving" else slice(40)
        np.testing.assert_allclose(output[part], 3 * (X.T.astype(np.float64) @ X)[part], rtol=1e-4, atol=1e-3)
        with pytest.raises(nkitools.KernelError) as caught:
            nkitools.simulate(kernel, X, 41)
    assert caught.value.finding.rule == "NK401"
    assert "undefined elements came from `part`" in caught.value.finding.message


@pytest.mark.parametrize("use", ["reduction", "result"])
def test_the_use_of_undefined_elements_names_where_they_came_from(use: str) -> None:
    """NK401 at a reduction and at a copy into the result, after an activation that they have travelled through."""

    @nki.jit
    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        half = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=half[0:100, :], src=x[0:100, :])
        result = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.activation(dst=result, op=nl.exp, data=half)
        if use == "reduction":
            nisa.tensor_reduce(dst=result[:, 0:1], op=nl.add, data=result, axis=1)
        nisa.dma_copy(dst=out, src=result)
        return out

    finding = refused(kernel, X)
    assert finding.rule == "NK401"
    assert "1792 of 8192 elements of tensor `result`" in finding.message
    assert "undefined elements came from `half` made at line" in finding.message


# --- a kernel's own scratch in HBM, predicates, and where the report stands -------------------------------------------


@pytest.mark.parametrize("kept", [27, 28])
def test_undefined_rows_go_through_scratch_in_hbm(kept: int) -> None:
    """Written and read back as a tile is; NK401 once they come to a result, at the line that puts them into HBM."""

    @nki.jit
    def kernel(x: Any) -> Any:
        out = nl.ndarray((kept, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        scratch = nl.ndarray((32, 64), dtype=x.dtype, buffer=nl.private_hbm)
        rows = nl.ndarray((32, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=rows[0:27, :], src=x[0:27, :])
        nisa.dma_copy(dst=scratch, src=rows)  # put
        back = nl.ndarray((32, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=back, src=scratch)
        nisa.dma_copy(dst=out, src=back[0:kept, :])
        return out

    if kept == 27:
        output, findings = done(kernel, X)
        assert findings == []
        np.testing.assert_array_equal(output, X[:27])
        return
    finding = refused(kernel, X)
    assert finding.rule == "NK401"
    assert "320 of 2048 elements of tensor `rows`" in finding.message
    assert "64 of 1792 elements of tensor `back`" in finding.message
    assert finding.line == line_of("put")


def test_scratch_in_hbm_that_is_returned_is_a_result() -> None:
    """NK401 in place of NK403: its elements were made of others that were never written."""

    @nki.jit
    def kernel(x: Any) -> Any:
        scratch = nl.ndarray((32, 64), dtype=x.dtype, buffer=nl.hbm)
        rows = nl.ndarray((32, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=rows[0:27, :], src=x[0:27, :])
        nisa.dma_copy(dst=scratch, src=rows)
        return scratch

    finding = refused(kernel, X)
    assert finding.rule == "NK401"
    assert "320 of 2048 elements of tensor `rows`" in finding.message


def test_an_argument_is_a_result() -> None:
    """NK401 where undefined rows are copied into it, whatever memory it lies in."""

    @nki.jit
    def kernel(x: Any) -> Any:
        rows = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=rows[0:27, :], src=x[0:27, :])
        nisa.dma_copy(dst=x, src=rows)
        return x

    assert refused(kernel, X.copy()).rule == "NK401"


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("by", ["tile", "number"])
@pytest.mark.parametrize("kept", [12, 13])
def test_an_undefined_predicate_makes_its_own_lanes_undefined(*, reverse: bool, by: str, kept: int) -> None:
    """Of 16 columns 12 have a predicate, out of scratch in HBM: the others are undefined, and nothing else is."""
    choice = (np.arange(12 * 128).reshape(128, 12) % 3 == 0).astype(np.uint8)

    @nki.jit
    def kernel(x: Any, chosen: Any) -> Any:
        out = nl.ndarray((128, kept), dtype=x.dtype, buffer=nl.shared_hbm)
        scratch = nl.ndarray((128, 16), dtype=nl.uint8, buffer=nl.private_hbm)
        nisa.dma_copy(dst=scratch[:, 0:12], src=chosen)
        predicate = nl.load(scratch)
        tile = nl.load(x[:, 0:16])
        other = nl.load(x[:, 16:32]) if by == "tile" else 5.0
        nisa.tensor_copy_predicated(dst=tile, src=other, predicate=predicate, reverse_pred=reverse)
        nisa.dma_copy(dst=out, src=tile[:, 0:kept])
        return out

    if kept == 13:
        finding = refused(kernel, X, choice)
        assert finding.rule == "NK401"
        assert "came from `scratch` made at line" in finding.message
        return
    with nkitools.allow_findings("NK513", reason="half of the columns are not read"):
        output, findings = done(kernel, X, choice)
    assert findings == []
    chosen = (choice == 0) if reverse else (choice != 0)
    np.testing.assert_array_equal(output, np.where(chosen, X[:, 16:28] if by == "tile" else np.float32(5), X[:, :12]))


def test_the_report_stands_where_undefined_elements_were_first_used() -> None:
    """At the matmul that adds padding that was never set, which the copy into the result only takes along."""

    @nki.jit
    def kernel(x: Any, w: Any) -> Any:
        out = nl.ndarray((32, 12), dtype=nl.float32, buffer=nl.shared_hbm)
        filters, padded = nl.load(w), nl.ndarray((64, 14), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=padded[:, 1:13], src=x)
        total = nl.ndarray((32, 12), dtype=nl.float32, buffer=nl.psum)
        for tap in range(3):
            weights, window = filters[:, tap * 32 : tap * 32 + 32], padded[:, tap : tap + 12]
            nisa.nc_matmul(dst=total, stationary=weights, moving=window)  # add
        result = nl.ndarray((32, 12), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=result, op=nl.relu, data=total)
        nisa.dma_copy(dst=out, src=result)
        return out

    finding = refused(kernel, X[:64, :12].copy(), np.tile(X[:64], (1, 2))[:, :96].copy())
    assert (finding.rule, finding.line) == ("NK401", line_of("add"))
    assert finding.message.startswith("nc_matmul: 64 of 768 elements of tensor `padded`")
    assert "64 of 384 elements of tensor `result`" in finding.message


def test_undefined_elements_that_decide_nothing_are_not_told() -> None:
    """A sum of defined and undefined elements that no result takes."""

    @nki.jit
    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.shared_hbm)
        tile, total = nl.load(x), nl.ndarray((128, 2), dtype=x.dtype, buffer=nl.sbuf)
        part = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(dst=part[:, 0:60], src=tile[:, 0:60])
        for column, each in enumerate((part, tile)):
            nisa.tensor_reduce(dst=total[:, column : column + 1], op=nl.add, data=each, axis=1)
        nisa.dma_copy(dst=out, src=total[:, 1:2])
        return out

    output, findings = done(kernel, X)
    assert findings == []
    np.testing.assert_allclose(output, X.sum(1, keepdims=True), rtol=1e-4, atol=1e-5)


# --- nonzero_with_count -----------------------------------------------------------------------------------------------


def counted(x: np.ndarray) -> np.ndarray:
    """The indices of what is not zero in a row, -1 for the rest, and the count."""
    (found,) = np.nonzero(x)
    return np.array([*found, *[-1] * (x.size - found.size), found.size], np.int32)


def test_partitions_that_the_instruction_does_not_use_may_be_undefined() -> None:
    """Only partition 0 of the source is loaded, and only partition 0 of the destination is copied out."""

    @nki.jit
    def kernel(x: Any) -> Any:
        out = nl.ndarray((1, 17), dtype=nl.int32, buffer=nl.shared_hbm)
        tile = nl.ndarray((128, 16), dtype=x.dtype, buffer=nl.sbuf)
        found = nl.ndarray((128, 17), dtype=nl.int32, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile[0:1, :], src=x)
        nisa.nonzero_with_count(dst=found, src=tile, index_offset=0, padding_val=-1)
        nisa.dma_copy(dst=out, src=found[0:1, :])
        return out

    x = np.array([[0, 1, 1, 0, 0, 5, 0, 0] * 2], np.float32)
    output, findings = done(kernel, x, chip="trn2")
    assert findings == []
    np.testing.assert_array_equal(output[0], counted(x[0]))


def test_what_an_instruction_does_not_modify_may_be_copied_out() -> None:
    """NK621 at the copy into the result; what the instruction wrote is right. After an addition it is NK401."""

    def kernel(added: bool) -> Any:
        @nki.jit
        def found_in(x: Any) -> Any:
            out = nl.ndarray((32, 9), dtype=nl.int32, buffer=nl.shared_hbm)
            found = nl.ndarray((32, 9), dtype=nl.int32, buffer=nl.sbuf)
            nisa.nonzero_with_count(dst=found, src=nl.load(x), index_offset=0, padding_val=-1)
            copied = nl.ndarray((32, 9), dtype=nl.int32, buffer=nl.sbuf)
            if added:
                nisa.tensor_scalar(dst=copied, data=found, op0=nl.add, operand0=1)
            else:
                nisa.tensor_copy(dst=copied, src=found)
            nisa.dma_copy(dst=out, src=copied)
            return out

        return found_in

    x = (np.arange(32 * 8).reshape(32, 8) % 3).astype(np.float32)
    output, findings = done(kernel(False), x, chip="trn2")
    assert [(each.rule, each.severity) for each in findings] == [("NK621", "hint")]
    for row in (0, 16):
        np.testing.assert_array_equal(output[row], counted(x[row]))
    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(kernel(True), x, chip="trn2")
    assert caught.value.finding.rule == "NK401"
