"""One program in both: what the simulator and the oracle disagree on."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tests.fuzz.kernel import simulated
from tests.oracle.programs import Program, executed, program_of
from tests.oracle.state import Unfit

# Of a function that rounds: of the value in float32, and of its cast.
TOLERANCE = {"float32": 2.0**-18, "bfloat16": 2.0**-7, "float16": 2.0**-9, "float8_e4m3": 2.0**-2, "float8_e5m2": 0.5}


def disagreement(program: Program) -> str:
    """What differs; '' where nothing does."""
    try:
        run = simulated(program)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    errors = [each for each in run.findings if each.severity == "error"]
    if errors:
        return f"{errors[0].rule}: {errors[0].message}"
    for core in range(program["cores"]):
        state = executed(program, core)
        for (name, wanted), output in zip(state.tiles.items(), run.outputs, strict=True):
            said = _differs(output[core], wanted, exact=state.exact[name], dtype=state.dtypes[name])
            if said:
                return f"{name} of core {core}: {said}"
    return ""


def _differs(found: Any, wanted: Any, *, exact: bool, dtype: str) -> str:
    one, other = found.astype(np.float64), wanted.astype(np.float64)
    # 0.0 and -0.0 are the same here: which of them a maximum or a select returns no document says.
    bad = one != other if exact else np.abs(one - other) > TOLERANCE[dtype] * np.abs(other) + 1e-7
    bad |= np.isnan(one)
    if not bad.any():
        return ""
    at = tuple(int(axis[0]) for axis in np.nonzero(bad))
    return f"{one[at]:.9g} at {list(at)}, not {other[at]:.9g}; {int(bad.sum())} of {bad.size} elements differ"


def judge(seed: int) -> tuple[Program, str]:
    """The program of a seed, and what it disagrees on."""
    program = program_of(seed)
    return program, disagreement(program)


def shrunk(program: Program) -> Program:
    """The same with as few steps, cores and tiles as disagree still."""
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for candidate in _smaller(program):
            try:
                if disagreement(candidate):
                    program, is_smaller = candidate, True
                    break
            except Unfit:
                continue
    return program


def _smaller(program: Program) -> Any:
    for number in range(len(program["steps"])):
        yield {**program, "steps": program["steps"][:number] + program["steps"][number + 1 :]}
    if program["cores"] > 1:
        yield {**program, "cores": 1}
    used = json.dumps(program["steps"])
    kept = {name: tile for name, tile in program["tiles"].items() if f'"{name}"' in used}
    if kept and len(kept) < len(program["tiles"]):
        yield {**program, "tiles": kept}
