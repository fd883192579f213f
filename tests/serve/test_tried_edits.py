"""An edit that an answer suggests was tried on the run: whether its finding goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nkitools.serve.simulated_file import simulated

HEAD = """\
import nki
import nki.language as nl
import numpy as np

inputs = (np.ones((300, 64), np.float32),)


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
"""
LOOP = """\
    for i in range(ROUNDED):
        rows = nl.ds(i * 128, min(128, x.shape[0] - i * 128))
        nl.store(out[rows, :], SCALED)
    return out
"""
DOWN = HEAD + LOOP.replace("ROUNDED", "x.shape[0] // 128").replace("SCALED", "nl.load(x[rows, :])")
OPERATOR = HEAD + LOOP.replace("ROUNDED", "3").replace("SCALED", "nl.load(x[rows, :]) * nl.load(x)")


def suggested(text: str, folder: Path, **asked: Any) -> list[dict[str, Any]]:
    """The suggestions of the first finding of a text that has any."""
    path = folder / "kernels.py"
    path.write_text(text)
    found = simulated({"file": str(path), "kernel": "kernel", **asked})
    assert path.read_text() == text
    return next(each["suggestions"] for each in found["findings"] if each["suggestions"])


@pytest.mark.parametrize(
    ("text", "says"), [(DOWN, "NK403 gone"), (OPERATOR, "NK601 gone; NK101, NK102 found")], ids=["gone", "another"]
)
def test_an_edit_says_what_became_of_its_rule(text: str, says: str, tmp_path: Path) -> None:
    """And which other errors the edited kernel has; the file stays as it is."""
    assert suggested(text, tmp_path, try_edits=True)[0]["tried"] == says


def test_nothing_is_tried_unasked(tmp_path: Path) -> None:
    """An editor shows findings at each keystroke."""
    assert "tried" not in suggested(DOWN, tmp_path)[0]
