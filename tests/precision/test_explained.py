"""``run.tolerance()``: the error of each output that a run's dtypes, sums and functions explain."""

from __future__ import annotations

from typing import Any

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

import nkitools
from nkitools.pytest_plugin.reference_check import Undecided
from tests.repair.mistakes import right_kernels
from tests.repair.mistakes.planted import MISTAKES
from tests.repair.mistakes.references import CASES


@pytest.mark.parametrize("name", CASES)
def test_other_orders_of_sums_are_explained(name: str) -> None:
    """What NumPy computes in float32, in its own order, lies within; a tenth of that is too little somewhere."""
    case = CASES[name]
    explained = nkitools.simulate(getattr(right_kernels, name), *case.inputs()).tolerance()
    np.testing.assert_allclose(case.reference(*case.inputs()), explained[0].right, explained.rtol, explained.atol)
    assert explained.sentences(explained.rtol, explained.atol) == []
    if name != "turned":  # which computes nothing
        assert "will flake" in explained[0].sentence(explained.rtol / 100, explained.atol / 100)
    (lost,) = explained.sentences(20 * explained.rtol, 20 * explained.atol)
    assert "would not see a lost tile" in lost


@pytest.mark.parametrize("number", range(0, len(MISTAKES), 7))
def test_mistakes_are_not_explained(number: int, tmp_path: Any) -> None:
    """The results of kernels with a mistake lie outside of what the right kernel explains."""
    mistake = MISTAKES[number]
    case, module = CASES[mistake.kernel], mistake.module(tmp_path)
    explained = nkitools.simulate(getattr(right_kernels, mistake.kernel), *case.inputs()).tolerance()
    wrong = nkitools.simulate(getattr(module, mistake.kernel), *case.inputs(), rules="off").outputs
    assert not np.allclose(wrong, explained[0].right, explained.rtol, explained.atol)


def rounded_sum(x: Any) -> Any:
    """The sum of the elements of each row, one after the other, kept in bfloat16."""
    tile = nl.load(x)
    total = nl.ndarray((x.shape[0], 1), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.memset(dst=total, value=0.0)
    for j in range(x.shape[1]):
        nisa.tensor_tensor(dst=total, data1=total, data2=tile[:, j : j + 1], op=nl.add)
    result = nl.ndarray((x.shape[0], 1), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=result, src=total)
    return result


def test_rounding_on_the_way_is_explained() -> None:
    """The error of 64 sums in bfloat16 is many times its step, though the result is of float32."""
    x = np.random.default_rng(3).uniform(0, 1, (8, 64)).astype(np.float32)
    run = nkitools.simulate(rounded_sum, x)
    explained = run.tolerance()["output"]
    assert explained.dtype == "float32"
    np.testing.assert_allclose(run.outputs, x.sum(axis=1, keepdims=True), *explained.explained)
    assert explained.rtol == 1e-4  # the most that is derived for float32
    assert "are explained, more than may be derived" in str(run.tolerance())
    np.testing.assert_allclose(explained.right, x.astype(np.float64).sum(axis=1, keepdims=True), rtol=1e-14)
    assert 4e-3 < explained.largest / 32 < 0.1
    assert "will flake" in explained.sentence(1e-3, 0.0)


def test_run_kernel_says_what_is_wrong_with_a_tolerance(run_kernel: Any) -> None:
    """It warns of one that will flake or hides mistakes; with none the run's own is that of its reference."""
    x = np.random.default_rng(3).uniform(0, 1, (8, 64)).astype(np.float32)
    with (
        pytest.warns(UserWarning, match="the comparison will flake"),
        pytest.raises(AssertionError, match=r"rtol=0\.0001"),
    ):
        run_kernel(rounded_sum, x, rtol=1e-4, reference=_sum, tolerance="auto")
    with pytest.warns(UserWarning, match="would not see a lost tile"):
        run_kernel(rounded_sum, x, rtol=0.99, reference=_sum, tolerance="auto")
    with pytest.raises(ValueError, match="tolerance: it may be 'auto'"):
        run_kernel(rounded_sum, x, reference=_sum, tolerance="tight")


def test_run_kernel_compares_by_the_tolerance_that_it_knows(run_kernel: Any) -> None:
    """A wrong reference fails by the run's own tolerance and by a stated one; other containers are other outputs."""
    x = np.random.default_rng(3).uniform(0, 1, (8, 64)).astype(np.float32)
    for tolerance in ("auto", None):
        with pytest.raises(AssertionError, match="8 of 8 elements differ by more than"):
            run_kernel(rounded_sum, x, reference=lambda x: 1.3 * _sum(x), tolerance=tolerance)
    with pytest.raises(AssertionError, match="8 of 8 elements differ by more than atol=1, rtol=0"):
        run_kernel(rounded_sum, x, reference=lambda x: 1.3 * _sum(x), atol=1.0)
    with pytest.raises(AssertionError, match=r"the kernel returns outputs; the reference has outputs\[0\]"):
        run_kernel(rounded_sum, x, reference=[_sum(x)], atol=1.0)


def test_what_cannot_be_decided_is_neither_right_nor_wrong(run_kernel: Any) -> None:
    """Sums in bfloat16 err by percents of their float32 result: no tolerance is derived, one is asked for."""
    x = np.random.default_rng(3).uniform(0, 1, (8, 64)).astype(np.float32)
    with pytest.raises(
        Undecided, match=r"(?s)passed through bfloat16.*State.*explain errors of rtol=0\.0\d.*rtol=0\.0001"
    ):
        run_kernel(rounded_sum, x, reference=_sum)
    np.testing.assert_allclose(run_kernel(rounded_sum, x, reference=_sum, rtol=0.05), _sum(x), rtol=0.05)


def _sum(x: Any) -> Any:
    return x.sum(axis=1, keepdims=True)


def test_arguments_that_have_changed() -> None:
    """Small ones were copied before; of large ones that are others now the tolerance is not known."""
    x = np.ones((8, 64), np.float32)
    run = nkitools.simulate(rounded_sum, x)
    x[:] = 3
    np.testing.assert_array_equal(run.tolerance()[0].right, np.full((8, 1), 64.0))
    large = np.random.default_rng(4).standard_normal((128, 4096)).astype(np.float32)
    run = nkitools.simulate(right_kernels.softmax, large)
    large[:, 0] = 5
    with pytest.raises(ValueError, match="the arguments have changed"):
        run.tolerance()
    with pytest.raises(ValueError, match="simulated"):
        nkitools.Run.from_json(run.to_json()).tolerance()


@nki.jit
def share_of_the_largest(x: Any, factor: float) -> Any:
    """``factor`` where an element is the largest of its row, else 0."""
    tile = nl.load(x)
    scaled = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=scaled, data=tile, op0=nl.multiply, operand0=0.3)
    peak = nl.ndarray((x.shape[0], 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=peak, op=nl.maximum, data=scaled, axis=1)
    hot = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=hot, data=scaled, op0=nl.equal, operand0=peak, op1=nl.multiply, operand1=factor)
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=hot)
    return out


def test_choosing_is_exact(run_kernel: Any) -> None:
    """What is compared with a maximum of itself stays equal under noise, so that a wrong factor is not explained."""
    x = np.random.default_rng(0).standard_normal((128, 16)).astype(np.float32)
    explained = nkitools.simulate(share_of_the_largest, x, 1.0).tolerance()[0]
    assert (explained.beyond, explained.atol < 1e-6) == (None, True)

    def right(x: Any, _: float) -> Any:
        return (x == x.max(axis=1, keepdims=True)).astype(np.float32)

    run_kernel(share_of_the_largest, x, 1.0, reference=right)
    with pytest.raises(AssertionError, match="128 of 2048 elements differ"):
        run_kernel(share_of_the_largest, x, 1.5, reference=right)


@nki.jit
def softmax_times(x: Any, factor: float) -> Any:
    """Row softmax, times a factor."""
    tile = nl.load(x)
    top, total = (nl.ndarray((x.shape[0], 1), dtype=nl.float32, buffer=nl.sbuf) for _ in range(2))
    nisa.tensor_reduce(dst=top, op=nl.maximum, data=tile, axis=1, negate=True)
    powers = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation(dst=powers, op=nl.exp, data=tile, bias=top)
    nisa.tensor_reduce(dst=total, op=nl.add, data=powers, axis=1)
    nisa.reciprocal(dst=total, data=total)
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=result, data=powers, op0=nl.multiply, operand0=total, op1=nl.multiply, operand1=factor)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=result)
    return out


def softmax_of(x: Any, _: float) -> Any:
    wide = x.astype(np.float64)
    powers = np.exp(wide - wide.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(("dtype", "scale"), [(np.float32, 1), (np.float32, 30), (np.float32, 60), (np.float16, 6)])
def test_underflow_explains_no_factor(run_kernel: Any, dtype: Any, scale: float) -> None:
    """Values below the dtype's range get an absolute tolerance: no softmax that is 1.2 times too large passes."""
    x = (scale * np.random.default_rng(0).standard_normal((128, 128))).astype(dtype)
    run_kernel(softmax_times, x, 1.0, reference=softmax_of)
    for factor in (1.2, 2.9):
        with pytest.raises(AssertionError, match="elements differ"):
            run_kernel(softmax_times, x, factor, reference=softmax_of)
    explained = nkitools.simulate(softmax_times, x, 1.0).tolerance()[0]
    assert explained.rtol < 3e-3


def test_a_run_that_an_error_ended_has_no_tolerance() -> None:
    """The sentence names the run's end, not the arguments."""
    with nkitools.collect_runs() as runs, pytest.raises(nkitools.KernelError):
        nkitools.simulate(softmax_times, np.ones((256, 4), np.float32), 1.0)
    with pytest.raises(ValueError, match="simulated to their end"):
        runs[0].tolerance()
