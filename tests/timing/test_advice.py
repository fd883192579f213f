"""Hints with a price: what the estimate would save, and never below a twentieth of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

import nkitools
from nkitools.pytest_plugin.benchmarks import estimated
from nkitools.report.estimate_text import estimate_text, us
from nkitools.rules.catalogue import RULES
from nkitools.timing.what_if import covered_ns
from tests.history.test_races import line_of
from tests.timing.test_estimate import product_run


@nki.jit
def scaled(x: Any, w: Any) -> Any:
    """Return x * w, where w is loaded again for each block of x."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for n in range(x.shape[1] // w.shape[1]):
        tile = nl.ndarray(w.shape, dtype=x.dtype, buffer=nl.sbuf)
        weight = nl.ndarray(w.shape, dtype=w.dtype, buffer=nl.sbuf)
        columns = nl.ds(n * w.shape[1], w.shape[1])
        nisa.dma_copy(dst=tile, src=x[:, columns])
        nisa.dma_copy(dst=weight, src=w)  # again
        nisa.tensor_tensor(dst=tile, data1=tile, data2=weight, op=nl.multiply)
        nisa.dma_copy(dst=out[:, columns], src=tile)
    return out


@nki.jit
def scaled_once(x: Any, w: Any) -> Any:
    """Return the same, with w loaded once."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    weight = nl.ndarray(w.shape, dtype=w.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=weight, src=w)
    for n in range(x.shape[1] // w.shape[1]):
        tile = nl.ndarray(w.shape, dtype=x.dtype, buffer=nl.sbuf)
        columns = nl.ds(n * w.shape[1], w.shape[1])
        nisa.dma_copy(dst=tile, src=x[:, columns])
        nisa.tensor_tensor(dst=tile, data1=tile, data2=weight, op=nl.multiply)
        nisa.dma_copy(dst=out[:, columns], src=tile)
    return out


@nki.jit
def squared(a: Any, b: Any) -> Any:
    """Return a.T @ b many times, in float32."""
    left = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    right = nl.ndarray(b.shape, dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=a)
    nisa.dma_copy(dst=right, src=b)
    total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    for k in range(64):
        nisa.nc_matmul(dst=total, stationary=left, moving=right, accumulate=k > 0)  # in float32
    result = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=total)
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=result)
    return out


ARRAYS = np.ones((128, 8 * 2048), np.float32), np.ones((128, 2048), np.float32)


def test_the_price_of_a_reload_is_what_the_mended_kernel_saves() -> None:
    """Within a fifth of the difference between the estimates of both kernels."""
    before = nkitools.simulate(scaled, *ARRAYS, chip="trn2").estimate()
    after = nkitools.simulate(scaled_once, *ARRAYS, chip="trn2").estimate()
    (hint,) = before.advice
    assert (hint.rule, hint.file, hint.line) == ("NK705", __file__, line_of(scaled, "# again"))
    assert hint.us == pytest.approx(before.latency_us - after.latency_us, rel=0.2)
    assert hint.share == pytest.approx(hint.us / before.latency_us)
    assert hint.message.startswith("7 of this line's 8 loads of `w`")
    assert hint.remedy == RULES["NK705"].remedy
    assert "NK705" not in {each.rule for each in after.advice}


def test_a_hint_of_a_plain_run_has_its_price_without_that_run_s_threshold() -> None:
    """64 matmuls of float32, too few for NK703 in a run, cost three of their four passes."""
    run = nkitools.simulate(squared, np.ones((128, 128), np.float32), np.ones((128, 512), np.float32), chip="trn2")
    assert not run.findings
    found = run.estimate()
    (hint,) = [each for each in found.advice if each.rule == "NK703"]
    (tensor,) = [use for use in found.engines if use.engine == "tensor"]
    assert hint.line == line_of(squared, "# in float32")
    assert hint.us == pytest.approx(0.75 * tensor.busy_us, rel=0.05)  # the slow clock lasts a window in both


def test_advice_is_sorted_stands_on_the_page_and_in_the_plain_form() -> None:
    """The largest price first, with remedies; none below a twentieth."""
    found = product_run(1024).estimate()
    assert found.advice
    prices = [each.us for each in found.advice]
    assert prices == sorted(prices, reverse=True)
    assert all(each.share >= 0.05 for each in found.advice)
    page = estimate_text(found)
    assert all(f"{each.rule} up to" in page and each.remedy in page for each in found.advice)
    assert list(found.as_plain()["advice"]) == [asdict(each) for each in found.advice]


def test_covered_time_counts_no_moment_twice() -> None:
    """Of intervals that touch, lie inside of each other and stand apart."""
    starts, ends = np.array([5.0, 0.0, 1.0, 20.0]), np.array([10.0, 4.0, 2.0, 21.0])
    assert covered_ns(starts, ends) == 4 + 5 + 1
    assert covered_ns(starts[:0], ends[:0]) == 0


def test_the_reason_of_a_skipped_benchmark_has_the_estimate() -> None:
    """With its band, for the chip of the call or the options; what cannot be simulated says why, nothing is raised."""
    found = nkitools.simulate(scaled_once, *ARRAYS, chip="trn1").estimate()
    text = estimated(scaled_once, ARRAYS, {"chip": "trn1"})
    assert text == f"estimated {us(found.latency_us)} on trn1 ({us(found.lower_us)} to {us(found.upper_us)})"
    with nkitools.facts.options.override(chip="trn1"), nkitools.collect_runs() as runs:
        assert estimated(scaled_once, ARRAYS, {}) == text
    assert not runs
    assert estimated(scaled_once, ARRAYS[:1], {}).startswith("it could not be estimated: ")
