"""A stated tolerance that is as large as all expected values shows nothing: every door says so."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

from nkitools.comparison.form import passing_zeros
from nkitools.comparison.rule import Rule
from nkitools.pytest_plugin.reference_check import LooseToleranceWarning
from nkitools.serve import simulated_file
from nkitools.sweeps.checked_call import Case
from nkitools.sweeps.local_engine import InProcess
from nkitools.sweeps.sweep import checked_call, run_cases

X = np.linspace(0.001, 0.004, 128, dtype=np.float32).reshape(8, 16)
SAID = "zeros would pass, too"


@nki.jit
def halved(x: Any) -> Any:
    """Half of x; its reference says x."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=0.5)
    nisa.dma_copy(dst=out, src=tile)
    return out


def same(x: Any) -> Any:
    """Return what is expected."""
    return x


@pytest.mark.parametrize(
    ("expected", "rule", "is_loose"),
    [
        (X, Rule(0.0, 0.0041), True),
        (X, Rule(0.0, 0.0039), False),
        (X, Rule(1.0), True),
        (X, Rule(0.99), False),
        (X, Rule(0.5, 0.0021), True),
        (X, Rule(), False),
        (0 * X, Rule(0.0, 1.0), False),
        (np.array([0, 1, 1]), Rule(0.0, 1.0), True),
        (np.array([0, 1, 2]), Rule(0.0, 1.0), False),
        (np.array([0.1, np.nan]), Rule(0.0, 1.0), False),
        (np.array([0.1, np.inf]), Rule(0.0, 1.0), False),
    ],
)
def test_zeros_in_the_place_of_all_values(expected: Any, rule: Rule, is_loose: bool) -> None:
    """As NumPy's assert_allclose has it; expected zeros, NaN and infinities are compared with something."""
    assert (SAID in passing_zeros(expected, rule)) == is_loose
    if rule.is_stated and expected.any():
        rtol, atol = rule.numbers(())
        assert np.allclose(np.zeros_like(expected), expected, rtol, atol, equal_nan=True) == is_loose


def test_every_door_says_it(run_kernel: Any, tmp_path: Path) -> None:
    """A wrong kernel passes by such a tolerance, with a word; a sharper one fails it."""
    with pytest.warns(LooseToleranceWarning, match=SAID):
        run_kernel(halved, X, reference=same, atol=0.01)
    with pytest.raises(AssertionError, match=r"differ by more than atol=0\.001"):
        run_kernel(halved, X, reference=same, atol=0.001)
    call = checked_call(halved, {"rows": [8]}, lambda rows: (X,), same, atol=0.01)
    assert str(run_cases(call, [Case({"rows": 8}, "trn2")], InProcess())).endswith(
        "1 of the cases pass by a loose tolerance"
    )
    text = "".join(Path(__file__).read_text().partition("@nki.jit")[1:]).partition("@pytest")[0]
    (tmp_path / "halved_kernel.py").write_text(
        f"import nki\nimport nki.isa as nisa\nimport nki.language as nl\nimport numpy as np\n\nAny = object\n{text}\n"
        "def inputs():\n    return (np.full((8, 16), 0.002, np.float32),)\n"
    )
    request = {"file": str(tmp_path / "halved_kernel.py"), "kernel": "halved", "against": "same", "atol": 0.01}
    assert SAID in simulated_file.compared(request)["outputs"][0]["why"]


def test_a_tolerance_below_the_values_says_nothing(run_kernel: Any) -> None:
    """One of the expected values is larger."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_kernel(halved, X, reference=lambda x: x / 2, atol=0.0019)
        run_kernel(halved, 0 * X, reference=lambda x: x / 2, atol=0.0019)


@nki.jit
def largest(x: Any, shift: int) -> Any:
    """The eight largest elements of each row, and their places, which are off by ``shift``."""
    shape = (x.shape[0], 8)
    values = nl.ndarray(shape, dtype=nl.float32, buffer=nl.shared_hbm)
    places = nl.ndarray(shape, dtype=nl.uint32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    best = nl.ndarray(shape, dtype=nl.float32, buffer=nl.sbuf)
    at = nl.ndarray(shape, dtype=nl.uint32, buffer=nl.sbuf)
    nisa.max8(dst=best, src=tile)
    nisa.nc_find_index8(dst=at, data=tile, vals=best)
    nisa.tensor_scalar(dst=at, data=at, op0=nl.add, operand0=shift)
    nisa.dma_copy(dst=values, src=best)
    nisa.dma_copy(dst=places, src=at)
    return values, places


def eight(x: Any, shift: int) -> Any:
    """By NumPy."""
    order = np.argsort(-x, axis=1)[:, :8]
    return np.take_along_axis(x, order, axis=1), order.astype(np.uint32)


def test_places_are_no_floats(run_kernel: Any) -> None:
    """An rtol for the values lets a place pass that is off by one; a right place, or one within atol, says nothing."""
    x = np.linspace(2, 3, 4096, dtype=np.float32).reshape(4, 1024)
    with pytest.warns(
        LooseToleranceWarning, match=r"outputs\[1\]: 32 of 32 whole numbers are off, by up to 1, and pass"
    ):
        run_kernel(largest, x, 1, reference=eight, rtol=1e-2)
    with pytest.raises(AssertionError, match=r"outputs\[1\]: 32 of 32 elements differ"):
        run_kernel(largest, x, 1, reference=eight, rtol=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_kernel(largest, x, 0, reference=eight, rtol=1e-2)
        run_kernel(largest, x, 1, reference=eight, rtol=1e-2, atol=1)
