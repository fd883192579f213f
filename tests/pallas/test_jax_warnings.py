"""Warnings in lines of JAX and NumPy are not the author's; those in his own lines are."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")

from nkitools.pallas import check, imports, precision_split, run, sweep
from tests.pallas.kernels import double, ramp

DOORS = {
    "run": lambda fn: run(fn, ramp()),
    "check": lambda fn: check(fn, ramp()),
    "precision_split": lambda fn: precision_split(fn, ramp()),
    "sweep": lambda fn: sweep(lambda _: fn, ramp(), blocks=[8], chips="v5e"),
}


def warning_in(module: str, category: type[Warning]) -> Callable[[Any], Any]:
    """Return a function with a kernel that warns in a line of ``module``."""
    there: dict[str, Any] = {"__name__": module, "warnings": warnings, "category": category}
    exec("def warn():\n    warnings.warn('it goes with the next release', category)", there)

    def warned(x: Any) -> Any:
        there["warn"]()
        return double(x)

    return warned


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("category", [DeprecationWarning, FutureWarning, UserWarning])
@pytest.mark.parametrize("module", ["jax", "jax._src.pallas.core", "jaxlib.mlir", "numpy.lib", "ml_dtypes"])
def test_a_line_of_jax_does_not_warn(door: str, category: type[Warning], module: str) -> None:
    """Where warnings are errors, the run goes through; where they are not, nobody sees one."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("error")
        DOORS[door](warning_in(module, category))
        warnings.simplefilter("always")
        DOORS[door](warning_in(module, category))
    assert [str(each.message) for each in seen] == []


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("module", ["author", "jax_kernels", "numpy_tests.kernels"])
def test_a_line_of_the_author_warns_as_ever(door: str, module: str) -> None:
    """With his place; as an error where he asked for that."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        DOORS[door](warning_in(module, DeprecationWarning))
    assert {str(each.message) for each in seen} == {"it goes with the next release"}
    with pytest.raises(DeprecationWarning, match="next release"):
        DOORS[door](warning_in(module, DeprecationWarning))


def test_a_deprecated_name_in_our_lines_is_no_matter_of_the_authors(monkeypatch: pytest.MonkeyPatch) -> None:
    """That this package calls JAX by a name that a newer one deprecates does not end a run."""
    monkeypatch.undo()
    ours = warning_in("nkitools.pallas.launch", DeprecationWarning)
    np.testing.assert_array_equal(run(ours, ramp()).outputs, 2 * ramp())
    with pytest.raises(UserWarning, match="next release"):
        run(warning_in("nkitools.pallas.launch", UserWarning), ramp())


def test_the_filters_are_as_before() -> None:
    """In success and in failure."""
    before = list(warnings.filters)
    with imports.without_jax_warnings():
        assert warnings.filters != before
    assert list(warnings.filters) == before
    with pytest.raises(KeyError), imports.without_jax_warnings():
        raise KeyError
    assert list(warnings.filters) == before


SCRIPT = """\
import numpy as np
import nkitools.pallas as pallas
from tests.pallas.kernels import double, ramp

assert (pallas.run(double, ramp()).outputs == 2 * ramp()).all()
assert pallas.check(double, ramp(), cores=2).findings == []
pallas.precision_split(double, ramp().astype(np.float16))
"""


@pytest.mark.process
@pytest.mark.frameworks
def test_a_process_whose_warnings_are_errors() -> None:
    """``python -W error`` goes through, imports included, and says nothing."""
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (ended.returncode, ended.stderr, ended.stdout) == (0, "", "")
