"""`run.why`: what an element was made of, with values, and where what went wrong entered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl

K, M, N = 512, 128, 64


def product(a: Any, b: Any) -> Any:
    out = nl.ndarray((M, N), nl.float32, buffer=nl.shared_hbm)
    total = nl.ndarray((M, N), nl.float32, buffer=nl.psum)
    for k in nl.affine_range(K // 128):
        at, bt = nl.ndarray((128, M), nl.float32, buffer=nl.sbuf), nl.ndarray((128, N), nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(at, a[k * 128 : (k + 1) * 128, :])
        nisa.dma_copy(bt, b[k * 128 : (k + 1) * 128, :])
        nisa.nc_matmul(total, at, bt)
    result = nl.ndarray((M, N), nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(result, total)
    nisa.dma_copy(out, result)
    return out


def numbers(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def line_of(kernel: Any, text: str) -> int:
    """The line of a kernel that has a text."""
    import inspect

    lines, first = inspect.getsourcelines(kernel)
    return first + next(at for at, line in enumerate(lines) if text in line)


def test_an_element_is_followed_to_the_arguments() -> None:
    """A product's element is made of a column of each argument; the values are those of the run."""
    a, b = numbers(K, M), numbers(K, N, seed=1)
    run = nkitools.simulate(product, a, b)
    found = run.why(0, (3, 17))
    assert found.positions.tolist() == list(range(14))
    assert [part.text() for part in found.arguments] == ["a[0:512, 3]", "b[0:512, 17]"]
    assert (found.constants, found.unwritten, found.without_values, found.is_exact) == ((), (), "", True)
    assert found.asked.values.tolist() == [run.outputs[3, 17]]
    last, copied, *others = found.steps
    assert (last.instruction.line, copied.instruction.line) == (
        line_of(product, "dma_copy(out"),
        line_of(product, "tensor_copy(result"),
    )
    first = others[-1]
    assert first.operands[0].values.tolist() == a[:128, 3].tolist()
    matmuls = [step for step in others if step.instruction.name == "nc_matmul"]
    assert [step.instruction.loops for step in matmuls] == [{"k": k} for k in (3, 2, 1, 0)]
    terms = np.concatenate([step.terms[:128] for step in matmuls[::-1]])
    np.testing.assert_allclose(terms, a[:, 3].astype(float) * b[:, 17].astype(float), rtol=1e-6)


def test_the_path_is_folded_over_its_loop_and_names_the_turn_that_brought_nan() -> None:
    """One line for each line of the kernel; the NaN is led back to the element of the argument that holds it."""
    a, b = numbers(K, M), numbers(K, N, seed=1)
    b[317, 5] = np.nan
    run = nkitools.simulate(product, a, b, rules="off")
    text = run.why(0, (3, 5)).text()
    assert len([line for line in text.splitlines() if "nc_matmul" in line]) == 1
    assert "nc_matmul (turns k=0..3) made total[3, 5]" in text
    assert "turn k=2 brought the nan from b[317, 5]" in text
    assert "argument: b[0:512, 5] (512 elements)" in text


def test_sums_show_their_largest_terms() -> None:
    """The largest terms over all turns, with the turn that brought them."""
    a, b = numbers(K, M), numbers(K, N, seed=1)
    a[200, 3] = 100
    text = nkitools.simulate(product, a, b).why(0, (3, 5)).text()
    assert f"a sum of 512 terms, the largest {100 * b[200, 5]:.4g} (number 72 of turn k=1)" in text


def marked(kernel: Any, *arrays: Any) -> list[tuple[str, tuple[str, ...]]]:
    """The instructions on the way of the first element of a kernel's result, and what their values show."""
    run = nkitools.simulate(kernel, *arrays, rules="off")
    return [(step.instruction.name, step.marks) for step in run.why(0, (0, 0)).steps if step.marks]


def of_one(compute: Any, dtype: Any = nl.float32) -> Any:
    """A kernel that computes a tile of another one."""

    def kernel(x: Any) -> Any:
        tile, made = nl.ndarray((4, 4), nl.float32, buffer=nl.sbuf), nl.ndarray((4, 4), dtype, buffer=nl.sbuf)
        out = nl.ndarray((4, 4), dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(tile, x)
        compute(made, tile)
        nisa.dma_copy(out, made)
        return out

    return kernel


def test_nan_and_infinity_are_marked_where_they_enter() -> None:
    """The instruction that made them of finite values, and no other one."""
    logarithm = of_one(lambda made, tile: nisa.activation(made, nl.log, tile))
    assert marked(logarithm, np.zeros((4, 4), np.float32)) == [("activation", ("infinity entered here",))]
    assert marked(logarithm, -np.ones((4, 4), np.float32)) == [("activation", ("NaN entered here",))]
    assert marked(logarithm, np.ones((4, 4), np.float32)) == []


def test_saturation_is_marked() -> None:
    """A value that its dtype cannot hold becomes the largest one that it can."""
    narrow = of_one(lambda made, tile: nisa.tensor_copy(made, tile), nl.int8)
    assert marked(narrow, np.full((4, 4), 300, np.float32)) == [("tensor_copy", ("saturated here",))]
    assert marked(narrow, np.full((4, 4), 100, np.float32)) == []


def test_cancellation_is_marked() -> None:
    """Large terms that leave little."""
    total = of_one(lambda made, tile: nisa.tensor_reduce(made[:, 0:1], nl.add, tile, 1))
    x = np.array([[1e6, -1e6, 0.5, 0]] * 4, np.float32)
    ((name, (mark,)),) = marked(total, x)
    assert name == "tensor_reduce"
    assert mark == "cancellation: terms of 2e+06 in all leave 0.5"


def doubled_in_place(x: Any) -> None:
    tile = nl.ndarray((4, 4), nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(tile, x)
    nisa.tensor_scalar(tile, tile, nl.multiply, 2.0)
    nisa.dma_copy(x, tile)


def test_values_are_those_of_the_arguments_as_they_were() -> None:
    """Neither what the kernel writes over nor a later change by the caller shows in the values."""
    x = np.ones((4, 4), np.float32)
    run = nkitools.simulate(doubled_in_place, x)
    x[...] = 7
    first = run.why("x", (1, 2)).steps[-1]
    assert (first.instruction.name, first.operands[0].values.tolist()) == ("dma_copy", [1.0])
    assert x.tolist() == np.full((4, 4), 7).tolist()  # a second run leaves the caller's arrays alone


def test_a_large_argument_that_has_changed_is_said() -> None:
    """Where the arguments are too large to be copied, a second run that gives other results has no values to show."""
    big = np.ones((128, 4096), np.float32)

    def kernel(x: Any) -> Any:
        tile, out = nl.ndarray((128, 4096), nl.float32), nl.ndarray((128, 4096), nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(tile, x)
        nisa.dma_copy(out, tile)
        return out

    run = nkitools.simulate(kernel, big)
    assert run.why(0, (3, 4)).asked.values.tolist() == [1.0]
    big[5, 5] = 2
    found = run.why(0, (3, 4))
    assert found.asked.values is None
    assert "an argument, or a result, has changed since" in found.without_values
    assert [part.text() for part in found.arguments] == ["x[3, 4]"]


def test_what_was_never_written_is_where_the_way_ends() -> None:
    """Memory that no instruction has written is an end of its own, with the elements."""

    def kernel(x: Any) -> Any:
        tile, out = nl.ndarray((4, 4), nl.float32), nl.ndarray((4, 4), nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(tile[:, 0:3], x[:, 0:3])
        nisa.dma_copy(out, tile)
        return out

    run = nkitools.simulate(kernel, np.ones((4, 4), np.float32), rules="report")
    found = run.why(0, (slice(1, 3), 3))
    assert [part.text() for part in found.unwritten] == ["tile[1:3, 3]"]
    assert found.arguments == ()


def test_a_gather_is_followed_by_its_index() -> None:
    """One row of the table, and the one element of the index that names it."""

    def kernel(table: Any, rows: Any) -> Any:
        index, tile = nl.ndarray((4, 1), nl.int32), nl.ndarray((4, 3), nl.float32)
        out = nl.ndarray((4, 3), nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(index, rows)
        nisa.dma_copy(tile, table.vector_select(0, index))
        nisa.dma_copy(out, tile)
        return out

    table, rows = numbers(8, 3), np.array([[6], [1], [3], [0]], np.int32)
    found = nkitools.simulate(kernel, table, rows).why(0, (2, 1))
    assert [part.text() for part in found.arguments] == ["table[3, 1]", "rows[2, 0]"]
    assert found.is_exact


@pytest.mark.parametrize(
    ("output", "index", "error", "text"),
    [
        (3, (0, 0), ValueError, "the run has 1 results, out"),
        ("nothing", (0, 0), ValueError, "no tensor of the run is called 'nothing'; its results are out"),
        (0, (128, 0), IndexError, r"index \[128, 0\] lies outside of the output, whose shape is \[128, 64\]"),
        (np.zeros(3), (0,), TypeError, "must be a result of the run"),
    ],
)
def test_what_is_not_there_is_said(output: Any, index: Any, error: Any, text: str) -> None:
    """Outputs and indices that the run does not have are refused."""
    run = nkitools.simulate(product, numbers(K, M), numbers(K, N))
    with pytest.raises(error, match=text):
        run.why(output, index)


def test_an_output_is_named_in_three_ways() -> None:
    """By its name, its number, or the array itself."""
    run = nkitools.simulate(product, numbers(K, M), numbers(K, N))
    slices = [run.why(output, (3, 17)) for output in ("out", 0, run.outputs)]
    assert len({found.text() for found in slices}) == 1


def test_a_second_run_is_no_run_of_the_author() -> None:
    """Collectors of runs and listeners for prints see the author's runs only."""

    def printing(x: Any) -> Any:
        tile, out = nl.ndarray((4, 4), nl.float32), nl.ndarray((4, 4), nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(tile, x)
        nl.device_print("tile", tile)
        nisa.dma_copy(out, tile)
        return out

    with nkitools.collect_runs() as runs, nkitools.capture_prints() as prints:
        run = nkitools.simulate(printing, np.ones((4, 4), np.float32))
        assert run.why(0, (0, 0)).asked.values.tolist() == [1.0]
    assert (len(runs), len(prints), len(run.prints)) == (1, 1, 1)


def small_tiles(a: Any, b: Any) -> Any:
    size, step = a.shape[0], 16
    out = nl.ndarray((size, size), nl.float32, buffer=nl.shared_hbm)
    for m in nl.affine_range(size // step):
        for n in nl.affine_range(size // step):
            total = nl.ndarray((step, step), nl.float32, buffer=nl.psum)
            for k in nl.affine_range(size // step):
                at, bt = nl.ndarray((step, step), nl.float32), nl.ndarray((step, step), nl.float32)
                nisa.dma_copy(at, a[k * step : (k + 1) * step, m * step : (m + 1) * step])
                nisa.dma_copy(bt, b[k * step : (k + 1) * step, n * step : (n + 1) * step])
                nisa.nc_matmul(total, at, bt)
            made = nl.ndarray((step, step), nl.float32)
            nisa.tensor_copy(made, total)
            nisa.dma_copy(out[m * step : (m + 1) * step, n * step : (n + 1) * step], made)
    return out
