"""Python under tracing: small kernels for each construct of the language, by lint and by a run, under each version."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from nkitools.facts import options
from nkitools.record.run_listeners import collect_runs
from nkitools.rules.finding import Finding
from tests.dialects.modern.python_under_tracing.bodies import BODIES
from tests.dialects.modern.python_under_tracing.cases import VERSIONS, Case
from tests.dialects.modern.python_under_tracing.control import CONTROL
from tests.dialects.modern.python_under_tracing.functions import FUNCTIONS
from tests.dialects.modern.python_under_tracing.long_scalars import LONG_SCALARS
from tests.dialects.modern.python_under_tracing.loops import LOOPS
from tests.dialects.modern.python_under_tracing.objects import OBJECTS
from tests.dialects.modern.python_under_tracing.scalars import SCALARS
from tests.dialects.modern.python_under_tracing.values import VALUES
from tests.lint.linted import findings
from tests.loading import loaded

CASES = {**OBJECTS, **FUNCTIONS, **VALUES, **CONTROL, **LOOPS, **BODIES, **SCALARS, **LONG_SCALARS}
X = np.random.default_rng(7).integers(-8, 9, (128, 64)).astype(np.float32)
each_case = pytest.mark.parametrize(
    ("case", "version"),
    [pytest.param(case, version, id=f"{name}-{version}") for name, case in CASES.items() for version in case.versions],
)
each_version = pytest.mark.parametrize("version", VERSIONS)


@contextmanager
def language(version: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a version hold."""
    if version == "custom":
        monkeypatch.setenv("NKI_COMPILER_FRONTEND", "custom")
    with options.override(nki_version="0.7" if version == "custom" else version):
        yield


def kernel_of(path: Path) -> Any:
    """Import a file and return its kernel."""
    return loaded(path, "traced_case").kernel


def places(found: list[Finding], version: str) -> list[tuple[str, int]]:
    """Return rules and lines; the notice about the former front end is that of every kernel.

    Cases that read a part of their argument are not about that (NK513).
    """
    kept = [each for each in found if version != "custom" or not each.message.startswith("NKI_COMPILER_FRONTEND")]
    kept = [each for each in kept if each.rule != "NK513"]
    return sorted((each.rule, each.line) for each in kept)


@each_case
def test_lint(case: Case, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lint finds what is marked, and nothing else."""
    path = tmp_path / "case.py"
    path.write_text(case.source)
    with language(version, monkeypatch):
        assert places(findings(path), version) == sorted(case.marked(version, "lint"))


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
            return list(dict.fromkeys([*runs[0].findings, refused])), None
    return run.findings, run.outputs


class Settings:
    """A host's object with a list and a number."""

    __nki_object__ = True  # as of nl.NKIObject

    def __init__(self, weights: Any) -> None:
        self.weights = weights
        self.steps = [1]
        self.launches = 0


def changing(x: Any, settings: Any) -> Any:
    """Scale by a weight, and change what the object has."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    settings.launches += 1
    settings.steps.append(2)
    nl.store(out, nl.multiply(nl.load(x), settings.launches))
    return out


@each_version
@pytest.mark.parametrize("weights", [None, X], ids=["without arrays", "with an array"])
def test_an_object_that_a_kernel_is_given(weights: Any, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel changes the host's own under 0.7, and a copy of it under 0.6; its arrays stay arrays."""
    settings = Settings(weights)
    with language(version, monkeypatch):
        run = nkitools.simulate(changing, X.copy(), settings, rules="report")
    np.testing.assert_array_equal(run.outputs, X)
    copied = version in ("0.6", "custom")
    assert (settings.launches, settings.steps) == ((0, [1]) if copied else (1, [1, 2]))
    assert settings.weights is weights


@each_version
@pytest.mark.parametrize("weights", [None, X], ids=["without arrays", "with an array"])
def test_an_object_changed_by_a_kernel_that_raises(weights: Any, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what the kernel has changed before it raises under 0.7, as in Python; under 0.6 a copy was changed."""

    def raising(x: Any, settings: Any) -> Any:
        settings.launches = 5
        settings.steps = [3]
        raise KeyError("after the change")

    settings = Settings(weights)
    with language(version, monkeypatch), pytest.raises(KeyError):
        nkitools.simulate(raising, X.copy(), settings)
    copied = version in ("0.6", "custom")
    assert (settings.launches, settings.steps) == ((0, [1]) if copied else (5, [3]))
    assert settings.weights is weights


def test_one_object_given_twice_is_one_object() -> None:
    """Under 0.7 its arrays make no two of it."""

    def both(x: Any, first: Any, second: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.multiply(nl.load(x), 2.0 if first is second else 3.0))
        return out

    settings = Settings(X)
    np.testing.assert_array_equal(nkitools.simulate(both, X.copy(), settings, settings).outputs, 2 * X)


@pytest.mark.parametrize("kind", [TypeError, ValueError])
def test_a_truth_value_is_refused_as_the_documents_say(kind: type[Exception]) -> None:
    """They name a TypeError for registers, and a ValueError for tensors."""

    def kernel(x: Any) -> Any:
        flag = nisa.register_alloc(1)
        return x if flag else None

    with pytest.raises(kind):
        nkitools.simulate(kernel, X.copy())
