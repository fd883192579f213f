"""`--nki-report DIR`: one JSON file for every test that ran a kernel."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nkitools.record.run import Run

_NOT_IN_A_NAME = re.compile(r"[^\w.=-]+")
_LONGEST_NAME = 120


def write_report(directory: str, nodeid: str, outcome: str, runs: Sequence[Run]) -> None:
    """Write what the test ``nodeid`` ran. Under ``@given`` ``runs`` are those of the last example."""
    from nkitools.report.described import described
    from nkitools.report.findings import SCHEMA

    report = {"schema": SCHEMA, "test": nodeid, "outcome": outcome, "runs": [described(run) for run in runs]}
    text = json.dumps(report, indent=2)
    (Path(directory) / file_name(nodeid)).write_text(text + "\n", encoding="utf-8")


def file_name(nodeid: str) -> str:
    """A readable file name that no other test has: what a file name cannot hold is told apart by a digest."""
    digest = hashlib.sha256(nodeid.encode()).hexdigest()[:8]
    readable = _NOT_IN_A_NAME.sub("_", nodeid).strip("_")[-_LONGEST_NAME:]
    return f"{readable}-{digest}.json"
