"""The door of the search for an edit: one command in a process of its own, its answer, and the edit applied."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.repair.loop import with_edits
from benchmarks.wrong_values.cases import Case

Plain = dict[str, Any]
REPAIRED = "repaired"
FITS = "fits"
ANSWERS = (REPAIRED, FITS, "narrowed", "not found", "reference", "right")
_SLACK = 60.0  # seconds beyond the budget, for starting and ending
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")


class Absent(Exception):
    """The command has no search for edits."""


@dataclass(frozen=True)
class Answer:
    """What the command says of a kernel."""

    kind: str  # one of ANSWERS, or what else the command said
    line: int  # of the edit; 0 without one
    text: str  # of the whole file after the edit; "" without one
    seconds: float  # until the edit was found, or to the end
    cpu: float = 0.0  # seconds of all cores, of the whole command


def check_door() -> None:
    """Raise Absent where the command takes no budget."""
    if "--seconds" not in _help(_command()):
        raise Absent("nkitools bisect has no --seconds: the search for an edit is not there")


def asked(case: Case, seconds: float, folder: Path) -> Answer:
    """Return the answer about a case: the command runs on a copy of its file, which has no history."""
    path = folder / case.path.name
    shutil.copyfile(case.path, path)
    command = [*_command(), f"{path}::kernel", "--seconds", str(seconds), "--json"]
    if "--rtol" in _help(_command()):
        rtol, atol = case.constant("tolerance")
        command += ["--rtol", str(rtol), "--atol", str(atol)]
    begin, before = time.monotonic(), os.times()
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=folder, timeout=seconds + _SLACK
        )
    except subprocess.TimeoutExpired:
        return Answer("no end", 0, "", seconds + _SLACK)
    took, after = time.monotonic() - begin, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    try:
        said = json.loads(done.stdout)
    except json.JSONDecodeError:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        return Answer(f"no answer: {''.join(last)[:120]}", 0, "", took, cpu)
    return replace(answer_of(said, case.text, took), cpu=cpu)


def answer_of(said: Plain, text: str, took: float) -> Answer:
    """Return an answer of plain data.

    ``answer`` or ``kind``; with an edit ``edits``, in the form of suggested edits, or ``diff``, a unified diff of the
    file, and ``line``, all of them perhaps in ``edit``; ``seconds``.
    """
    kind = str(said.get("answer", said.get("kind", "")))
    said = {**said, **(said.get("edit") or {})}
    edited = ""
    if said.get("edits"):
        edited = with_edits(text, said["edits"])
    elif said.get("diff"):
        edited = patched(text, said["diff"])
    line = int(said.get("line") or _first_changed(text, edited)) if edited else 0
    return Answer(kind, line, edited, float(said.get("seconds", took)))


def patched(text: str, diff: str) -> str:
    """Return a text after a unified diff. ValueError where it does not fit."""
    lines, result, place = text.splitlines(), [], 0
    for each in diff.splitlines():
        hunk = _HUNK.match(each)
        if hunk:
            start = int(hunk[1]) - (hunk[2] != "0")
            result += lines[place:start]
            place = start
        elif each.startswith(("--- ", "+++ ")) or not each:
            continue
        elif each[0] == "+":
            result.append(each[1:])
        elif each[0] in " -":
            if lines[place] != each[1:]:
                raise ValueError(f"line {place + 1} is not {each[1:]!r}")
            result += [each[1:]] if each[0] == " " else []
            place += 1
    return "\n".join([*result, *lines[place:]]) + "\n"


def _first_changed(text: str, edited: str) -> int:
    """Return the first line, from 1, in which two texts differ."""
    pairs = zip(text.splitlines(), edited.splitlines(), strict=False)
    return next((number for number, (one, other) in enumerate(pairs, 1) if one != other), len(text.splitlines()))


def _command() -> tuple[str, ...]:
    return sys.executable, "-m", "nkitools", "bisect"


@cache
def _help(command: tuple[str, ...]) -> str:
    """Return what the command says of its options."""
    return subprocess.run([*command, "--help"], capture_output=True, text=True, check=False, timeout=_SLACK).stdout
