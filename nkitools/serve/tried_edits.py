"""Suggested edits, tried by a run or by lint: whether the finding is gone after an edit, and which others come."""

from __future__ import annotations

import inspect
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

from nkitools.authors_code.source_text import text_of
from nkitools.edits.in_place import in_place
from nkitools.edits.source import Text
from nkitools.lint.module import Unreadable, read
from nkitools.report.findings import Tried, with_suggestions
from nkitools.serve.open_files import OpenFiles
from nkitools.suggestions.catalogue import mended, suggestions
from nkitools.suggestions.plain import suggestions_as_plain
from nkitools.why.traced_calls import Call

if TYPE_CHECKING:
    from nkitools.record.run import Run
    from nkitools.rules.finding import Finding

_MOST = 4  # edits of a run that are tried
_SECONDS = 10.0  # of the processor; after them no further edit is tried
_MOST_OF_LINT = 32


def findings_of_run(run: Run) -> list[dict[str, Any]]:
    """Return the findings of a run with suggestions as plain data; suggestions of errors have ``tried``."""
    call = Call.of_run(run) if any(suggestions_as_plain(each) for each in run.findings) else None
    made: Tried = {}
    if call is not None:
        again = partial(call.run, precision="precise", rules="report")
        made = tried(run.findings, call.launch.function, lambda: again().run)
    return with_suggestions(run.findings, made)


def tried_by_lint(findings: Sequence[Finding]) -> Tried:
    """Return the outcomes of suggested edits, by lint after each; by the numbers of the finding and the suggestion."""
    found = Tried()
    for at, finding in enumerate(findings):
        path = Path(finding.file)
        made = suggestions(finding, _text(path)) if len(found) < _MOST_OF_LINT and path.is_file() else ()
        before = _rules(path, _text(path)) if made else Counter[str]()
        for number, each in enumerate(made if before[finding.rule] else ()):  # --migrate alone finds others
            after = _rules(path, mended(_text(path), each))
            others = ", ".join(sorted(rule for rule in after - before))
            gone = f"{finding.rule} {'gone' if after[finding.rule] < before[finding.rule] else 'stays'}"
            found[at, number] = f"{gone}; {others} found" if others else gone
    return found


def _text(path: Path) -> str:
    try:
        return read(path)
    except (Unreadable, OSError):
        return ""


def _rules(path: Path, text: str) -> Counter[str]:
    return Counter(each.rule for each in OpenFiles().put(path, text).findings)


def tried(findings: Iterable[Finding], kernel: Any, again: Callable[[], Run]) -> Tried:
    """Return the outcomes of suggested edits, such as ``NK102 gone``, by the numbers of the finding and the suggestion.

    Errors in the kernel's own function are tried: ``again()`` runs the kernel with the edited text in its place.
    """
    function, found, end = inspect.unwrap(kernel), Tried(), time.process_time() + _SECONDS
    if not isinstance(function, FunctionType):
        return found
    for at, finding in enumerate(findings):
        own = finding.file == function.__code__.co_filename and finding.function == function.__name__
        for number, each in enumerate(suggestions(finding, text_of(function.__code__)) if own else ()):
            if finding.severity == "error" and len(found) < _MOST and time.process_time() < end:
                text = Text(text_of(function.__code__)).edited(each.edits)
                found[at, number] = _outcome(finding, function, text, again)
    return found


def _outcome(finding: Finding, function: FunctionType, text: str, again: Callable[[], Run]) -> str:
    try:
        with in_place(function, text):
            rules = {each.rule for each in again().findings if each.severity == "error"}
    except Exception as error:  # the edited text is the author's own, and may raise anything
        return f"not known: {type(error).__name__}"
    others = ", ".join(sorted(rules - {finding.rule}))
    gone = f"{finding.rule} {'stays' if finding.rule in rules else 'gone'}"
    return f"{gone}; {others} found" if others else gone
