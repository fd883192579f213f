"""All instructions: how a call is drawn, and what it does.

In the modules below a function ``draw_NAME`` returns a step, a dictionary that JSON can hold, and ``do_NAME`` executes
it. Some steps are recipes of several instructions, where one alone decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from tests.oracle import elementwise, exchange, moves, random_numbers, reductions, registers, search, tensor_engine
from tests.oracle.drawing import Random
from tests.oracle.exchange import CORES, RANKS
from tests.oracle.forms import count_of, factors, places, reform
from tests.oracle.state import State, Step, Unfit

MODULES = (elementwise, reductions, tensor_engine, moves, search, random_numbers, registers, exchange)
# Where each one is; looked up at each call, so that a test can plant a fault.
PLACES: dict[str, ModuleType] = {
    name.removeprefix("do_"): module for module in MODULES for name in vars(module) if name.startswith("do_")
}
INSTRUCTIONS = tuple(PLACES)
ALONE = tuple(name for name in INSTRUCTIONS if name not in (*CORES, *RANKS))
_WRITTEN = ("dst", "reduce_res", "count")
_FORMED = 0.6  # of the steps: with views of more dimensions
# Operands that stay rows and columns, with the reason.
FLAT: dict[str, dict[str, str]] = {
    "tensor_reduce": dict.fromkeys(("dst", "data"), "its drawing chooses the dimensions, of which the axes name some"),
    "dma_transpose": dict.fromkeys(("dst", "src"), "its drawing chooses the dimensions, which change places"),
    "topk": dict.fromkeys(("val_dst", "idx_dst"), "rows and columns, as documented"),
    "nc_find_index8": {"dst": "rows and columns, as documented"},
    "nc_match_replace8": {"dst_idx": "rows and columns, as documented"},
    "rng_of_state": dict.fromkeys(("words", "states"), "rows and columns, as documented"),
    "dma_load": {"src": "`view` has its dimensions"},
    "dma_store": dict.fromkeys(("dst", "table"), "`view` has its dimensions"),
    "rank_id": {"dst": "two registers are stored, each into an element of its own"},
    "nc_transpose": {"dst": "its two dimensions are those of the data, exchanged"},
}
# Instructions whose operands have one shape.
SHAPED = (*RANKS, "sendrecv", "sendrecv_compute", "core_barrier", "dropout")
# How many dimensions documents allow for an operand of an instruction (* for all) in an NKI version, if not five.
LIMITED = {
    ("max8", "src", "0.6"): 3, ("max8", "dst", "0.6"): 2, ("max8", "dst", "0.7"): 3,
    ("exponential", "*", "*"): 4, ("tensor_scalar_reduce", "*", "0.7"): 4, ("tensor_copy_predicated", "*", "0.7"): 4,
    ("bn_aggr", "dst", "0.7"): 3, ("nc_find_index8", "*", "*"): 3, ("nc_match_replace8", "*", "*"): 3,
}  # fmt: skip


def draw(name: str, random: Random, states: Sequence[State]) -> Step:
    """Return a step of an instruction; Unfit where the tiles do not allow one."""
    arguments = (random, states[0], len(states)) if name in RANKS else (random, states[0])
    step: Step = getattr(PLACES[name], f"draw_{name}")(*arguments)
    if random.random() < _FORMED:
        step = formed(random, states[0], name, step)
    parts = [part for each in step.values() for part in (each if isinstance(each, list) else [each])]
    views = [part for part in parts if isinstance(part, dict) and "tile" in part]
    widths = {view["tile"]: states[0].tiles[view["tile"]].shape[1] for view in views}
    for written in (step[key] for key in _WRITTEN if isinstance(step.get(key), dict) and "tile" in step[key]):
        if any(each is not written and _share(written, each, widths) for each in views):
            raise Unfit("an instruction would overwrite what it reads")
    for part in parts:
        if isinstance(part, dict) and "new" in part:
            part["name"] = f"r{random.getrandbits(31)}"
    return {"instruction": name, **step}


def formed(random: Random, state: State, name: str, step: Step) -> Step:
    """Give operands more dimensions: those of one step the same ones, or each its own."""
    shared: dict[int, list[int]] | None = {} if name in SHAPED or random.random() < 0.6 else None

    def other(key: str, part: Any) -> Any:
        if isinstance(part, list):
            return [other(key, each) for each in part]
        if not isinstance(part, dict) or key in FLAT.get(name, {}) or (name not in SHAPED and random.random() < 0.2):
            return part
        count = count_of(part)
        if count == 1:
            return part
        made = factors(random, count, _most(state, name, key) - 1)
        dims = made if shared is None else shared.setdefault(count, made)
        if "tile" not in part:
            return {**part, "dims": dims}
        return reform(random, part, state.tiles[part["tile"]].shape[1], dims, written=key in _WRITTEN)

    return {key: other(key, part) for key, part in step.items()}


def _most(state: State, name: str, key: str) -> int:
    """Return how many dimensions the documents allow, that of the partitions included."""
    return min(LIMITED.get((name, at, version), 5) for at in (key, "*") for version in (state.version, "*"))


def _share(one: Step, other: Step, widths: dict[str, int]) -> bool:
    """Return whether two views share elements in different places: an engine works on its own element at most."""
    if one["tile"] != other["tile"] or not _spans(one["rows"], other["rows"]):
        return False
    first, second = (places(each, widths[one["tile"]]).reshape(-1) for each in (one, other))
    if one["rows"] == other["rows"] and np.array_equal(first, second):
        return False
    return bool(np.intersect1d(first, second).size)


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
