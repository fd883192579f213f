"""The outcome of one test of a suite, and how it follows from the test's reports, exceptions and runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nkitools.rules.finding import Finding

if TYPE_CHECKING:
    import pytest

    from nkitools.record.run import Run

# In the order of the table. What is as the suite expects comes first.
KINDS = (
    "passed", "xfailed", "skipped", "missing", "device", "uncalled", "limit", "refused", "wrong", "timeout", "memory",
    "died", "error", "absent",
)  # fmt: skip
GOOD = frozenset({"passed", "xfailed", "skipped"})


class UncalledKernels(Exception):
    """No test and no script calls the kernels of a file; the text is the command that runs one."""


@dataclass
class Said:
    """One finding of a test's runs, without the values of the moment."""

    rule: str
    severity: str
    place: str  # file:line of the kernel
    message: str
    count: int = 1

    @classmethod
    def of(cls, finding: Finding, root: Path) -> Said:
        """Return what a table shows of a finding; files of the suite are named from its root."""
        file = Path(finding.file)
        name = file.relative_to(root) if file.is_relative_to(root) else file
        return cls(finding.rule, finding.severity, f"{name}:{finding.line}", finding.message)


@dataclass
class Outcome:
    """The outcome of one test."""

    test: str  # pytest's id
    kind: str  # one of KINDS
    message: str = ""  # the first line of the exception, or what the process died of
    refusal: Said | None = None  # the rule that refused the kernel
    findings: list[Said] = field(default_factory=list)  # of all runs, those of passed tests included
    runs: int = 0
    seconds: float = 0.0  # of the processor

    def as_plain(self) -> dict[str, Any]:
        """Return the fields as JSON has them."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Outcome:
        """Return the outcome that `as_plain` has made plain data of."""
        refusal = plain["refusal"] and Said(**plain["refusal"])
        return cls(**plain | {"refusal": refusal, "findings": [Said(**said) for said in plain["findings"]]})


class Seen:
    """The runs and exceptions of one test."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._findings: dict[tuple[str, str], Said] = {}
        self.exceptions: list[BaseException] = []
        self.limits: list[str] = []  # what the interpreter of TPUs cannot do for the test
        self._last_error: BaseException | None = None
        self._runs = 0

    def begun(self, run: Run) -> None:
        """Count the run; it has an error until it has ended without one."""
        self._runs += 1

    def ended(self, run: Run) -> None:
        """Keep the findings of a run and its error, not the run."""
        self._last_error = run.error
        self.found(run.findings)

    def found(self, findings: Iterable[Finding], runs: int = 0) -> None:
        """Keep findings of as many runs, which are not counted yet."""
        self._runs += runs
        for finding in findings:
            said = Said.of(finding, self._root)
            known = self._findings.setdefault((said.rule, said.place), said)
            if known is not said:
                known.count += 1

    def failed(self, error: BaseException) -> None:
        """Keep an exception of the test's setup, call or teardown."""
        self.exceptions.append(error)

    def chain(self) -> list[BaseException]:
        """Return the exceptions and those that led to them."""
        return [each for error in self.exceptions for each in _chain(error)]

    def outcome(self, test: str, reports: list[pytest.TestReport]) -> Outcome:
        """Return the outcome, from the reports of the test's phases."""
        kind, message, refusal = "passed", "", None
        if any(report.failed for report in reports):
            kind, message, refusal = self._failure()
        elif any(report.skipped for report in reports):
            kind = "xfailed" if any(hasattr(report, "wasxfail") for report in reports) else "skipped"
        return Outcome(test, kind, message, refusal, list(self._findings.values()), self._runs)

    def _failure(self) -> tuple[str, str, Said | None]:
        """Return the kind of a failure, its message, and the finding that refused the kernel.

        A suite may raise its own exception in place of the simulator's: then the error of the last run decides.
        """
        if self.limits:
            return "limit", self.limits[0], None
        chain = self.chain()
        message = _first_line(chain[0]) if chain else ""
        for each in (*chain, self._last_error):
            if isinstance(finding := getattr(each, "finding", None), Finding):
                return "refused", message, Said.of(finding, self._root)
        for kind, holds in _KINDS_BY_ERROR.items():
            if any(holds(each) for each in chain):
                return kind, message, None
        if self._runs and self._last_error is None:
            return "wrong", message, None
        return "error", message, None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and those that led to it."""
    met: list[BaseException] = []
    each: BaseException | None = error
    while each is not None and each not in met:
        met.append(each)
        yield each
        each = each.__cause__ or each.__context__


def _lacks_memory(error: BaseException) -> bool:
    """Return whether an exception says that memory ran out; torch raises a RuntimeError of its own."""
    return isinstance(error, MemoryError) or "can't allocate memory" in str(error)


_KINDS_BY_ERROR: dict[str, Callable[[BaseException], bool]] = {
    "memory": _lacks_memory,
    "missing": lambda error: isinstance(error, ModuleNotFoundError),
    "device": lambda error: type(error).__name__ == "NoDevice",
    "uncalled": lambda error: isinstance(error, UncalledKernels),
}


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]
