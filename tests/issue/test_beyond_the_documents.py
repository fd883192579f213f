"""Forms of modern kernels that production kernels use and the documents exclude: computed, with NK621 or NK508."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

import nkitools
from nkitools.rules.finding import Finding

X = np.random.default_rng(7).standard_normal((128, 64)).astype(np.float32)


def done(kernel: Any, *args: Any, **kwargs: Any) -> tuple[Any, list[Finding]]:
    """The outputs of a run and its findings, without the hints about speed."""
    run = nkitools.simulate(kernel, *args, **kwargs)
    return run.outputs, [each for each in run.findings if not each.rule.startswith("NK7")]


# --- undefined lanes travel ------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("reduces", [False, True])
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


def _left(kernel: Any) -> Finding:
    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(kernel, X)
    return caught.value.finding


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

    finding = _left(kernel)
    assert finding.rule == "NK401"
    assert "1792 of 8192 elements of tensor `result`" in finding.message
    assert "undefined elements came from `half` made at line" in finding.message


# --- nonzero_with_count ----------------------------------------------------------------------------------------------


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


# --- forms that documents exclude ------------------------------------------------------------------------------------


def test_the_vector_engine_transposes_large_tiles() -> None:
    """All of the tile, with NK621 at each line."""

    @nki.jit
    def kernel(x: Any) -> Any:
        out = nl.ndarray((64, 128), dtype=x.dtype, buffer=nl.shared_hbm)
        turned = nl.ndarray((64, 128), dtype=x.dtype, buffer=nl.sbuf)
        nisa.nc_transpose(dst=turned, data=nl.load(x), engine=nisa.engine.vector)
        nisa.dma_copy(dst=out, src=turned)
        return out

    for _ in range(2):
        output, findings = done(kernel, X)
        assert [each.rule for each in findings] == ["NK621"]
        np.testing.assert_array_equal(output, X.T)


def test_a_dma_transposes_without_generated_descriptors() -> None:
    """dge_mode=none of a direct source is NK621."""

    @nki.jit
    def kernel(x: Any) -> Any:
        out = nl.ndarray((64, 128), dtype=x.dtype, buffer=nl.shared_hbm)
        turned = nl.ndarray((64, 128), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_transpose(dst=turned, src=x, dge_mode=nisa.dge_mode.none)
        nisa.dma_copy(dst=out, src=turned)
        return out

    output, findings = done(kernel, X)
    assert [each.rule for each in findings] == ["NK621"]
    np.testing.assert_array_equal(output, X.T)


def test_a_mode_of_matmuls_may_be_a_string() -> None:
    """perf_mode="double_row" is NK621 at each line, and multiplies as the member of the enum does."""

    @nki.jit
    def kernel(x: Any, y: Any, mode: Any) -> Any:
        out = nl.ndarray((16, 24), dtype=nl.float32, buffer=nl.shared_hbm)
        sums = nl.ndarray((16, 24), dtype=nl.float32, buffer=nl.psum)
        left, right = nl.load(x), nl.load(y)
        for turn in range(3):
            nisa.nc_matmul(dst=sums, stationary=left, moving=right, perf_mode=mode, accumulate=turn > 0)
        nl.store(out, nl.copy(sums))
        return out

    rng = np.random.default_rng(2)
    x, y = (rng.integers(-4, 5, (32, 2, width)).astype(ml_dtypes.float8_e4m3) for width in (16, 24))
    for mode, rules in (("double_row", ["NK621"]), (nisa.matmul_perf_mode.double_row, [])):
        output, findings = done(kernel, x, y, mode)
        assert sorted({each.rule for each in findings}) == rules
        rows = (each.astype(np.float32).reshape(64, -1) for each in (x, y))
        np.testing.assert_array_equal(output, 3 * (next(rows).T @ next(rows)))


def test_an_argument_that_was_given_is_true() -> None:
    """Under both versions, with NK621, also where the kernel made it; a slice of it and a tile are NK602."""

    @nki.jit
    def kernel(x: Any, part: str) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        asked = {"whole": x, "made": out, "slice": x[0:1, :], "tile": tile}[part]
        if asked:
            nisa.dma_copy(dst=out, src=tile)
        return out

    for version in ("0.6", "0.7"):
        for part in ("whole", "made"):
            output, findings = done(kernel, X, part, nki_version=version)
            assert [each.rule for each in findings] == ["NK621"]
            np.testing.assert_array_equal(output, X)
        for part in ("slice", "tile"):
            with pytest.raises(nkitools.KernelError) as caught:
                nkitools.simulate(kernel, X, part, nki_version=version)
            assert caught.value.finding.rule == "NK602"


def test_probabilities_above_one_drop_everything() -> None:
    """NK621, as AWS's own test passes them; a negative one is NK609."""

    @nki.jit
    def kernel(x: Any, prob: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        kept = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.dropout(dst=kept, data=nl.load(x), prob=nl.load(prob))
        nisa.dma_copy(dst=out, src=kept)
        return out

    prob = np.array([[0.0], [57.5]] * 64, np.float32)
    output, findings = done(kernel, X, prob)
    assert [each.rule for each in findings] == ["NK621"]
    np.testing.assert_array_equal(output, np.where(prob == 0, X, 0))
    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(kernel, X, -prob)
    assert caught.value.finding.rule == "NK609"


# --- fences ----------------------------------------------------------------------------------------------------------


def test_both_cores_may_copy_a_result_onto_itself() -> None:
    """Each core writes its half and then copies all of the result onto itself: NK508, no NK401 and no NK502."""

    @nki.jit
    def kernel(x: Any) -> Any:
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        mine = nl.ds(64 * nl.program_id(0), 64)
        tile = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[mine, :])
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(dst=result[mine, :], src=tile)
        nisa.dma_copy(dst=result, src=result)
        return result

    output, findings = done(kernel[2], X, chip="trn2")
    assert [(each.rule, each.severity) for each in findings] == [("NK508", "hint")]
    assert "copies tensor `result`" in findings[0].message
    np.testing.assert_array_equal(output, X * 2)


def test_a_half_that_no_core_writes_stays_unwritten() -> None:
    """A fence writes nothing: what was never written is found in the result (NK403)."""

    @nki.jit
    def kernel(x: Any) -> Any:
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=result[0:64, :], src=x[0:64, :])
        nisa.dma_copy(dst=result, src=result)
        return result

    assert _left(kernel).rule == "NK403"


@pytest.mark.parametrize("sums", [False, True])
@pytest.mark.parametrize("row", [8, 3])
def test_padding_of_several_programs_may_meet_in_a_last_row(row: int, *, sums: bool) -> None:
    """Both programs scatter their fourth row into one row: NK508 for the last row, NK502 for another one.

    So do sums, for which each program first gathers the rows that it has scattered before.
    """

    @nki.jit
    def kernel(x: Any, rows: Any) -> Any:
        out = nl.ndarray((9, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        mine = nl.ds(4 * nl.program_id(0), 4)
        tile = nl.ndarray((4, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[mine, :])
        index = nl.ndarray((4, 1), dtype=nl.int32, buffer=nl.sbuf)
        nisa.dma_copy(dst=index, src=rows[mine, :])
        nisa.dma_copy(dst=out.vector_select(0, index), src=tile)
        if sums:
            earlier = nl.ndarray((4, 64), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=earlier, src=out.vector_select(0, index))
            nisa.tensor_tensor(dst=tile, data1=tile, data2=earlier, op=nl.add)
            nisa.dma_copy(dst=out.vector_select(0, index), src=tile)
        return out

    rows = np.array([[0], [1], [2], [row], [4], [5], [6], [row]], np.int32)
    run = nkitools.simulate(kernel[2], X[:8], rows, chip="trn2", rules="report")
    found = {each.rule for each in run.findings if each.rule != "NK403" and not each.rule.startswith("NK7")}
    assert found == {"NK508" if row == 8 else "NK502"}
    where = [0, 1, 2, 4, 5, 6]
    np.testing.assert_array_equal(run.outputs[where], (1 + sums) * X[where])


def test_a_last_row_that_one_program_reads_is_no_padding() -> None:
    """NK502: program 1 gathers what program 0 scatters into the last row, and scatters nothing itself."""

    @nki.jit
    def kernel(x: Any, rows: Any) -> Any:
        out = nl.ndarray((9, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x[0:4, :])
        index = nl.load(rows)
        if nl.program_id(0) == 0:
            nisa.dma_copy(dst=out.vector_select(0, index), src=tile)
        else:
            nisa.dma_copy(dst=tile, src=out.vector_select(0, index))
        return out

    rows = np.array([[8], [8], [8], [8]], np.int32)
    with nkitools.allow_findings("NK403", "NK505", "NK509", reason="four entries name one row of nine"):
        run = nkitools.simulate(kernel[2], X[:8], rows, chip="trn2", rules="report")
    assert {each.rule for each in run.findings if not each.rule.startswith("NK7")} == {"NK502"}


@pytest.mark.parametrize("differs", [False, True])
def test_programs_that_scatter_the_same_values_do_redundant_work(*, differs: bool) -> None:
    """Both programs fill a table with zeros and scatter into it: NK508; with other values NK502."""

    @nki.jit
    def kernel(x: Any, rows: Any) -> Any:
        out = nl.ndarray((16, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        index, tile = nl.load(rows), nl.load(x)
        if differs:
            nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=float(nl.program_id(0)))
        for part in range(2):
            nisa.dma_copy(dst=out[8 * part : 8 * part + 8, :], src=nl.zeros((8, 64), x.dtype))
            nisa.dma_copy(dst=out.vector_select(0, index[:, part : part + 1]), src=tile)
        return out

    rows = np.array([[5, 9], [2, 8], [7, 14], [0, 11]], np.int32)
    run = nkitools.simulate(kernel[2], X[:4], rows, chip="trn2", rules="report")
    found = {each.rule for each in run.findings if not each.rule.startswith("NK7")}
    assert found == ({"NK502", "NK508"} if differs else {"NK508"})
    if not differs:
        expected = np.zeros((16, 64), np.float32)
        expected[rows] = X[:4, None]
        np.testing.assert_array_equal(run.outputs, expected)
