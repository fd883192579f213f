"""The index of a report directory: its tests, their outcomes, and the pages of their runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

from nkitools.record.whole_file import write_whole
from nkitools.report.page.document import environment, read_asset

_GRAVE = {"failed": 0, "error": 0, "skipped": 2, "passed": 3}


def write_index(directory: Path, path: Path) -> tuple[int, list[str]]:
    """Write the index of the JSON reports in ``directory``; return the number of tests, and the files left out.

    OSError if the index cannot be written; without tests nothing is written.
    """
    tests, skipped = [], []
    for file in sorted(directory.glob("*.json")):
        try:
            tests.append(_test(json.loads(file.read_text(encoding="utf-8")), directory, path))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            skipped.append(f"{file} is no report of a test: {type(error).__name__}: {error}")
    if tests:
        tests.sort(key=lambda test: (_GRAVE.get(test["outcome"], 1), not _has_more(test), test["name"]))
        template = environment().from_string(read_asset("index.html.j2"))
        reasons = [run["left_out"] for test in tests for run in test["runs"]]
        left_out = {why: reasons.count(why) for why in ("passed", "limit")}
        told = {"left_out": left_out, "size": _size_of_pages(directory)}
        text = template.render(tests=tests, style=read_asset("page.css"), directory=directory.name, **told)
        write_whole(path, text)
    return len(tests), skipped


def _test(report: dict[str, Any], directory: Path, path: Path) -> dict[str, Any]:
    runs = [
        {
            "kernel": str(run["kernel"]),
            "chip": str(run["chip"]),
            "instructions": int(run["instructions"]),
            "findings": [f"{each['rule']} {each['slug']}" for each in run["findings"]],
            "prints": len(run["prints"]),
            "error": run["error"],
            "differs": _difference(run.get("differs")),
            "page": _link(run.get("page"), directory, path),
            "left_out": run.get("page_left_out"),
        }
        for run in report["runs"]
    ]
    return {"name": str(report["test"]), "outcome": str(report["outcome"]), "runs": runs}


def _has_more(test: dict[str, Any]) -> bool:
    """Return whether a test has findings or differing outputs."""
    return any(run["findings"] or run["differs"] not in ("", "agrees") for run in test["runs"])


def _difference(count: Any) -> str:
    """Return the number of elements in which outputs differ from the reference, in words; '' without a reference."""
    if not isinstance(count, int):
        return ""
    return f"{count:,} element{'' if count == 1 else 's'}" if count else "agrees"


def _size_of_pages(directory: Path) -> str:
    return f"{sum(each.stat().st_size for each in directory.glob('*.html')) / (1 << 20):.1f} MiB"


def _link(page: Any, directory: Path, path: Path) -> str | None:
    """Return the path of a page relative to the index; None if there is none."""
    if not isinstance(page, str) or os.path.basename(page) != page or not (directory / page).is_file():
        return None
    relative = os.path.relpath(directory / page, path.parent)
    return quote(relative.replace(os.sep, "/"))
