"""Narrow tiles become float32 once for all of their products; results have the bits of a run."""

from __future__ import annotations

from collections import Counter
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.replay.kept_lists import KEPT

ROWS, COLUMNS = 256, 96


def product(left: Any, right: Any) -> Any:
    """``left.T @ right``, each tile loaded for each of its products."""
    contraction, rows = left.shape
    out = nl.ndarray((rows, right.shape[1]), nl.float32, buffer=nl.shared_hbm)
    for m in range(0, rows, 128):
        for n in range(0, right.shape[1], 32):
            total = nl.ndarray((128, 32), nl.float32, buffer=nl.psum)
            for k in range(0, contraction, 128):
                nisa.nc_matmul(total, nl.load(left[k : k + 128, m : m + 128]), nl.load(right[k : k + 128, n : n + 32]))
            nl.store(out[m : m + 128, n : n + 32], nl.copy(total))
    return out


def changing(left: Any, right: Any) -> Any:
    """Products of a tile of the kernel's own, which changes between the first two and the last."""
    out = nl.ndarray((3, 64, 32), nl.float32, buffer=nl.shared_hbm)
    tile, moving = nl.load(left[:128, :64]), nl.load(right[:128, :32])
    for turn in range(3):
        total = nl.ndarray((64, 32), nl.float32, buffer=nl.psum)
        if turn == 2:
            nisa.tensor_scalar(dst=tile[:, 8:40], data=tile[:, 8:40], op0=nl.multiply, operand0=0.5)
        nisa.nc_matmul(total, tile, moving)
        nl.store(out[turn], nl.copy(total))
    return out


def operands(dtype: Any, seed: int) -> tuple[Any, Any]:
    """Random matrices."""
    random = np.random.default_rng(seed)
    return random.standard_normal((256, ROWS)).astype(dtype), random.standard_normal((256, COLUMNS)).astype(dtype)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16, ml_dtypes.float8_e4m3fn], ids=str)
@pytest.mark.parametrize("kernel", [product, changing])
def test_results_have_the_bits_of_a_run(kernel: Any, dtype: Any) -> None:
    """With the recorded values and others."""
    chip = "trn3" if dtype is ml_dtypes.float8_e4m3fn else "trn2"
    for seed in (0, 0, 1, 2):
        given = operands(dtype, seed)
        run = nkitools.simulate(kernel, *given, replay="on", chip=chip)
        expected = nkitools.simulate(kernel, *given, replay="off", chip=chip)
        assert run.outputs.tobytes() == expected.outputs.tobytes()
    assert run.replayed.done


def steps_of(kernel: Any, *given: Any) -> Counter[str]:
    """The kinds of the steps of a kernel's list."""
    KEPT.clear()
    nkitools.simulate(kernel, *given, replay="on")
    (form,) = KEPT.forms.values()
    assert form.recorded is not None
    return Counter(each.kind for each in form.recorded.steps.steps)


def test_each_tile_is_converted_once() -> None:
    """Of four tiles on the left and six on the right, each multiplied several times."""
    given = operands(ml_dtypes.bfloat16, 3)
    assert steps_of(product, *given)["conversion"] == 4 + 6
    in_float32 = [each.astype(np.float32) for each in given]
    assert steps_of(product, *in_float32)["conversion"] == 0
    assert steps_of(product, *given)["matmul"] == steps_of(product, *in_float32)["matmul"]


def test_a_tile_that_has_changed_is_converted_again() -> None:
    """Twice for the tile, once for the other operand."""
    assert steps_of(changing, *operands(ml_dtypes.bfloat16, 4))["conversion"] == 3


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_product_that_is_not_finite_runs_in_full(value: float) -> None:
    """And has the findings of a run."""
    good, bad = operands(ml_dtypes.bfloat16, 5), operands(ml_dtypes.bfloat16, 5)
    bad[0][7, 3] = value
    for _ in range(2):
        nkitools.simulate(product, *good, replay="on")
    with np.errstate(all="ignore"):
        run, expected = (nkitools.simulate(product, *bad, replay=each) for each in ("on", "off"))
    assert not run.replayed.done
    assert run.outputs.tobytes() == expected.outputs.tobytes()
    assert [each.rule for each in run.findings] == [each.rule for each in expected.findings]
