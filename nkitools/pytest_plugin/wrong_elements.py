"""A failed assertion on a simulated result: the wrong elements, who wrote them, and what they were made from."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from hashlib import sha1
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nkitools.facts import options
from nkitools.pytest_plugin.compared_arguments import ComparedOutput, compared_outputs
from nkitools.pytest_plugin.mended import MOST_INSTRUCTIONS, mended, mended_pallas
from nkitools.rules.shown_text import shown
from nkitools.why.asked_elements import Asked
from nkitools.why.element_slices import nearest_steps

if TYPE_CHECKING:
    from nkitools.record.instruction_record import InstructionRecord
    from nkitools.record.run import Run

HEADING = "nki why"
_NEAREST = 4  # instructions before the one that wrote the element
_MOST_SAVED = 200_000  # instructions of a run that is saved for the command


def wrong_elements(config: pytest.Config, nodeid: str, failure: BaseException, runs: Sequence[Run]) -> list[str]:
    """Return five lines about a failed assertion on a result of some runs; [] if it is about something else."""
    if options.value("why") == "off" or not isinstance(failure, AssertionError):
        return []
    outputs = compared_outputs(failure, [run for run in runs if run.all_records])
    found = next((each for each in outputs if each.elements.count), None)
    lines = mended_pallas(config, failure, runs) if found is None else _lines(config, nodeid, found)
    return [shown(line) for line in lines]


# --- what is said of it ---------------------------------------------------------------------------------------------


def _lines(config: pytest.Config, nodeid: str, found: ComparedOutput) -> list[str]:
    first = found.elements.first
    number, access = [
        (number, access) for number, record in enumerate(found.run.all_records) for access in record.outputs
    ][found.place]
    wanted = np.zeros(access.layout.shape, np.bool_)
    wanted[first] = True
    steps = nearest_steps(found.run, Asked(number, access, wanted), _NEAREST + 1)
    name = found.run.all_records[number].name_of(access.storage) or f"result {found.place}"
    elements = found.elements
    lines = [
        f"first wrong: {elements.element(name, first)}; {elements.count} of {elements.size} differ",
        f"worst wrong: {elements.element(name, elements.worst)}",
        f"{name}{_shown(first)} was {f'written by {_place(steps[0])}' if steps else 'never written'}",
    ]
    if len(steps) > 1:
        lines.append(f"made from what {', '.join(_place(each) for each in steps[1:])} wrote")
    return [*lines, *_too_close(found), *mended(config, found), f"more: {_command(config, nodeid, found, first)}"]


def _too_close(found: ComparedOutput) -> list[str]:
    """Return a sentence where the test allows less than its run's dtypes and sums explain."""
    if not (found.rule.rtol or found.rule.atol) or len(found.run.instructions) > MOST_INSTRUCTIONS:
        return []
    try:
        explained = found.run.tolerance()[found.place]
    except (ValueError, IndexError):  # the run cannot be repeated
        return []
    sentence = explained.too_narrow(found.rule.rtol or 0.0, found.rule.atol or 0.0)
    return [f"tolerance: {sentence}"] if sentence else []


def _shown(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]"


def _place(one: InstructionRecord) -> str:
    where = [f"rank {one.rank}"] if one.rank is not None else []
    where += [f"program {', '.join(map(str, one.program))}"] if any(one.program) else []
    where += [f"turn {', '.join(f'{name}={value}' for name, value in one.loops.items())}"] if one.loops else []
    return f"{os.path.basename(one.file)}:{one.line} {one.name}" + (f" ({', '.join(where)})" if where else "")


def _command(config: pytest.Config, nodeid: str, found: ComparedOutput, index: tuple[int, ...]) -> str:
    """Return a command on the saved run that shows more, or, if no cache keeps the run, the call in Python."""
    call = f"run_kernel.run.why({found.place}, {index})"
    cache = getattr(config, "cache", None)
    if cache is None or len(found.run.instructions) > _MOST_SAVED:
        return call
    try:
        path = Path(cache.mkdir("nkitools")) / f"{sha1(nodeid.encode()).hexdigest()[:12]}.json"
        found.run.save(path)
    except OSError:
        return call
    shown = os.path.relpath(path, config.invocation_params.dir)
    element = ",".join(map(str, index))
    return f"nkitools why {shlex.quote(shown)} --element {element} --output {found.place}; with values: {call}"
