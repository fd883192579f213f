"""The first line that a bisection names, of kernels that are wrong in their mathematics alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nkitools
from tests.why.mistakes import right_kernels
from tests.why.mistakes.planted import MISTAKES, Mistake
from tests.why.mistakes.references import CASES


@pytest.mark.parametrize("name", CASES)
def test_right(name: str) -> None:
    """Without a mistake a kernel computes what NumPy does, and no rule speaks."""
    case = CASES[name]
    run = nkitools.simulate(getattr(right_kernels, name), *case.inputs())
    want = case.reference(*(each.astype(np.float64) for each in case.inputs()))
    np.testing.assert_allclose(run.outputs, want, rtol=1e-4, atol=1e-4)
    assert run.findings == []


@pytest.mark.soak
@pytest.mark.parametrize("mistake", MISTAKES, ids=[f"{each.kernel}-{number}" for number, each in enumerate(MISTAKES)])
def test_wrong(mistake: Mistake, tmp_path: Path) -> None:
    """With a mistake the result is wrong, and no rule calls it an error."""
    case, module = CASES[mistake.kernel], mistake.module(tmp_path)
    run = nkitools.simulate(getattr(module, mistake.kernel), *case.inputs(), rules="report")
    assert not np.allclose(run.outputs, case.reference(*case.inputs()), rtol=1e-3, atol=1e-3)
    assert [each for each in run.findings if each.severity == "error"] == []
