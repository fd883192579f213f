"""One example on both simulators, each side in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nkitools.record.run import load_run
from nkitools.report.agreement import agreement

if TYPE_CHECKING:
    from nkitools.record.run import Run

EXAMPLES = Path(__file__).parents[2] / "nkitools/rules/examples"
_SECONDS = 120
# The exit status of a worker whose target is not here.
_ABSENT = 2


@dataclass(frozen=True)
class Verdict:
    """The outcome of one example."""

    name: str  # such as NK101/bad.py
    kind: str  # agree, differ, refused here, refused there, not run
    detail: str = ""


@dataclass(frozen=True)
class _Side:
    """The end of one side: a run, or why there is none."""

    run: Run | None
    refusal: str = ""
    is_absent: bool = False


def examples(pattern: str) -> Iterator[Path]:
    """Yield the examples of the rules of NKI whose names fit a pattern."""
    yield from (file for file in sorted(EXAMPLES.glob(pattern)) if file.parent.name.startswith("NK"))


def verdict_on(file: Path, python: str, scratch: Path) -> Verdict:
    """Run an example on both sides and compare. ``python`` is an interpreter that has AWS's packages."""
    name = f"{file.parent.name}/{file.name}"
    ours = _side("sim", file, sys.executable, scratch)
    theirs = _side("official", file, python, scratch)
    for side in (ours, theirs):
        if side.is_absent:
            return Verdict(name, "not run", side.refusal)
    if ours.run is None or theirs.run is None:
        if ours.run is theirs.run:
            return Verdict(name, "agree", f"both refuse: {theirs.refusal}")
        return (
            Verdict(name, "refused there", theirs.refusal) if ours.run else Verdict(name, "refused here", ours.refusal)
        )
    found = agreement(ours.run, theirs.run)
    return Verdict(name, "agree") if found.is_same else Verdict(name, "differ", found.lines()[0])


def _side(side: str, file: Path, python: str, scratch: Path) -> _Side:
    saved = scratch / f"{side}.run"
    saved.unlink(missing_ok=True)
    request = {"side": side, "file": str(file), "kernel": "kernel", "inputs": None, "save": str(saved)}
    command = [python, "-m", "nkitools.targets.comparison_worker", json.dumps(request)]
    environment = {**os.environ, "NEURON_PLATFORM_TARGET_OVERRIDE": _chip_of(file)}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False, cwd=scratch
        )
    except subprocess.TimeoutExpired:
        return _Side(None, f"had not ended after {_SECONDS} seconds")
    if done.returncode or not saved.exists():
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        return _Side(None, lines[-1] if lines else f"exit status {done.returncode}", done.returncode == _ABSENT)
    run = load_run(saved)
    refused = next((each for each in run.findings if each.severity == "error"), None)
    return _Side(run) if refused is None else _Side(None, f"{refused.rule} {refused.message}")


def _chip_of(file: Path) -> str:
    """Return the chip that an example names; trn2 where it names none."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return next((line.split('"')[1] for line in lines if line.startswith("CHIP = ")), "trn2")
