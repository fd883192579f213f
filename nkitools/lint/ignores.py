"""``# nki: ignore[NK601] why``: findings that the author has looked at, on their line or on the one below."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from functools import lru_cache

from nkitools.facts.light_classes import dataclass, field
from nkitools.rules.catalogue import RULES
from nkitools.rules.finding import Finding

_COMMENT = r"#\s*nki:\s*ignore(?P<list>\[(?P<ids>[^\]]*)\])?\s*(?P<reason>.*)"
_FORM = "Write # nki: ignore[NK601] and, after it, why."


@dataclass(eq=False)
class Ignore:
    """One comment. ``lines``: where it holds."""

    line: int
    column: int
    ids: tuple[str, ...]
    reason: str
    lines: frozenset[int]
    used: set[str] = field(default_factory=set)


def ignores_of(text: str) -> list[Ignore]:
    """Return the comments of a file."""
    return [Ignore(*each) for each in _comments(text)] if "nki:" in text else []


@lru_cache(maxsize=256)
def _comments(text: str) -> list[tuple[int, int, tuple[str, ...], str, frozenset[int]]]:
    found = []
    for token in _tokens(text):
        match = re.match(_COMMENT, token.string) if token.type == tokenize.COMMENT else None
        if match is not None:
            line, offset = token.start
            alone = not token.line[:offset].strip()
            ids = tuple(each.strip() for each in (match["ids"] or "").split(",") if each.strip())
            reason = match["reason"].strip().lstrip("-:#").strip()
            found.append((line, offset + 1, ids, reason, frozenset({line, line + 1} if alone else {line})))
    return found


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    try:
        yield from tokenize.generate_tokens(io.StringIO(text).readline)
    except (tokenize.TokenError, SyntaxError):
        return


def without_ignored(findings: Iterable[Finding], ignores: list[Ignore]) -> list[Finding]:
    """Return the findings that no ignore comment with a reason covers."""
    kept = []
    for finding in findings:
        speaking = [each for each in ignores if finding.line in each.lines and finding.rule in each.ids]
        for each in speaking:
            each.used.add(finding.rule)
        if not any(each.reason for each in speaking):
            kept.append(finding)
    return kept


def is_ignored(text: str, rule: str, line: int) -> bool:
    """Return whether an ignore comment with a reason covers a rule at a line of a file."""
    return any(each.reason and line in each.lines and rule in each.ids for each in ignores_of(text))


def wrong_ignores(ignores: list[Ignore], file: str) -> Iterator[Finding]:
    """Yield NK619 for ignore comments without a reason, of unknown rules, and those that ignore nothing.

    A comment of a rule that only a run can report is left alone.
    """
    from nkitools.lint.checks import RULES as CHECKED  # all of them, which a run that only reads comments does not need

    for each in ignores:
        unknown = [name for name in each.ids if name not in RULES]
        idle = [name for name in each.ids if name in CHECKED and name not in each.used]
        if not each.ids:
            yield _finding(each, file, "the comment names no rule, and ignores nothing", _FORM)
        elif unknown:
            yield _finding(each, file, f"{', '.join(unknown)} is no rule", "`nkitools rules` lists them.")
        elif not each.reason:
            yield _finding(each, file, "the comment gives no reason, and ignores nothing", _FORM)
        elif idle:
            yield _finding(each, file, f"nothing here is {', '.join(idle)}", "Take the comment out.")


def _finding(ignore: Ignore, file: str, message: str, remedy: str) -> Finding:
    return Finding.of("NK619", message, (file, ignore.line, ""), remedy=remedy, column=ignore.column)
