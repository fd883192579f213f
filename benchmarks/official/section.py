"""The section of a page of the documentation that holds the disagreements with AWS's simulator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.official.sides import Verdict

_BEGIN, _END = "<!-- compare-official: begin -->", "<!-- compare-official: end -->"
_MEANINGS = {
    "differ": "the values differ",
    "refused here": "nkitools refuses, AWS's simulator computes",
    "refused there": "AWS's simulator refuses, nkitools computes",
    "not run": "not run",
}


def section(verdicts: Sequence[Verdict], kernels: Sequence[str], versions: Mapping[str, str], date: str) -> str:
    """Return the section: date and versions, counts, then a line for each disagreement."""
    told = ", ".join(f"{name} {version}" for name, version in versions.items())
    counts = Counter(verdict.kind for verdict in verdicts)
    lines = [
        "## Beside AWS's own simulator",
        "",
        f"As of {date}, with {told}: of {len(verdicts)} examples of rules {counts['agree']} agree.",
        "",
        "| example | | |",
        "|---|---|---|",
        *(
            f"| {verdict.name} | {_MEANINGS[verdict.kind]} | {verdict.detail.replace('|', chr(92) + '|')} |"
            for kind in _MEANINGS
            for verdict in verdicts
            if verdict.kind == kind
        ),
        "",
        "The example kernels:",
        "",
        "```text",
        *kernels,
        "```",
    ]
    return "\n".join(lines)


def write(page: Path, text: str) -> None:
    """Put the section into a page: in place of the earlier one, else at its end."""
    before = page.read_text(encoding="utf-8") if page.exists() else "# Practice\n"
    head, _, rest = before.partition(_BEGIN)
    _, _, tail = rest.partition(_END)
    page.write_text(f"{head.rstrip()}\n\n{_BEGIN}\n{text}\n{_END}\n{tail.lstrip()}", encoding="utf-8")
