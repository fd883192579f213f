"""Python under tracing: small kernels for each construct of the language, by lint and by a run, under each version."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools import options
from nkitools.record.run_listeners import collect_runs
from nkitools.rules.finding import Finding
from tests.dialects.modern.python_under_tracing.cases import Case
from tests.dialects.modern.python_under_tracing.loops import LOOPS
from tests.dialects.modern.python_under_tracing.python import PYTHON
from tests.dialects.modern.python_under_tracing.scalars import SCALARS
from tests.lint.linted import findings

CASES = {**PYTHON, **LOOPS, **SCALARS}
VERSIONS = ("0.6", "0.7", "auto", "custom")
X = np.random.default_rng(7).integers(-8, 9, (128, 64)).astype(np.float32)
each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
each_version = pytest.mark.parametrize("version", VERSIONS)


@contextmanager
def language(version: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a version hold; ``custom`` is 0.7 with the former front end of the compiler."""
    if version == "custom":
        monkeypatch.setenv("NKI_COMPILER_FRONTEND", "custom")
    with options.override(nki_version="0.7" if version == "custom" else version):
        yield


def kernel_of(path: Path) -> Any:
    """Import a file and return its kernel."""
    spec = importlib.util.spec_from_file_location("traced_case", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


def places(found: list[Finding], version: str) -> list[tuple[str, int]]:
    """Return rules and lines; the notice about the former front end is that of every kernel."""
    kept = [each for each in found if version != "custom" or not each.message.startswith("NKI_COMPILER_FRONTEND")]
    return sorted((each.rule, each.line) for each in kept)


@each_version
@each_case
def test_lint(case: Case, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lint finds what is marked, and nothing else."""
    path = tmp_path / "case.py"
    path.write_text(case.source)
    with language(version, monkeypatch):
        assert places(findings(path), version) == sorted(case.marked(version, "lint"))


@each_version
@each_case
def test_run(case: Case, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run finds what is marked, and where it is to go on it computes the number."""
    path = tmp_path / "case.py"
    path.write_text(case.source)
    with language(version, monkeypatch):
        kernel = kernel_of(path)
        if case.raises is not None:
            with pytest.raises(case.raises):
                nkitools.simulate(kernel, X.copy(), rules="report")
            return
        found, outputs = outcome(kernel)
    assert places(found, version) == sorted(case.marked(version, "run"))
    if not any(each.severity == "error" for each in found):
        np.testing.assert_array_equal(np.asarray(outputs), case.result(X, version))


def outcome(kernel: Any) -> tuple[list[Finding], Any]:
    """Return findings and outputs of a run; the attribute that a module lacks is an exception at every level."""
    with collect_runs() as runs:
        try:
            run = nkitools.simulate(kernel, X.copy(), rules="report")
        except AttributeError as error:
            refused: Finding = error.finding  # type: ignore[attr-defined]
            return [*runs[0].findings, refused], None
    return run.findings, run.outputs
