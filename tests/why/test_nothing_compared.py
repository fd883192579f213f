"""A bisection that would compare nothing is an error that says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
from click.testing import CliRunner

from nkitools.cli import main
from nkitools.comparison.form import NothingCompared
from nkitools.repair.answers import bisect

X = np.full((4, 8), 3, np.float32)


@nki.jit
def with_a_tile_of_nan(x: Any) -> Any:
    """A copy of an array, beside a tile that holds NaN, and one that holds it in its first turn."""
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=float("nan"))
    for turn in nl.affine_range(2):
        some = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.memset(dst=some, value=float("nan") if turn == 0 else 1.0)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out


@nki.jit
def adding_in_place(x: Any, returns: bool) -> Any:
    """Two more, in the array that is given."""
    tile = nl.load(x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=2.0)
    nisa.dma_copy(dst=x, src=tile)
    if not returns:
        return None
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


def nan(x: Any) -> Any:
    return np.full_like(x, np.nan)


def changing(x: Any, returns: bool) -> Iterator[Any]:
    """What is right of `adding_in_place`, but for the argument, which should be doubled."""
    if returns:
        yield x + 2
    yield 2 * x


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"expect": {"tile": nan}}, "tile: all 32 elements are NaN, in the reference too: nothing is compared"),
        ({"reference": lambda x: x, "expect": {"tile": nan}}, "tile: all 32 elements are NaN"),
        ({}, "nothing says what is right: nothing of with_a_tile_of_nan is compared"),
        ({"expect": {}}, "nothing says what is right"),
        ({"expect": {"tiel": nan}}, "expect: no tensor tiel was written"),
        ({"reference": lambda x: x, "expect": {"tiel": nan}}, "expect: no tensor tiel was written"),
        ({"reference": with_a_tile_of_nan}, "the reference is the kernel itself: nothing is compared"),
    ],
)
def test_what_compares_nothing_is_refused(given: Any, said: str) -> None:
    """NaN everywhere, a name that the kernel has not, and nothing that says what is right."""
    with pytest.raises(NothingCompared, match=said):
        bisect(with_a_tile_of_nan, X, **given)


def test_run_kernel_refuses_tensors_of_nan(run_kernel: Any) -> None:
    """With a reference and without; NaN in some of the turns is compared."""
    for reference in (None, lambda x: x):
        with pytest.raises(NothingCompared, match="tile: all 32 elements are NaN"):
            run_kernel(with_a_tile_of_nan, X, reference=reference, expect={"tile": nan})
    run_kernel(with_a_tile_of_nan, X, expect={"some": lambda x, turn: nan(x) if turn == 0 else np.ones_like(x)})
    with pytest.raises(AssertionError, match=r"some\[0, 0\] \(turn turn=1\) is 1, expected 2"):
        run_kernel(with_a_tile_of_nan, X, expect={"some": lambda x, turn: nan(x) if turn == 0 else 2 * np.ones_like(x)})


@pytest.mark.process
@pytest.mark.parametrize("returns", [False, True])
def test_a_changed_argument_is_bisected(returns: bool) -> None:
    """Beside results and alone, it is compared with the arrays that the reference has beside those of the results."""
    found = bisect(adding_in_place, X.copy(), returns, reference=lambda *args: tuple(changing(*args)), seconds=0.1)
    assert found.kind != "right"
    assert found.bisection is not None
    first = found.bisection.first
    assert first is not None
    assert (first.name, first.got[0, 0], first.want[0, 0]) == ("x", 5, 6)
    right = bisect(adding_in_place, X.copy(), returns, reference=lambda x, returns: (x + 2, x + 2)[not returns :])
    assert right.kind == "right"


def test_the_command_refuses_a_name_that_the_kernel_has_not(tmp_path: Path) -> None:
    """With exit code 2, though the results are right."""
    file = tmp_path / "kernels.py"
    file.write_text(
        "import nki.language as nl, nki.isa as nisa, numpy as np\n\ndef copied(x):\n"
        "    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n    nisa.dma_copy(dst=out, src=x)\n"
        "    return out\n\ninputs = (np.ones((4, 8), np.float32),)\nreference = lambda x: x\n"
        "expect = {'tiel': lambda x: x}\n"
    )
    result = CliRunner().invoke(main, ["bisect", f"{file}::copied"])
    assert result.exit_code == 2
    assert "expect: no tensor tiel was written" in result.output
