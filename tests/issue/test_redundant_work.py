"""Programs that do the same work, as production kernels let both cores do."""

from __future__ import annotations

from typing import Any

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

import nkitools
from tests.issue.outcomes import done, refused

X = np.random.default_rng(7).standard_normal((128, 64)).astype(np.float32)


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

    assert refused(kernel, X).rule == "NK403"


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
