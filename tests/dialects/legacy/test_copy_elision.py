"""What an assignment leaves in the record: the instruction that the chip runs, not a copy beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
import pytest

import nkitools
from nkitools.record.watch.watching import watching
from tests.dialects.legacy.running import random, refusal, run


def instructions(done: Any) -> list[tuple[str, list[tuple[str, str]]]]:
    """Name of each instruction, and tensor and memory of each operand."""
    return [(each.name, [(o.tensor, o.memory) for o in each.operands]) for each in done.instructions]


def test_a_load_is_one_dma_into_the_tile() -> None:
    """``tile[...] = nl.load(x)`` is recorded as a DMA whose destination is the tile."""

    def kernel(x: Any) -> Any:
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray(x.shape, dtype=x.dtype)
        tile[:, 0:4] = nl.load(x[:, 0:4])
        tile[:, 4:8] = nl.load(x[:, 4:8])
        nl.store(result, tile)
        return result

    x = random(8, 8)
    done = run(kernel, x)
    np.testing.assert_array_equal(done.outputs, x)
    assert instructions(done) == [
        ("dma_copy", [("tile", "SBUF"), ("x", "HBM")]),
        ("dma_copy", [("tile", "SBUF"), ("x", "HBM")]),
        ("dma_copy", [("result", "shared HBM"), ("tile", "SBUF")]),
    ]
    assert [each.operands[0].byte_offset for each in done.instructions] == [0, 16, 0]


def test_an_instruction_with_two_results_writes_its_first_one_where_it_is_assigned() -> None:
    """``tile[...] = nisa.activation(..., reduce_res=sums)`` is one instruction, which writes to both tiles."""

    def kernel(x: Any) -> Any:
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        total = nl.ndarray((8, 1), dtype=nl.float32, buffer=nl.shared_hbm)
        tile = nl.ndarray((8, 32), dtype=x.dtype)
        sums = nl.ndarray((8, 1), dtype=nl.float32)
        tile[:, 16:32] = nisa.activation(
            nl.exp, nl.load(x[:, 0:16]), reduce_op=nl.add, reduce_res=sums, reduce_cmd=nisa.reduce_cmd.reset_reduce
        )
        tile[:, 0:16] = nisa.activation_reduce(nl.exp, nl.load(x[:, 16:32]), reduce_op=nl.add, reduce_res=sums)
        nl.store(result, tile)
        nl.store(total, sums)
        return result, total

    x = random(8, 32)
    done = run(kernel, x)
    expected = np.exp(np.roll(x, 16, axis=1))
    np.testing.assert_allclose(done.outputs[0], expected, rtol=1e-5)
    np.testing.assert_allclose(done.outputs[1][:, 0], np.exp(x[:, 16:]).sum(axis=1), rtol=1e-5)
    names = [each.name for each in done.instructions]
    assert "tensor_copy" not in names
    made = [each for each in done.instructions if each.engine == "scalar"]
    assert [[(o.tensor, o.byte_offset) for o in each.operands if o.written] for each in made] == [
        [("tile", 64), ("sums", 0)],
        [("tile", 0), ("sums", 0)],
    ]
    stored = [at for at, name in enumerate(names) if name == "dma_copy"][-2:]
    writers = [at for at, each in enumerate(done.instructions) if each.engine == "scalar"]
    assert [done.dependences.flow[at].tolist() for at in stored] == [writers, [writers[1]]]


def test_products_are_accumulating_matmuls() -> None:
    """``psum += nl.matmul(...)`` is one nc_matmul into psum an iteration, with its loop counter."""

    def kernel(x: Any) -> Any:
        result = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        total = nl.zeros((8, 8), dtype=nl.float32, buffer=nl.psum)
        for k in nl.affine_range(3):
            part = nl.load(x[nl.ds(k * 16, 16), :])
            total += nl.matmul(part, part, transpose_x=True)
        nl.store(result, total)
        return result

    x = random(48, 8)
    done = run(kernel, x)
    np.testing.assert_allclose(done.outputs, x.T @ x, rtol=1e-5)
    products = [each for each in done.instructions if each.engine == "tensor"]
    assert [(each.name, each.operands[0].tensor, each.loops) for each in products] == [
        ("nc_matmul", "total", {"k": k}) for k in range(3)
    ]
    assert [each.name for each in done.instructions].count("tensor_tensor") == 0


def test_a_copy_from_psum_to_sbuf_stays() -> None:
    """The Tensor Engine cannot write to SBUF: the copy out of PSUM is an instruction of its own."""

    def kernel(x: Any) -> Any:
        result = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        part = nl.load(x)
        tile = nl.ndarray((8, 8), dtype=nl.float32)
        tile[...] = nl.matmul(part, part, transpose_x=True)
        nl.store(result, tile)
        return result

    x = random(16, 8)
    done = run(kernel, x)
    np.testing.assert_allclose(done.outputs, x.T @ x, rtol=1e-5)
    assert [each.name for each in done.instructions] == ["dma_copy", "nc_matmul", "tensor_copy", "dma_copy"]


def test_a_value_that_is_used_before_is_copied() -> None:
    """Assigned later, a tile is copied as it is then."""

    def kernel(x: Any) -> Any:
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        value = nl.exp(nl.load(x))
        other = nl.exp(value)
        tile = nl.ndarray(x.shape, dtype=x.dtype)
        tile[...] = value
        tile += other
        nl.store(result, tile)
        return result

    x = random(8, 8)
    done = run(kernel, x)
    np.testing.assert_allclose(done.outputs, np.exp(x) + np.exp(np.exp(x)), rtol=1e-5)
    assert "tensor_copy" in [each.name for each in done.instructions]


def test_a_slice_of_a_value_is_copied() -> None:
    """A part of a value is not what the instruction wrote."""

    def kernel(x: Any) -> Any:
        result = nl.ndarray((8, 4), dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray((8, 4), dtype=x.dtype)
        tile[...] = nl.load(x)[:, 2:6]
        nl.store(result, tile)
        return result

    x = random(8, 8)
    done = run(kernel, x)
    np.testing.assert_array_equal(done.outputs, x[:, 2:6])
    assert [each.name for each in done.instructions] == ["dma_copy", "tensor_copy", "dma_copy"]


def test_a_value_is_rounded_to_its_own_dtype_first() -> None:
    """A call gives the dtype of its documentation, whatever tile the value is assigned to."""

    def kernel(x: Any) -> Any:
        result = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
        tile = nl.ndarray(x.shape, dtype=nl.float32)
        tile[...] = nl.exp(nl.load(x))
        nl.store(result, tile)
        return result

    x = random(8, 8, dtype=ml_dtypes.bfloat16)
    expected = np.exp(x.astype(np.float32)).astype(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_array_equal(run(kernel, x).outputs, expected)


def _half_written() -> Any:
    total = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.psum)
    total[0:8, 0:4] = 0
    return total


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (_half_written, "NK401"),
        (lambda: nl.zeros((8, 8), dtype=nl.bfloat16, buffer=nl.psum), "NK303"),
        (lambda: nl.zeros((8, 600), dtype=nl.float32, buffer=nl.psum)[:, 510:518], "NK106"),
    ],
)
def test_where_products_cannot_accumulate(make: Any, rule: str) -> None:
    """Written in part, of a narrow dtype, or across two banks: PSUM cannot accumulate there."""

    def kernel(x: Any) -> None:
        part = nl.load(x)
        total = make()
        total += nl.matmul(part, part, transpose_x=True)

    assert refusal(kernel, random(16, 8), chip="trn2").rule == rule


# --- what closes an open instruction ---------------------------------------------------------------------------------


def test_a_print_closes_the_instruction_and_changes_no_result() -> None:
    """A print before the assignment of a value adds a copy; lanes that the mask has left out stay as before."""

    def kernel(x: Any, prints: bool) -> Any:
        result = nl.ndarray((8, 8), dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.zeros((8, 8), dtype=x.dtype)
        i, j = nl.mgrid[0:8, 0:8]
        value = nl.load(x[i, j], mask=j < 5)
        if prints:
            nl.device_print("first", value[0:8, 0:5])
        tile[i, j] = value
        nl.store(result, tile)
        return result

    x = random(8, 8)
    expected = x * (np.arange(8) < 5)
    plain, printed = run(kernel, x, prints=False), run(kernel, x, prints=True)
    np.testing.assert_array_equal(plain.outputs, expected)
    np.testing.assert_array_equal(printed.outputs, expected)
    assert [each.name for each in plain.instructions] == ["memset", "dma_copy", "dma_copy"]
    assert [each.name for each in printed.instructions] == ["memset", "dma_copy", "tensor_copy", "dma_copy"]
    assert [each.issued for each in printed.prints] == [2]


def test_an_open_instruction_is_in_the_record_of_a_kernel_that_fails() -> None:
    """The instruction of a value that nothing takes any more is recorded, with its own line and loop counters."""

    def kernel(x: Any) -> None:
        for i in nl.affine_range(2):
            nl.load(x[i : i + 1, :])
        raise ZeroDivisionError

    with watching(), pytest.raises(ZeroDivisionError), nkitools.collect_runs() as runs:
        run(kernel, random(2, 4))
    (done,) = runs
    assert [(each.name, each.loops) for each in done.instructions] == [("dma_copy", {"i": 0}), ("dma_copy", {"i": 1})]
    assert [each.loops for each in done.writes if each.position >= 0] == [{"i": 0}, {"i": 1}]


def test_a_value_that_a_helper_returns_is_written_by_the_helpers_line() -> None:
    """The instruction has the line of its call; a watch sees the line that called the helper, and the counter then."""

    def helper(x: Any) -> Any:
        return nl.exp(x)  # made here

    def kernel(x: Any) -> Any:
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        value = nl.load(x)
        for _turn in range(2):
            value = helper(value)  # called here
        nl.store(result, value)
        return result

    lines = {text.rpartition("# ")[2]: at for at, text in enumerate(Path(__file__).read_text().splitlines(), 1)}
    with watching():
        done = run(kernel, random(4, 4))
    made = [each for each in done.writes if each.instruction == "activation"]
    assert [(each.line, each.loops) for each in made] == [(lines["made here"], {"_turn": turn}) for turn in (0, 1)]
    assert {each.callers[0][1] for each in made} == {lines["called here"]}


@pytest.mark.parametrize("shape", [(8, 8), (8, 1)])
def test_partly_undefined_values_stay_undefined_where_they_are_assigned(shape: Any) -> None:
    """Lanes that were never loaded travel into the tile: its other lanes may be stored, these not."""

    def kernel(x: Any, wide: bool) -> Any:
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.zeros(x.shape, dtype=x.dtype)
        i, j = nl.mgrid[0 : x.shape[0], 0 : x.shape[1]]
        part = nl.load(x[i, j], mask=i < 5)
        tile[...] = nl.exp(part)
        nl.store(result[i, j], tile[i, j], mask=i < (8 if wide else 5))
        return result

    x = random(*shape)
    done = run(kernel, x, wide=False, rules="report")
    np.testing.assert_allclose(done.outputs[:5], np.exp(x[:5]), rtol=1e-5)
    assert refusal(kernel, x, wide=True).rule == "NK405"


def test_only_a_matmul_that_adds_is_made_of_what_was_there() -> None:
    """The first product overwrites, also a tile that was full, and `+=` adds: the element maps say so."""

    def kernel(a: Any, b: Any) -> Any:
        out = nl.ndarray((8, 4), dtype=nl.float32, buffer=nl.shared_hbm)
        left, right = nl.load(a), nl.load(b)
        psum = nl.zeros((8, 4), dtype=nl.float32, buffer=nl.psum)
        psum[...] = nl.matmul(left, right, transpose_x=True)
        psum += nl.matmul(left, right, transpose_x=True)
        nl.store(out, psum)
        return out

    done = run(kernel, np.ones((16, 8), np.float32), np.ones((16, 4), np.float32))
    np.testing.assert_array_equal(done.outputs, np.full((8, 4), 32, np.float32))
    plans = [done.record.plan_at(position) for position in range(done.record.count)]
    products = [plan for plan in plans if plan.name == "nc_matmul"]
    operands = [[source.operand for source, _ in plan.elements.of("dst")] for plan in products]
    assert operands == [["stationary", "moving"], ["stationary", "moving", "dst"]]
    assert [plan.overwrites for plan in products] == [True, False]
