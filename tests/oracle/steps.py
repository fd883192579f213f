"""All instructions: how a call is drawn, and what it does.

In the modules below a function ``draw_NAME`` returns a step, a dictionary that JSON can hold, and ``do_NAME`` executes
it. Some steps are recipes of several instructions, where one alone decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

from tests.oracle import elementwise, exchange, moves, random_numbers, reductions, registers, search, tensor_engine
from tests.oracle.drawing import Random
from tests.oracle.exchange import CORES, RANKS
from tests.oracle.state import State, Step, Unfit

MODULES = (elementwise, reductions, tensor_engine, moves, search, random_numbers, registers, exchange)
# Where each one is; looked up at each call, so that a test can plant a fault.
PLACES: dict[str, ModuleType] = {
    name.removeprefix("do_"): module for module in MODULES for name in vars(module) if name.startswith("do_")
}
INSTRUCTIONS = tuple(PLACES)
ALONE = tuple(name for name in INSTRUCTIONS if name not in (*CORES, *RANKS))
_WRITTEN = ("dst", "reduce_res", "count")


def draw(name: str, random: Random, states: Sequence[State]) -> Step:
    """Return a step of an instruction; Unfit where the tiles do not allow one."""
    arguments = (random, states[0], len(states)) if name in RANKS else (random, states[0])
    step: Step = getattr(PLACES[name], f"draw_{name}")(*arguments)
    parts = [part for each in step.values() for part in (each if isinstance(each, list) else [each])]
    views = [part for part in parts if isinstance(part, dict) and "tile" in part]
    for written in (step[key] for key in _WRITTEN if isinstance(step.get(key), dict) and "tile" in step[key]):
        if any(each is not written and _share(written, each) for each in views):
            raise Unfit("an instruction would overwrite what it reads")
    for part in parts:
        if isinstance(part, dict) and "new" in part:
            part["name"] = f"r{random.getrandbits(31)}"
    return {"instruction": name, **step}


def _share(one: Step, other: Step) -> bool:
    """Return whether two views share elements in different places: an engine works on its own element at most."""
    return bool(one["tile"] == other["tile"] and one != other and _spans(one["rows"], other["rows"])
                and _spans(one["columns"], other["columns"]))  # fmt: skip


def _spans(one: list[int], other: list[int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def do(states: Sequence[State], step: Step) -> None:
    """Execute a step on all cores or ranks."""
    name = step["instruction"]
    execute = getattr(PLACES[name], f"do_{name}")
    if name in (*CORES, *RANKS):
        execute(states, step)
        return
    for state in states:
        execute(state, step)
