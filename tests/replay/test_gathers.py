"""Gathers in replays: the rows that this run's data choose, in the results and in the record."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.replay.kept_lists import KEPT
from tests.replay.test_kernels import assert_same

nkitools.install_stand_in(prefer="builtin")

import nki  # noqa: E402
import nki.isa as nisa  # noqa: E402
import nki.language as nl  # noqa: E402

from kernels.nki.gather_scatter import gather_rows  # noqa: E402

ROWS, WIDTH, COUNT = 40, 8, 200
FIRST, RECORDED = "it is the first run of this form", "this run is recorded"
LOOKED_AT = "its values call for a look at them"


def drawn(seed: int, count: int = COUNT) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    table, indices = random.standard_normal((ROWS, WIDTH), np.float32), random.integers(0, ROWS, count)
    return table, indices.astype(np.int32)


def rows_of(table: Any, index: Any) -> Any:
    return table.ap(pattern=[[WIDTH, index.shape[0]], [1, WIDTH]], vector_offset=index, indirect_dim=0)


def recorded(kernel: Any, *arguments: Any, **settings: Any) -> None:
    """Run a kernel until it is replayed."""
    for _ in range(2):
        nkitools.simulate(kernel, *arguments, **settings)


def test_gathers_one_after_the_other_are_one_step() -> None:
    """The last one has fewer rows, and the zeros under each of them are not made."""
    table, indices = drawn(0)
    recorded(gather_rows, table, indices)
    (form,) = KEPT.forms.values()
    assert form.recorded is not None
    assert [step.kind for step in form.recorded.steps.steps] == ["gather"]
    table, indices = drawn(1)
    run = nkitools.simulate(gather_rows, table, indices)
    assert run.replayed.done
    np.testing.assert_array_equal(run.outputs, table[indices])


def test_each_run_keeps_the_rows_that_its_data_chose() -> None:
    """Asked for after other runs, too."""
    runs = [nkitools.simulate(gather_rows, *drawn(seed)) for seed in range(5)]
    assert [run.replayed.done for run in runs] == [False, False, True, True, True]
    for seed, run in enumerate(runs):
        assert_same(run, nkitools.simulate(gather_rows, *drawn(seed), replay="off"))


@pytest.mark.parametrize("wrong", [-1, ROWS, 2**31 - 1])
def test_an_index_out_of_bounds_leaves_the_run_to_the_kernel(wrong: int) -> None:
    """A gather that skips such a row runs in full; the next run is a replay again."""
    table, indices = drawn(0)
    recorded(gather_rows, table, indices)
    outside = indices.copy()
    outside[150] = wrong
    run = nkitools.simulate(gather_rows, table, outside)
    assert run.replayed.reason == LOOKED_AT
    assert not run.outputs[150].any()
    assert_same(run, nkitools.simulate(gather_rows, table, outside, replay="off"))
    assert nkitools.simulate(gather_rows, table, indices).replayed.done


def test_an_index_out_of_bounds_in_a_recorded_run_is_no_reason_for_later_ones() -> None:
    table, indices = drawn(0)
    outside = np.full_like(indices, ROWS)
    reasons = [nkitools.simulate(gather_rows, table, each).replayed.reason for each in (indices, outside, indices)]
    assert reasons == [FIRST, LOOKED_AT, RECORDED]
    assert nkitools.simulate(gather_rows, table, outside, replay="on").replayed.reason == LOOKED_AT
    assert nkitools.simulate(gather_rows, table, indices).replayed.done


@nki.jit
def strict(table: Any, indices: Any) -> Any:
    index = nl.load(indices)
    tile = nl.ndarray((indices.shape[0], WIDTH), dtype=table.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=rows_of(table, index))
    out = nl.ndarray(tile.shape, dtype=table.dtype, buffer=nl.shared_hbm)
    nl.store(out, tile)
    return out


def test_an_index_out_of_bounds_is_reported_at_its_line() -> None:
    table, indices = drawn(0, 16)
    recorded(strict, table, indices)
    indices[3] = ROWS
    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(strict, table, indices)
    with pytest.raises(nkitools.KernelError) as expected:
        nkitools.simulate(strict, table, indices, replay="off")
    assert caught.value.finding.rule == "NK402"
    assert caught.value.finding == expected.value.finding


@nki.jit
def of_its_own(table: Any, indices: Any) -> Any:
    """Gathers from a copy that two transfers have made, by indices that it computes, and adds the rows to ones."""
    half = ROWS // 2
    copied = nl.ndarray(table.shape, dtype=table.dtype, buffer=nl.private_hbm)
    for first in (0, half):
        nisa.dma_copy(dst=copied[first : first + half, :], src=table[first : first + half, :])
    out = nl.ndarray((indices.shape[0], WIDTH), dtype=nl.float32, buffer=nl.shared_hbm)
    index = nl.load(indices)
    tile = nl.ndarray((indices.shape[0], WIDTH), dtype=nl.float32, buffer=nl.sbuf)
    total = nl.ndarray(tile.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=total, value=1.0)
    for _ in range(3):
        nisa.dma_copy(dst=tile, src=rows_of(copied, index))
        nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)
        nisa.tensor_scalar(dst=index, data=index, op0=nl.bitwise_xor, operand0=1)
    nl.store(out, total)
    return out


def test_rows_of_memory_that_the_kernel_has_written_depend_on_its_writers() -> None:
    recorded(of_its_own, *drawn(0, 2))
    for seed in range(1, 5):
        table, indices = drawn(seed, 2)
        run = nkitools.simulate(of_its_own, table, indices)
        assert run.replayed.done
        assert_same(run, nkitools.simulate(of_its_own, table, indices, replay="off"))
        expected = np.float32(1) + table[indices] + table[indices ^ 1] + table[indices]
        np.testing.assert_allclose(run.outputs, expected, rtol=1e-6)


@nki.jit
def converted(table: Any, indices: Any) -> Any:
    """Gathers into another dtype, and adds the rows to themselves in a second gather."""
    index = nl.load(indices)
    tile = nl.ndarray((indices.shape[0], WIDTH), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=rows_of(table, index))
    nisa.dma_compute(dst=tile, srcs=[tile, rows_of(table, index)], reduce_op=nl.add)
    out = nl.ndarray(tile.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    nl.store(out, tile)
    return out


def test_gathers_that_compute_look_their_rows_up_too() -> None:
    table, indices = drawn(0, 8)
    recorded(converted, table, indices)
    for seed in range(1, 4):
        table, indices = drawn(seed, 8)
        run = nkitools.simulate(converted, table, indices)
        assert run.replayed.done
        assert_same(run, nkitools.simulate(converted, table, indices, replay="off"))
        np.testing.assert_allclose(run.outputs, 2 * table[indices], rtol=2**-7)
    indices[3] = -1
    run = nkitools.simulate(converted, table, indices, rules="report")
    assert not run.replayed.done
    assert {each.rule for each in run.findings} >= {"NK402"}


@nki.jit
def filled(x: Any) -> Any:
    """Copies into a half of a tile of ones, and into all of another one that is added to itself before."""
    whole, half = (nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf) for _ in range(2))
    nisa.memset(dst=whole, value=1.0)
    nisa.memset(dst=half, value=1.0)
    nisa.tensor_tensor(dst=half, data1=half, data2=whole, op=nl.add)
    nisa.dma_copy(dst=whole, src=x)
    nisa.dma_copy(dst=half[:, :4], src=x[:, :4])
    nisa.tensor_tensor(dst=whole, data1=half, data2=whole, op=nl.add)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, whole)
    return out


def test_a_fill_that_is_read_or_written_over_in_part_stays() -> None:
    x = drawn(0)[0]
    recorded(filled, x)
    run = nkitools.simulate(filled, x)
    assert run.replayed.done
    expected = x + 2
    expected[:, :4] = 2 * x[:, :4]
    np.testing.assert_array_equal(run.outputs, expected)


@nki.jit
def of_the_other_core(table: Any, indices: Any) -> Any:
    """Gathers on each core from a tensor in shared memory that core 0 has written."""
    shared = nl.ndarray(table.shape, dtype=table.dtype, buffer=nl.shared_hbm)
    out = nl.ndarray((2, indices.shape[0], WIDTH), dtype=nl.float32, buffer=nl.shared_hbm)
    if nl.program_id(0) == 0:
        nisa.dma_copy(dst=shared, src=table)
    index = nl.load(indices)
    tile = nl.ndarray((indices.shape[0], WIDTH), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=rows_of(shared, index))
    nl.store(out[nl.program_id(0)], tile)
    return out


def test_programs_that_gather_what_one_of_them_writes_are_looked_at_each_time() -> None:
    table, indices = drawn(0, 8)
    for _ in range(3):
        run = nkitools.simulate(of_the_other_core[2], table, indices, rules="report")
        assert not run.replayed.done
        assert_same(run, nkitools.simulate(of_the_other_core[2], table, indices, rules="report", replay="off"))
    assert {each.rule for each in run.findings} >= {"NK502"}


def test_the_record_names_the_rows_of_its_own_run() -> None:
    """Though it is looked at after the index has changed, and after another replay."""
    table, indices = drawn(0)
    recorded(gather_rows, table, indices)
    other = (np.arange(COUNT) % ROWS).astype(np.int32)
    mine, kept = other.copy(), []
    runs = [nkitools.simulate(gather_rows, table, mine)]
    mine[:] = 7
    runs.append(nkitools.simulate(gather_rows, table, mine))
    assert [each.replayed.done for each in runs] == [True, True]
    runs += [nkitools.simulate(gather_rows, table, index, replay="off") for index in (other, mine)]
    for run in runs:
        assert run.record is not None
        assert run.record is run.record
        kept.append([rows.tolist() for _, rows in run.record.beside.chosen.values()])
    assert kept[:2] == kept[2:]
