"""`--nki-report DIR`: a JSON file for every test that ran a kernel, and pages of runs with something wrong.

`--nki-report-pages=all` writes pages of all tests. All pages of a directory take at most `--nki-report-limit` MiB: the
JSON file and the index list pages that are left out.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from nkitools.record.run import Run

_NOT_IN_A_NAME = re.compile(r"[^\w.=-]+")
_LONGEST_NAME = 120
_MOST_PAGES = 8  # of one test: the last runs, and before them those in which something was wrong


def write_report(directory: str, nodeid: str, outcome: str, runs: Sequence[Run]) -> list[str]:
    """Write the report of the test ``nodeid``. Under ``@given`` ``runs`` are those of the last example.

    Returns the files that could not be written, and why: the test's own outcome stays as it is.
    """
    from nkitools.record.whole_file import write_whole
    from nkitools.report.findings import SCHEMA
    from nkitools.report.run_json import described

    name = file_name(nodeid)
    stem = name.removesuffix(".json")
    passed = outcome == "passed"
    differ = [_differing(run, passed=passed) for run in runs]
    pages, failed = _write_pages(Path(directory), stem, nodeid, runs, differ, outcome)
    about = [
        {"differs": count, "page": None, "page_left_out": None, **pages.get(at, {})} for at, count in enumerate(differ)
    ]
    told = [{**described(run), **more} for run, more in zip(runs, about, strict=True)]
    report = {"schema": SCHEMA, "test": nodeid, "outcome": outcome, "runs": told}
    try:
        write_whole(Path(directory) / name, json.dumps(report, indent=2) + "\n")
    except OSError as error:
        failed.append(f"{name} in {directory} cannot be written: {error.strerror or error}")
    return failed


def has_report(directory: str, nodeid: str, since: float) -> bool:
    """Return whether the report of a test has been written since a time, one second of the clock aside."""
    path = Path(directory) / file_name(nodeid)
    return path.is_file() and path.stat().st_mtime > since - 1


def _differing(run: Run, *, passed: bool) -> int | None:
    """Return the number of output elements that differ from the reference on the page; None without a reference."""
    if run.reference is None:
        return None
    from nkitools.report.page.comparison import compared

    return sum(each.count for each in compared(run.outputs, run.reference, passed=passed))


def _write_pages(
    directory: Path, stem: str, title: str, runs: Sequence[Run], differ: Sequence[int | None], outcome: str
) -> tuple[dict[int, dict[str, str]], list[str]]:
    """Return for each run's number the name of its page, or why it has none; and the errors."""
    from nkitools.facts import options
    from nkitools.report.page import write_page

    found: dict[int, dict[str, str]] = {}
    failed: list[str] = []
    of_all = options.value("report_pages") == "all"
    for number in _shown(runs):
        is_wrong = outcome == "failed" or runs[number].error is not None or runs[number].findings or differ[number]
        if not (of_all or is_wrong):
            found[number] = {"page_left_out": "passed"}
            continue
        if _size_of_pages(directory) >= float(str(options.value("report_limit"))) * (1 << 20):
            found[number] = {"page_left_out": "limit"}
            continue
        name = f"{stem}.html" if len(runs) == 1 else f"{stem}-{number + 1}.html"
        try:
            write_page(runs[number], directory / name, title=title, passed=outcome == "passed")
        except OSError as error:
            failed.append(f"page {name} in {directory} cannot be written: {error.strerror or error}")
        except Exception as error:  # a fault of ours in showing a run must not cost the test its result
            failed.append(f"page {name} of {title} is missing, which is a fault of nkitools: {error!r}")
        else:
            found[number] = {"page": name}
    return found, failed


def _size_of_pages(directory: Path) -> int:
    try:
        return sum(each.stat().st_size for each in os.scandir(directory) if each.name.endswith(".html"))
    except OSError:  # another process is about to write or to remove one
        return 0


def _shown(runs: Sequence[Run]) -> list[int]:
    """Return the numbers of the runs that get a page."""
    wrong = [at for at, run in enumerate(runs) if run.error is not None or run.findings or run.reference is not None]
    ranked = dict.fromkeys([*wrong[-_MOST_PAGES // 2 :], *range(len(runs) - 1, -1, -1)])
    return sorted(list(ranked)[:_MOST_PAGES])


def warn(item: pytest.Item, messages: Sequence[str]) -> None:
    """Show warnings at the end of the session; never as errors, whatever the filters say of warnings."""
    for message in messages:
        caught = warnings.WarningMessage(pytest.PytestWarning(message), pytest.PytestWarning, str(item.path), 0)
        about: dict[str, Any] = {"when": "runtest", "nodeid": item.nodeid, "location": None}
        item.ihook.pytest_warning_recorded.call_historic(kwargs={"warning_message": caught, **about})


def file_name(nodeid: str) -> str:
    """Return a readable, unique file name for a test; a digest stands for characters that file names cannot have."""
    digest = hashlib.sha256(nodeid.encode()).hexdigest()[:8]
    readable = _NOT_IN_A_NAME.sub("_", nodeid).strip("_")[-_LONGEST_NAME:]
    return f"{readable}-{digest}.json"
