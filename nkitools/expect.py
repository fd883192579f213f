"""Negative tests: `expect_finding` passes only where a rule is reported."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self

from nkitools.facts import options
from nkitools.record.allowed_rules import allowance
from nkitools.record.run_listeners import collect_runs
from nkitools.record.run_session import told_apart
from nkitools.report.excerpt import source_line
from nkitools.rules.catalogue import rule_named

if TYPE_CHECKING:
    from nkitools.record.run import Run
    from nkitools.rules.catalogue import Rule
    from nkitools.rules.finding import Finding

_SHOWN = 10


class expect_finding:  # noqa: N801 - it is read as a sentence, as pytest.raises is
    """``with expect_finding("NK103"):`` fails (AssertionError) unless a run inside the block breaks that rule.

    ``rules``: ids, slugs or legacy codes (``err_...``). One of several is enough; nest blocks to expect all. ``line``:
    the number of the author's line, or a part of its text, which survives edits above it. ``file``: its path or the end
    of it. ``match``: a regular expression to search in the message.

    Kernels may run in any way and at any rule level; inside the block rules are on even under ``--nki-rules=off``. An
    error of the rule ends the block and is caught. An error of another rule fails the block; if the expected finding
    was reported before, it passes through instead, as all other exceptions do. ``findings`` has the expected findings,
    ``finding`` the first. ValueError without a rule, for an unknown rule, for an empty text, and for a rule that is
    allowed around the block or in a call inside of it.
    """

    def __init__(
        self, *rules: str, line: int | str | None = None, file: str | None = None, match: str | None = None
    ) -> None:
        if not rules:
            raise ValueError('expect_finding: name a rule, as in expect_finding("NK103")')
        for name, text in (("line", line), ("file", file), ("match", match)):
            if isinstance(text, str) and not text.strip():
                raise ValueError(f"expect_finding: {name}={text!r} fits every finding; write a text, or leave it out")
        self._rules = [rule_named(rule) for rule in rules]
        self._line = line
        self._file = file
        self._match = re.compile(match) if match is not None else None
        self._stack = ExitStack()
        self._runs: list[Run] = []
        self._found: list[Finding] | None = None

    def __repr__(self) -> str:
        return f"<expect_finding: {self._wanted()}>"

    @property
    def findings(self) -> list[Finding]:
        """Return the expected findings that were reported.

        RuntimeError before the block has ended, and if an exception that is no finding has ended it.
        """
        if self._found is None:
            raise RuntimeError("expect_finding: its findings are known once the block has ended")
        return self._found

    @property
    def finding(self) -> Finding:
        """Return the first of `findings`; RuntimeError if there is none, or `findings` raises it."""
        if not self.findings:
            raise RuntimeError(f"expect_finding: {self._wanted()} was not reported, so that there is no finding")
        return self.findings[0]

    def __enter__(self) -> Self:
        self._found = None
        for rule in self._rules:
            if allowance(rule.id) is not None:
                raise ValueError(f"expect_finding: {_name(rule)} is allowed here, and expected; keep one of both")
        with ExitStack() as stack:
            self._runs = stack.enter_context(collect_runs())
            stack.enter_context(told_apart(self._match))
            if options.value("rules") == "off":
                stack.enter_context(options.override(rules="error"))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        __tracebackhide__ = True
        self._stack.close()
        raised: Finding | None = getattr(error, "finding", None)
        if error is not None and raised is None:
            return False
        reported = [finding for run in self._runs for finding in (*run.findings, *run.allowed)]
        if raised is not None and not any(finding is raised for finding in reported):
            reported.append(raised)  # outside of a run
        self._found = [finding for finding in reported if self._is_expected(finding)]
        if not self._found:
            self._fail(reported, error)
        allowed = [each for run in self._runs for each in run.allowed if self._is_expected(each)]
        if allowed:
            raise ValueError(
                f"expect_finding: {allowed[0].rule} is allowed in the block (allow=), and expected; keep one"
            )
        for run in self._runs:
            run.expected += [each for each in (*run.findings, *run.allowed) if self._is_expected(each)]
        return any(finding is raised for finding in self._found)

    def _is_expected(self, finding: Finding) -> bool:
        return (
            any(finding.rule == rule.id for rule in self._rules)
            and (self._line is None or self._is_line(finding))
            and (self._file is None or _is_file(finding.file, self._file))
            and (self._match is None or self._match.search(finding.message) is not None)
        )

    def _is_line(self, finding: Finding) -> bool:
        if isinstance(self._line, str):
            return self._line in source_line(finding.file, finding.line)
        return finding.line == self._line

    def _wanted(self) -> str:
        names = " or ".join(_name(rule) for rule in self._rules)
        line = f"a line with {self._line!r}" if isinstance(self._line, str) else f"line {self._line}"
        where = [] if self._line is None else [f"at {line}"]
        where += [f"in {self._file}"] if self._file is not None else []
        where += [f"with a message that matches {self._match.pattern!r}"] if self._match is not None else []
        return " ".join([names, *where])

    def _fail(self, others: Iterable[Finding], error: BaseException | None) -> NoReturn:
        __tracebackhide__ = True
        texts = list(dict.fromkeys(finding.text() for finding in others))
        more = [f"  ... and {len(texts) - _SHOWN} more"] if len(texts) > _SHOWN else []
        instead = (
            ["reported instead:", *(f"  {text}" for text in texts[:_SHOWN]), *more] if texts else [self._silence()]
        )
        raise AssertionError("\n".join([f"expected {self._wanted()}, which was not reported", *instead])) from error

    def _silence(self) -> str:
        """Return why nothing at all was reported."""
        if not self._runs:
            return "no kernel was run in the block"
        runs = ", ".join(dict.fromkeys(f"`{run.kernel}` on {run.chip or run.target}" for run in self._runs))
        allowed = sorted({finding.rule for run in self._runs for finding in run.allowed})
        return f"no rule was reported; run were {runs}" + (f"; allowed were {', '.join(allowed)}" if allowed else "")


def _name(rule: Rule) -> str:
    return f"{rule.id} ({rule.slug})"


def _is_file(file: str, wanted: str) -> bool:
    """Return whether ``wanted`` is the path of a file, or the end of it in whole names."""
    return ("/" + file.replace(os.sep, "/")).endswith("/" + os.fspath(wanted).replace(os.sep, "/").lstrip("/"))
