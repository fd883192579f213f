"""Suggested edits, tried on the run that found the mistake: whether the finding goes, and what comes in its place."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import TYPE_CHECKING, Any

from nkitools.authors_code.source_text import text_of
from nkitools.edits.in_place import in_place
from nkitools.edits.source import Text
from nkitools.suggestions.catalogue import suggestions

if TYPE_CHECKING:
    from nkitools.record.run import Run
    from nkitools.rules.finding import Finding

_MOST = 4  # edits of a run that are tried


def tried(findings: Iterable[Finding], kernel: Any, again: Callable[[], Run]) -> dict[tuple[int, int], str]:
    """Return what became of edits, by the places of a finding and of its suggestion: ``NK102 gone``, ``NK102 stays``.

    Errors in the kernel's own function are tried, by ``again()`` with the edited text in its place.
    """
    function, found = inspect.unwrap(kernel), dict[tuple[int, int], str]()
    if not isinstance(function, FunctionType):
        return found
    for at, finding in enumerate(findings):
        own = finding.file == function.__code__.co_filename and finding.function == function.__name__
        for number, each in enumerate(suggestions(finding, text_of(function.__code__)) if own else ()):
            if finding.severity == "error" and len(found) < _MOST:
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
