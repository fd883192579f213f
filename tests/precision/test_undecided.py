"""What is said where a derived tolerance decides nothing: why, and which tolerance to state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.pytest_plugin.reference_check import Undecided
from nkitools.serve.simulated_file import compared
from nkitools.sweeps.answers import signature
from nkitools.sweeps.checked_call import Case
from nkitools.sweeps.sweep import checked_call


def through(dtype: Any) -> Any:
    """Return a kernel that multiplies by three in tiles of a dtype, and returns float32."""

    def tripled(x: Any) -> Any:
        tile = nl.ndarray(x.shape, dtype=dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x)
        wide = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=wide, data=tile, op0=nl.multiply, operand0=3.0)
        out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=wide)
        return out

    return tripled


def numbers(seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(1, 2, (16, 32)).astype(np.float32)


DTYPES = [(nl.bfloat16, "bfloat16", "rtol=0.02"), (nl.float16, "float16", "rtol=0.003")]


@pytest.mark.parametrize(("dtype", "name", "stated"), DTYPES)
def test_a_float32_output_of_coarser_tiles_names_their_dtype(
    run_kernel: Any, dtype: Any, name: str, stated: str
) -> None:
    """The test stays red, says through which dtype the values passed, and the tolerance that it proposes passes."""
    with pytest.raises(Undecided, match=f"but its values passed through {name}, .* fits {name}: {stated}, and an atol"):
        run_kernel(through(dtype), numbers(), reference=lambda x: 3 * x)
    run_kernel(through(dtype), numbers(), reference=lambda x: 3 * x, rtol=float(stated[5:]))
    with pytest.raises(AssertionError, match="differ"):
        run_kernel(through(dtype), numbers(), reference=lambda x: 3.5 * x)


def test_float32_tiles_are_not_blamed(run_kernel: Any) -> None:
    """A wrong result of float32 alone is wrong, and a bfloat16 argument that is only read is exact."""
    with pytest.raises(AssertionError) as failed:
        run_kernel(through(nl.float32), numbers(), reference=lambda x: 3.001 * x)
    assert "undecided" not in str(failed.value)
    run_kernel(through(nl.float32), numbers(), reference=lambda x: 3 * x)


@pytest.mark.parametrize(("dtype", "name", "stated"), DTYPES)
def test_a_sweep_says_it_alike_for_all_its_cases(dtype: Any, name: str, stated: str) -> None:
    """The first line of its text has no number of a case, so that the cases are one cluster."""
    call = checked_call(through(dtype), {"seed": [0, 1]}, lambda seed: (numbers(seed),), lambda x: 3 * x)
    rows = [call(Case({"seed": seed}, "trn2")) for seed in (0, 1)]
    assert [row["outcome"] for row in rows] == ["undecided", "undecided"]
    (said,) = {signature(row) for row in rows}
    assert f"passed through {name}" in said
    assert stated in said


def test_a_run_knows_the_coarsest_dtype_of_each_output() -> None:
    """Where it is coarser than the output's own."""
    for dtype, name in ((nl.bfloat16, "bfloat16"), (nl.float32, "")):
        (found,) = nkitools.simulate(through(dtype), numbers()).tolerance().outputs
        assert found.through == name


FILE = """
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

inputs = (np.random.default_rng(0).uniform(1, 2, (16, 32)).astype(np.float32),)

@nki.jit
def tripled(x):
    tile = nl.ndarray(x.shape, dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    wide = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=wide, data=tile, op0=nl.multiply, operand0=3.0)
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=wide)
    return out

def reference(x):
    return 3 * x
"""


def test_agents_read_it_too(tmp_path: Path) -> None:
    """In the row of the output."""
    file = tmp_path / "kernel.py"
    file.write_text(FILE, encoding="utf-8")
    (row,) = compared({"file": str(file), "kernel": "tripled", "against": "reference"})["outputs"]
    assert (row["agrees"], row["outcome"]) == (False, "undecided")
    assert "passed through bfloat16" in row["why"]
    assert "rtol=0.02" in row["why"]
