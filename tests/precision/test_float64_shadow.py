"""The shadow run: all floats are float64, and nothing is rounded."""

from __future__ import annotations

from typing import Any

import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

from nkitools.launch.kernel import as_launch
from nkitools.precision.runs import in_float64, run_half
from tests.precision.modes import BF16
from tests.repair.mistakes import right_kernels
from tests.repair.mistakes.references import CASES


@pytest.mark.parametrize("name", CASES)
def test_of_right_kernels(name: str) -> None:
    """What float32 loses is there, but for the numbers that instructions are given, which are float32."""
    case = CASES[name]
    launch = as_launch(getattr(right_kernels, name))
    (found,) = run_half(launch, "float64", case.inputs(), {}).outputs.values()
    (again,) = run_half(launch, "precise", case.inputs(), {}).outputs.values()
    want = case.reference(*in_float64(case.inputs()))
    scale = np.abs(want).max()
    assert np.abs(found.array - want).max() <= 1e-12 * scale
    assert name == "turned" or np.abs(again.array - want).max() > 1e-9 * scale


def narrow_sum(x: Any) -> Any:
    """The sum of each row of exp(x), by way of bfloat16 and the Scalar Engine's registers."""
    tile = nl.ndarray(x.shape, dtype=nl.bfloat16, buffer=nl.sbuf)
    powers = nl.ndarray(x.shape, dtype=nl.float8_e4m3, buffer=nl.sbuf)
    total = nl.ndarray((x.shape[0], 1), dtype=nl.float32, buffer=nl.sbuf)
    result = nl.ndarray((x.shape[0], 1), dtype=nl.bfloat16, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=x)
    nisa.activation(
        dst=powers, op=nl.exp, data=tile, reduce_op=nl.add, reduce_res=total, reduce_cmd=nisa.reduce_cmd.reset_reduce
    )
    nisa.dma_copy(dst=result, src=total)
    return result


def test_of_casts_and_registers() -> None:
    """No cast rounds, and neither do the registers that sums stay in; the result is of the width that it needs."""
    x = np.random.default_rng(1).uniform(-1, 1, (4, 64)).astype(np.float32)
    (found,) = run_half(as_launch(narrow_sum), "float64", (x,), {}).outputs.values()
    np.testing.assert_allclose(found.array, np.exp(x.astype(np.float64)).sum(axis=1, keepdims=True), rtol=1e-14)


def test_it_leaves_nothing_behind() -> None:
    """The next run is as before, bit for bit: also plans that both have in common."""
    x = np.random.default_rng(1).uniform(-1, 1, (4, 64)).astype(np.float32)
    before = run_half(as_launch(narrow_sum), "precise", (x,), {}).outputs["output"]
    run_half(as_launch(narrow_sum), "float64", (x,), {})
    after = run_half(as_launch(narrow_sum), "precise", (x,), {})
    np.testing.assert_array_equal(before.array, after.outputs["output"].array)
    assert after.outputs["output"].dtype == "bfloat16" == str(np.dtype(BF16))
    full = run_half(as_launch(narrow_sum), "full", (x,), {}).outputs["output"]
    assert full.dtype == "float32"
