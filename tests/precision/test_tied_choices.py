"""Choices that flip under rounding are left out and counted, where the tie is the reference's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
from click.testing import CliRunner

from nkitools.cli import main
from nkitools.comparison.rule import Rule
from nkitools.precision.judgement import judged
from nkitools.precision.tied_choices import TiedChoices
from nkitools.pytest_plugin.reference_check import TiedChoicesWarning
from nkitools.record.explained_errors import ExplainedError
from nkitools.sweeps.checked_call import Case, CheckedCall
from nkitools.sweeps.local_engine import InProcess
from nkitools.sweeps.sweep import run_cases

RANDOM = np.random.default_rng(5)


def hot(x: Any, scale: Any = 1.0) -> Any:
    """1 where a product is the largest of its row, else 0."""
    product = x * scale
    return (product == product.max(axis=1, keepdims=True)).astype(np.float32)


def tied() -> Any:
    """Rows of 512 numbers, whose largest is nearly there twice in some."""
    x = RANDOM.uniform(0, 1, (64, 512)).astype(np.float32)
    for row in range(3):
        x[row, 7] = 2.0
        x[row, 300] = np.nextafter(np.float32(2.0), np.float32(3.0)) if row else 2.0
    return x


def flipped(expected: Any, *rows: int) -> Any:
    other = expected.copy()
    for row in rows:
        other[row, 7], other[row, 300] = 1 - other[row, 7], 1 - other[row, 300]
    return other


def verdict(actual: Any, x: Any, in_float64: Any = None) -> Any:
    """The verdict on an output; the kernel in float64 has the reference's values where no others are given."""
    right = hot(x) if in_float64 is None else in_float64
    error = ExplainedError("output", "float32", 0.0, 0.0, 0.0, (0, 0), np.float64(right), np.zeros(right.shape))
    others = TiedChoices(hot, (x,), {})
    return judged("output", actual, hot(x), Rule(), lambda: error, others=lambda off: others.of(0, off))


def test_an_element_that_is_right_under_another_choice_is_left_out() -> None:
    """It is counted, and the place of the first one is said."""
    x = tied()
    found = verdict(flipped(hot(x), 1), x)
    assert (found.outcome, found.left_out) == ("pass", 2)
    assert "2 of 32768 elements are left out, the first at [1, 7]" in found.why
    assert verdict(hot(x), x).left_out == 0


def test_what_is_right_under_no_choice_is_wrong() -> None:
    """Another element, another value, and both where there is no tie."""
    x = tied()
    other = flipped(hot(x), 1)
    other[10, 7] = 1
    assert verdict(other, x).outcome == "wrong"
    assert verdict(1.5 * flipped(hot(x), 1), x).outcome == "wrong"
    apart = x.copy()
    apart[1, 300] = 2.001
    assert verdict(flipped(hot(apart), 1), apart).outcome == "wrong"


def test_what_the_kernel_has_in_float64_too_is_no_rounding() -> None:
    """``>`` in the place of ``>=`` is wrong at exact values, which no rounding has moved."""
    x = tied()
    wrong = flipped(hot(x), 1)
    assert verdict(wrong, x, in_float64=wrong).outcome == "wrong"


@pytest.mark.parametrize(("row", "outcome"), [(0, "wrong"), (1, "pass")])
def test_without_a_run_in_float64_equal_values_are_no_tie(row: int, outcome: str) -> None:
    """Row 0 has its largest number twice, row 1 two that are closer than float32 rounds."""
    x = tied()
    others = TiedChoices(hot, (x,), {})
    assert (
        judged("output", flipped(hot(x), row), hot(x), Rule(), others=lambda off: others.of(0, off)).outcome == outcome
    )
    assert judged("output", flipped(hot(x), row), hot(x), Rule()).outcome == "wrong"


def test_more_than_a_hundredth_is_wrong() -> None:
    """Many choices do not flip by rounding."""
    x = np.full((8, 4), 2, np.float32)
    assert verdict(np.eye(8, 4, dtype=np.float32), x).outcome == "wrong"


@nki.jit
def last_largest(x: Any) -> Any:
    """1 where an element is the largest of its row, after a sum that in float32 loses its last digits."""
    tile = nl.load(x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=2.0)
    peak = nl.ndarray((x.shape[0], 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=peak, op=nl.maximum, data=tile, axis=1)
    result = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=result, data=tile, op0=nl.equal, operand0=peak)
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=result)
    return out


def test_run_kernel_shows_what_it_has_left_out(run_kernel: Any) -> None:
    """As a warning; with a stated tolerance nothing is left out."""
    x = tied()
    x[0, 300] = 1.0
    with pytest.warns(TiedChoicesWarning, match="elements are left out"):
        run_kernel(last_largest, x, reference=hot)
    with pytest.raises(AssertionError, match="elements differ"):
        run_kernel(last_largest, x, reference=hot, rtol=1e-6)


@nki.jit
def above(x: Any) -> Any:
    """1 where an element is larger than 128: a mistake, if those that are equal should be 1 too."""
    tile = nl.load(x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.greater, operand0=128.0)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


def test_a_wrong_comparison_of_exact_values_is_no_tie(run_kernel: Any) -> None:
    """Of whole numbers in float32 some are equal to the limit; nothing has rounded them."""
    x = RANDOM.integers(0, 256, (128, 256)).astype(np.float32)
    assert 0 < (x == 128).mean() < 0.01
    with pytest.raises(AssertionError, match=f"{np.count_nonzero(x == 128)} of 32768 elements differ"):
        run_kernel(above, x, reference=lambda x: (x >= 128).astype(np.float32))


def tied_arguments() -> Any:
    x = tied()
    x[0, 300] = 1.0
    return (x,)


def test_a_sweep_counts_what_it_has_left_out(tmp_path: Path) -> None:
    """In the row, in the sentence of the sweep, in its report and page; the error is that of the other elements."""
    call = CheckedCall(last_largest, "nki", tied_arguments, hot)
    found = run_cases(call, [Case({}, "trn2")], InProcess(), tmp_path / "s.db")
    (row,) = found.rows
    assert (row["outcome"], row["left_out"], row["max_error"], row["low_precision"]) == ("pass", 2, 0.0, 0.0)
    said = "2 elements left out of comparisons, in 1 of the cases (tied choices)"
    assert str(found) == f"last_largest: 1 case: 1 pass; {said}"
    report = CliRunner().invoke(main, ["sweep", "report", str(tmp_path / "s.db"), "--page", str(tmp_path / "s.html")])
    assert said in report.output.splitlines()
    assert said in (tmp_path / "s.html").read_text()
    (plain,) = json.loads(CliRunner().invoke(main, ["sweep", "report", str(tmp_path / "s.db"), "--json"]).output)
    assert plain["left_out"] == said
    (stated,) = run_cases(
        CheckedCall(last_largest, "nki", tied_arguments, hot, 1e-6), [Case({}, "trn2")], InProcess()
    ).rows
    assert (stated["outcome"], stated["left_out"], stated["max_error"]) == ("wrong", 0, 1.0)
