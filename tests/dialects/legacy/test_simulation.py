"""AWS's own ways to simulate: narrow dtypes are kept in float32, and what is returned may lie on chip."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np
import pytest

import nkitools
from nkitools.facts import options
from nkitools.issue import carry_out
from tests.dialects.legacy.running import random, refusal, run

BF16 = ml_dtypes.bfloat16
X = random(16, 32)


def scaled(x: Any) -> Any:
    """3 (x + 1) by way of a bfloat16 tile, as float32."""
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    moved = nl.add(nl.load(x), 1.0, dtype=nl.bfloat16)
    nl.store(out, nl.multiply(moved, 3.0, dtype=nl.float32))
    return out


WIDE = np.float32(3) * (X + np.float32(1))
ROUNDED = np.float32(3) * (X + np.float32(1)).astype(BF16).astype(np.float32)


def test_the_two_precisions_differ() -> None:
    """Or the tests below would say nothing."""
    assert (WIDE != ROUNDED).any()


@pytest.mark.parametrize("mode", ["simulation", "auto", "baremetal", "benchmark", "torchxla"])
def test_the_mode_decides_the_precision(mode: str) -> None:
    """jit(mode="simulation") keeps float32, as AWS documents its simulator; the others round as the chip does."""
    expected = WIDE if mode == "simulation" else ROUNDED
    np.testing.assert_array_equal(nki.jit(scaled, mode=mode)(X), expected)


@pytest.mark.parametrize("way", [nki.jit, nki.baremetal, nki.benchmark, lambda function: function])
def test_simulate_kernel_keeps_float32(way: Any) -> None:
    """Whatever the kernel was declared with; nkitools.simulate rounds each value."""
    np.testing.assert_array_equal(nki.simulate_kernel(way(scaled), X), WIDE)
    kernel = nki.jit(scaled, mode="simulation")
    np.testing.assert_array_equal(nkitools.simulate(kernel, X).outputs, ROUNDED)


def test_a_direct_call_of_an_older_kernel_is_precise() -> None:
    """nki.trace takes outputs by reference; its own call is no simulate_kernel."""

    def kernel(x: Any, out: Any) -> None:
        nl.store(out, nl.multiply(nl.add(nl.load(x), 1.0, dtype=nl.bfloat16), 3.0, dtype=nl.float32))

    called, simulated = np.zeros_like(X), np.zeros_like(X)
    nki.trace(kernel)(X, called)
    nki.simulate_kernel(nki.trace(kernel), X, simulated)
    np.testing.assert_array_equal(called, ROUNDED)
    np.testing.assert_array_equal(simulated, WIDE)


@pytest.mark.parametrize(("said", "expected"), [("1", ROUNDED), ("0", WIDE), ("", None)])
def test_what_the_user_says_of_the_precision_comes_first(
    monkeypatch: pytest.MonkeyPatch, said: str, expected: Any
) -> None:
    """NKI_PRECISE_FP decides for every way in."""
    monkeypatch.setenv("NKI_PRECISE_FP", said)
    np.testing.assert_array_equal(nki.simulate_kernel(scaled, X), WIDE if expected is None else expected)
    np.testing.assert_array_equal(nki.jit(scaled)(X), ROUNDED if expected is None else expected)


def test_the_option_comes_before_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways."""
    monkeypatch.setenv("NKI_PRECISE_FP", "0")
    with options.override(precision="precise"):
        np.testing.assert_array_equal(nki.simulate_kernel(scaled, X), ROUNDED)
    monkeypatch.setenv("NKI_PRECISE_FP", "1")
    with options.override(precision="full"):
        np.testing.assert_array_equal(nki.jit(scaled)(X), WIDE)


def test_results_have_the_dtype_of_their_tensor() -> None:
    """Rounded once, at the end: here in the last step, where the chip has rounded before it too."""

    @nki.jit
    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=nl.bfloat16, buffer=nl.shared_hbm)
        nl.store(out, nl.multiply(nl.add(nl.load(x), 1.0, dtype=nl.bfloat16), 3.0, dtype=nl.bfloat16))
        return out

    found = nki.simulate_kernel(kernel, X)
    assert found.dtype == BF16
    np.testing.assert_array_equal(found, WIDE.astype(BF16))
    assert (found != nkitools.simulate(kernel, X).outputs).any()


# --- speed -----------------------------------------------------------------------------------------------------------


def issued_carefully(monkeypatch: pytest.MonkeyPatch, kernel: Any, x: Any) -> int:
    """How many instructions of a second simulate_kernel do not take the fast path."""
    nki.simulate_kernel(kernel, x)
    found: list[Any] = []
    perform = carry_out.perform

    def counted(call: Any) -> None:
        found.append(call.plan.name)
        perform(call)

    monkeypatch.setattr(carry_out, "perform", counted)
    nki.simulate_kernel(kernel, x)
    return len(found)


@pytest.mark.fast_path
def test_plans_of_wide_dtypes_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel of float32 and integers takes the fast path, one of bfloat16 does where it is float32."""

    @nki.jit
    def wide(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        nl.store(out, nl.exp(nl.add(tile, nl.copy(tile, dtype=nl.int32))))
        return out

    assert issued_carefully(monkeypatch, wide, X) == 0
    monkeypatch.undo()
    assert issued_carefully(monkeypatch, nki.jit(scaled), X) == 2


def test_a_view_of_narrow_bytes_is_never_fast() -> None:
    """Bytes written through a float32 view are what a bfloat16 tile then holds, and not digits it had before.

    The layout of such a view is otherwise that of a plain float32 tile, whose plan is kept.
    """

    rounded = random(16, 8, seed=1).astype(BF16)
    digits = rounded.astype(np.float32) * np.float32(1 + 2**-12)  # round to the same bfloat16
    np.testing.assert_array_equal(digits.astype(BF16), rounded)

    @nki.jit
    def overwritten(x: Any, bits: Any) -> Any:
        out = nl.ndarray((16, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        source, plain = nl.load(bits), nl.ndarray((16, 4), dtype=nl.float32)
        narrow = nl.ndarray((16, 8), dtype=nl.bfloat16)
        narrow[...] = nl.copy(nl.load(x), dtype=nl.bfloat16)
        plain[...] = source
        narrow.view(nl.float32)[...] = source
        nl.store(out, nl.copy(narrow, dtype=nl.float32))
        return out

    for _ in range(2):
        found = nki.simulate_kernel(overwritten, digits, rounded.view(np.float32))
        np.testing.assert_array_equal(found, rounded.astype(np.float32))


# --- results on chip -------------------------------------------------------------------------------------------------


def test_a_result_on_chip_is_returned_with_a_hint() -> None:
    """Its values, and NK209 where the kernel returns it."""

    def kernel(x: Any) -> Any:
        doubled = nl.multiply(nl.load(x), 2.0)
        return doubled, nl.max(doubled, axis=1)

    done = run(kernel, X)
    np.testing.assert_array_equal(done.outputs[0], 2 * X)
    np.testing.assert_array_equal(done.outputs[1], 2 * X.max(axis=1, keepdims=True))
    assert [(each.rule, each.severity) for each in done.findings] == [("NK209", "hint")] * 2
    assert {each.file for each in done.findings} == {__file__}
    assert "`doubled`" in done.findings[0].message


def test_a_result_on_chip_is_written_all_the_same() -> None:
    """NK403 for one that holds nothing."""
    assert refusal(lambda x: nl.ndarray((8, 8), dtype=nl.float32), X).rule == "NK403"
