"""The simulator against an oracle that imports nothing of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.fuzz.kernel import outputs_of, simulated
from tests.oracle.programs import Program, executed, members
from tests.oracle.programs import program_of as program_of
from tests.oracle.state import PACKED

# Of a function that rounds: of the value in float32, and of its cast.
TOLERANCE = {"float32": 2.0**-18, "bfloat16": 2.0**-7, "float16": 2.0**-9, "float8_e4m3": 2.0**-2, "float8_e5m2": 0.5}


def disagreement(program: Program) -> str:
    """Return what differs; '' where nothing does."""
    run = simulated(program)
    errors = [each for each in run.findings if each.severity == "error"]
    if errors:
        return f"{errors[0].rule}: {errors[0].message}"
    for member, state in enumerate(executed(program)):
        found = outputs_of(program, run, member)
        wanted = {name: (tile, state.exact[name]) for name, tile in state.tiles.items()} | state.results
        unordered = _unordered(program)
        for name, (values, exact) in wanted.items():
            said = _differs(_sorted(found[name], unordered.get(name)), values, exact=exact)
            if said:
                return f"{name} of {member}: {said}"
    return ""


def _unordered(program: Program) -> dict[str, int]:
    """Return the results whose order no document says, with the columns of each 16 partitions that hold them."""
    parts = [part for step in program["steps"] for part in step.values()]
    return {part["name"]: part["unordered"] for part in parts if isinstance(part, dict) and "unordered" in part}


def _sorted(found: Any, columns: int | None) -> Any:
    if columns is None:
        return found
    found = found.copy()
    for first in range(0, len(found), 16):
        snake = np.sort(found[first : first + 16, :columns].T.reshape(-1))
        found[first : first + 16, :columns] = snake.reshape(columns, 16).T
    return found


def _differs(found: Any, wanted: Any, *, exact: bool) -> str:
    if found.dtype.names:
        element, _ = PACKED[found.dtype.names[0]]
        found = np.ascontiguousarray(found).view(np.uint8).view(element)
    tolerance = TOLERANCE.get(str(wanted.dtype), 0.0)
    one, other = found.astype(np.float64), wanted.astype(np.float64)
    if one.shape != other.shape:
        return f"shape {one.shape}, not {other.shape}"
    # 0.0 and -0.0 are the same here: which of them a maximum or a select returns no document says.
    bad = one != other if exact else np.abs(one - other) > tolerance * np.abs(other) + 1e-7
    bad |= np.isnan(one)
    if not bad.any():
        return ""
    at = tuple(int(axis[0]) for axis in np.nonzero(bad))
    return f"{one[at]:.9g} at {list(at)}, not {other[at]:.9g}; {int(bad.sum())} of {bad.size} elements differ"


def smaller(program: Program) -> Iterator[Program]:
    """Yield the same with one step, with all cores and ranks but one, or with the tiles that no step names less."""
    for number in range(len(program["steps"])):
        yield {**program, "steps": program["steps"][:number] + program["steps"][number + 1 :]}
    if members(program) > 1:
        yield {**program, "cores": 1, "ranks": 1}
    used = json.dumps(program["steps"])
    kept = {name: tile for name, tile in program["tiles"].items() if f'"{name}"' in used}
    if kept and len(kept) < len(program["tiles"]):
        yield {**program, "tiles": kept}


def names_of(program: Program) -> list[str]:
    """Return the instructions of a program."""
    return [step["instruction"] for step in program["steps"]]
