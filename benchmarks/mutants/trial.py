"""One mutant on trial, in a process of its own: lint, then the tests of its kernel with every rule reporting."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import linecache
import sys
import threading
import traceback
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import numpy as np

import nkitools
from benchmarks.mutants.cases import CASES
from nkitools.lint.engine import lint
from nkitools.record.run_listeners import collect_runs
from nkitools.suggestions.lint_interface import Dialects

PACKAGE = str(Path(nkitools.__file__).parent)
SEVERITIES = ("error", "warning", "hint")


class _Stopped(BaseException):
    """The kernel raised: the test goes no further. Of no class that a test or NumPy catches."""


@dataclass
class Verdict:
    """What told of a mutant. Rules are ids; ``findings`` has those of a run, by severity.

    ``reference``: what the comparison said, empty where it agreed. ``stopped``: an exception that was no finding.
    ``ours``: that came from inside nkitools. ``digests``: of the results of each test, by its number; equal where these
    are equal bit by bit. ``ended``: what limit the mutant ran into.
    """

    lint: list[str] = field(default_factory=list)
    findings: dict[str, list[str]] = field(default_factory=lambda: {severity: [] for severity in SEVERITIES})
    reference: str = ""
    stopped: str = ""
    ours: bool = False
    digests: dict[int, str] = field(default_factory=dict)
    ended: str = ""

    @property
    def by_errors(self) -> bool:
        """Whether a rule of the severity that fails a run told of it."""
        return bool(self.findings["error"])

    @property
    def by_rules(self) -> bool:
        """Whether an error or a warning told of it, in a run or in lint."""
        return bool(self.findings["error"] or self.findings["warning"] or self.lint)

    @property
    def killed(self) -> bool:
        """Whether anything did: rules, the comparison, or an exception in place of a result."""
        return bool(self.by_rules or self.reference or self.stopped or self.ended)


class Trial:
    """Runs tests of one kernel and writes down what is found on the way."""

    def __init__(self, simulate: Callable[..., Any]) -> None:
        self._simulate = simulate
        self._hash = hashlib.sha256()
        self.verdict = Verdict()

    def run_kernel(self, kernel: Any, /, *arguments: Any, **keywords: Any) -> Any:
        """As the fixture of that name: the outputs."""
        return self.simulate(kernel, *arguments, **keywords).outputs

    def simulate(self, kernel: Any, /, *arguments: Any, **keywords: Any) -> Any:
        """A run whose rules report. It gets copies: the comparison is with what the kernel was given."""
        given = [_copied(each) for each in arguments]
        with collect_runs() as runs:
            try:
                run = self._simulate(kernel, *given, **{**keywords, "rules": "report"})
            except Exception as error:
                self.note_exception(error)
                raise _Stopped from error
            finally:
                for each in runs:
                    self._note_findings(each.findings)
        if run.outputs is not None and not _same(given, arguments):
            self.verdict.reference = self.verdict.reference or "the kernel changed its inputs"
        for array in _arrays(run.outputs):
            self._hash.update(repr((array.dtype, array.shape)).encode() + np.ascontiguousarray(array).tobytes())
        return run

    def judge(self, number: int, test: Callable[..., None], arguments: dict[str, Any]) -> None:
        """Run one test; what it asserts is the comparison with the reference."""
        self._hash = hashlib.sha256()
        if "run_kernel" in test.__code__.co_varnames[: test.__code__.co_argcount]:
            arguments = {"run_kernel": self.run_kernel, **arguments}
        try:
            test(**arguments)
        except _Stopped:
            pass
        except Exception as error:
            said = " ".join(str(error).split())[:200] or "an assertion of the test"
            self.verdict.reference = self.verdict.reference or f"{type(error).__name__}: {said}"
        self.verdict.digests[number] = self._hash.hexdigest()

    def _note_findings(self, findings: Any) -> None:
        for finding in findings:
            rules = self.verdict.findings[finding.severity]
            if finding.rule not in rules:
                rules.append(finding.rule)

    def note_exception(self, error: Exception) -> None:
        """Write down what the kernel raised: a finding, or an exception in place of a result."""
        finding = getattr(error, "finding", None)
        if finding is not None:
            self._note_findings([finding])
            return
        if isinstance(error, MemoryError):
            self.verdict.ended = "more memory than it may have"
            return
        said = " ".join(str(error).split())[:200]
        self.verdict.stopped = self.verdict.stopped or f"{type(error).__name__}: {said}"
        self.verdict.ours = self.verdict.ours or _is_ours(error)


def put_on_trial(kernel: str, path: Path, numbers: Container[int] | None = None) -> Verdict:
    """The verdict on the kernels in ``path``, which takes the place of ``kernel`` for the time of the trial.

    ``numbers``: which of the tests; all where there is none. When an error has told of it the rest is left out.
    """
    trial = Trial(nkitools.simulate)
    trial.verdict.lint = sorted({each.rule for each in lint([path], interface=Dialects()).findings if _counts(each)})
    for number, judge in _tests_of(kernel, path, trial):
        if (numbers is None or number in numbers) and not trial.verdict.by_errors:
            judge()
    return trial.verdict


def functions_of_tests(kernel: str, path: Path) -> tuple[Verdict, list[set[str]]]:
    """The verdict on a kernel, and for each of its tests the functions in ``path`` that it calls."""
    trial = Trial(nkitools.simulate)
    called: list[set[str]] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename == str(path):
            called[-1].add(frame.f_code.co_name)

    for _, judge in _tests_of(kernel, path, trial):
        called.append(set())
        threading.setprofile(note)  # cores that talk have threads of their own
        sys.setprofile(note)
        try:
            judge()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    return trial.verdict, called


def _tests_of(kernel: str, path: Path, trial: Trial) -> Iterator[tuple[int, Callable[[], None]]]:
    """Each test of a kernel by its number, ready to be run on the kernels in ``path``."""
    case = CASES[kernel]
    with _in_place_of(f"kernels.nki.{kernel}", path) as stopped, _tests(case.tests) as tests:
        if stopped is not None:
            trial.note_exception(stopped)
            return
        simulate, nkitools.simulate = nkitools.simulate, trial.simulate
        try:
            for number, (name, arguments) in enumerate(case.calls(tests)):
                yield number, partial(trial.judge, number, _plain(getattr(tests, name)), arguments)
        finally:
            nkitools.simulate = simulate


def _plain(test: Callable[..., None]) -> Callable[..., None]:
    """Return a test that takes its arguments: of a Hypothesis test the function inside."""
    inside = getattr(test, "hypothesis", None)
    return test if inside is None else inside.inner_test


def _counts(finding: Any) -> bool:
    return finding.severity in ("error", "warning")


@contextmanager
def _in_place_of(name: str, path: Path) -> Iterator[Exception | None]:
    """The module in ``path`` under the name of another one; yields what importing it raised."""
    original = importlib.import_module(name)
    linecache.checkcache(str(path))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    parent = sys.modules[name.rpartition(".")[0]]
    stopped = None
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        stopped, module = error, original
    _put(parent, name, module)
    try:
        yield stopped
    finally:
        _put(parent, name, original)


def _put(parent: ModuleType, name: str, module: ModuleType) -> None:
    sys.modules[name] = module
    setattr(parent, name.rpartition(".")[2], module)


@contextmanager
def _tests(name: str) -> Iterator[ModuleType]:
    """The tests, imported anew so that they take the kernels that are in place now."""
    sys.modules.pop(name, None)
    try:
        yield importlib.import_module(name)
    finally:
        sys.modules.pop(name, None)


def _is_ours(error: BaseException) -> bool:
    """Whether an exception came out of nkitools, and not out of the kernel's own Python."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    known = [file for file in files if file.startswith(PACKAGE) or "kernels" in Path(file).parts]
    return bool(known) and known[-1].startswith(PACKAGE)


def _copied(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, (tuple, list)):
        return type(value)(_copied(each) for each in value)
    return value


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return bool(one.tobytes() == other.tobytes())
    if isinstance(one, (tuple, list)):
        return all(map(_same, one, other))
    return True


def _arrays(outputs: Any) -> Iterator[Any]:
    if isinstance(outputs, np.ndarray):
        yield outputs
    elif isinstance(outputs, (tuple, list)):
        for each in outputs:
            yield from _arrays(each)
