"""A beginner's kernel shows every one of its defects: by lint, and by a run that collects its findings."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.lint.engine import lint
from nkitools.rules.finding import KernelError
from nkitools.suggestions.lint_interface import Dialects
from tests.loading import loaded

HERE = Path(__file__).parent / "beginners"
_ARGUMENTS = {
    "vector_add": ((512,), (512,), (512,)),
    "relu": ((256, 256), (256,)),
    "softmax": ((128, 64), (200,), (128, 64)),
    "row_sums": ((128, 64), (512,)),
    "matmul": ((256, 128), (256, 512)),
    "column_sums": ((256, 512),),
    "transpose": ((256, 128),),
}


def marked(path: Path) -> set[tuple[int, str]]:
    """Return the lines with a mistake, and the rule that each breaks."""
    lines = path.read_text().splitlines()
    return {(number, rule) for number, line in enumerate(lines, 1) for rule in re.findall(r"# (NK\d+)", line)}


def shown(name: str) -> set[tuple[int, str]]:
    """Return what lint and a run with rules="report" show of a kernel."""
    path = HERE / f"{name}.py"
    module: Any = loaded(path, f"beginners_{name}")
    arguments = [np.ones(shape, np.float32) for shape in _ARGUMENTS[name]]
    with nkitools.collect_runs() as runs, suppress(KernelError, TypeError, ValueError):
        nkitools.simulate(getattr(module, name), *arguments, rules="report")
    found = [*lint([path], interface=Dialects()).findings, *(finding for run in runs for finding in run.findings)]
    return {(finding.line, finding.rule) for finding in found if Path(finding.file) == path}


@pytest.mark.parametrize("name", sorted(_ARGUMENTS))
def test_every_mistake_is_shown_at_its_line(name: str) -> None:
    """What is marked in the source is among the findings."""
    assert marked(HERE / f"{name}.py") - shown(name) == set()
