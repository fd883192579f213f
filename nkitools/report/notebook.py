"""Prints and findings as tables in notebooks, after ``%load_ext nkitools``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from nkitools.record.prints.device_print import Print
from nkitools.record.prints.print_sequence import Prints
from nkitools.rules.finding import Finding
from nkitools.rules.shown_text import shown_file

_MOST = 50  # rows of a table
_COLORS = {"error": "#c62828", "warning": "#8a5a00", "hint": "#355f8c"}


def attach(shell: Any) -> None:
    """Let a notebook's shell show prints and findings as tables."""
    html = shell.display_formatter.formatters["text/html"]
    html.for_type(Prints, prints_table)
    html.for_type(Finding, lambda finding: findings_table([finding]))
    html.for_type(list, lambda values: findings_table(values) if _are_findings(values) else None)


def detach(shell: Any) -> None:
    """Undo `attach`."""
    html = shell.display_formatter.formatters["text/html"]
    for kind in (Prints, Finding, list):
        html.pop(kind, None)


def _are_findings(values: Sequence[Any]) -> bool:
    return bool(values) and all(isinstance(each, Finding) for each in values)


def findings_table(findings: Iterable[Finding]) -> str:
    """Return findings as a table in HTML: severity, rule, place, message and remedy."""
    rows = [
        [
            f'<b style="color: {_COLORS[each.severity]}">{escape(each.severity)}</b>',
            escape(f"{each.rule} {each.slug}"),
            f"<code>{escape(shown_file(each.file))}:{each.line}</code>",
            f"{escape(each.message + each.more())}<br><small>{escape(each.remedy)}</small>",
        ]
        for each in findings
    ]
    return _table(("", "rule", "place", "what is wrong, and what to do"), rows)


def prints_table(prints: Iterable[Print]) -> str:
    """Return device prints as a table in HTML: prefix, place, tensor, numbers, and the values when they are opened."""
    rows = [
        [
            f"<b>{escape(each.prefix)}</b>",
            escape(each.place()),
            escape("" if each.is_text else each.described()),
            escape(each.numbers()),
            "" if each.is_text else _folded("values", each.values_text()),
        ]
        for each in prints
    ]
    return _table(("print", "where", "tensor", "numbers", ""), rows)


def _folded(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary><pre>{escape(text)}</pre></details>"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th style="text-align: left">{each}</th>' for each in heads)
    body = "".join(
        "<tr>" + "".join(f'<td style="text-align: left; vertical-align: top">{cell}</td>' for cell in row) + "</tr>"
        for row in rows[:_MOST]
    )
    more = f"<p>and {len(rows) - _MOST} more</p>" if len(rows) > _MOST else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
