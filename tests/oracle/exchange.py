"""Exchanges between cores and ranks: each function works on the states of all of them.

``CORES``: steps of the two cores of a program; ``RANKS``: steps of its ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.oracle.arithmetic import OPERATORS, REDUCTIONS, WORDS
from tests.oracle.drawing import Random, new, other, pick, shape_of, views
from tests.oracle.state import EXACT_SUM, LIMITS, State, Step, Unfit, whole

CORES = ("sendrecv", "sendrecv_compute", "core_barrier")
RANKS = (
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute", "collective_permute_implicit",
    "collective_permute_implicit_reduce", "rank_id",
)  # fmt: skip
_NO_WORDS = tuple(name for name in LIMITS if name not in WORDS)  # a collective reduces no integers of 32 bits
GROUPS = {
    2: ([[0, 1]], [[1, 0]]),
    3: ([[0, 1, 2]], [[2, 0, 1]]),
    4: ([[0, 1, 2, 3]], [[0, 1], [2, 3]], [[3, 1], [0, 2]]),
}


def reduce(op: str, parts: Sequence[Any]) -> Any:
    """Return the reduction of arrays: a sum that is exact, or an extreme."""
    if op == "add":
        if sum(np.abs(whole(part)).max(initial=0) for part in parts) > EXACT_SUM:
            raise Unfit("the sum may be rounded")
        return sum(parts)
    total = parts[0]
    for part in parts[1:]:
        total = np.asarray(OPERATORS[op](total, part))
    return total


# --- two cores -------------------------------------------------------------------------------------------------------


def draw_sendrecv(random: Random, state: State) -> Step:
    """Each core sends, and receives into another tile."""
    state.needs("trn2", "trn3")
    dst = pick(random, state)
    to, src = views(random, state, [dst, other(random, state, dst)])
    return {"dst": to, "src": src}


def do_sendrecv(states: Sequence[State], step: Step) -> None:
    sent = [state.bits(step["src"]) for state in states]
    for state, received in zip(states, reversed(sent), strict=True):
        state.move(step["dst"], received)


def draw_sendrecv_compute(random: Random, state: State) -> Step:
    """Draw an exchange of two cores whose tiles are reduced."""
    if state.version == "0.6":
        raise Unfit("it came with 0.7")
    return {**draw_sendrecv(random, state), "reduce_op": random.choice(REDUCTIONS)}


def do_sendrecv_compute(states: Sequence[State], step: Step) -> None:
    total = reduce(step["reduce_op"], [state.read(step["src"]) for state in states])
    for state in states:
        state.write(step["dst"], total)


def draw_core_barrier(random: Random, state: State) -> Step:
    """Each core writes its part of shared HBM, waits, and reads the other's."""
    return draw_sendrecv(random, state)


do_core_barrier = do_sendrecv


# --- ranks -----------------------------------------------------------------------------------------------------------


def _grouped(random: Random, ranks: int) -> dict[str, Any]:
    return {"groups": random.choice(GROUPS[ranks])}


def _peers(step: Step, member: int) -> list[int]:
    return next(group for group in step["groups"] if member in group)


def draw_all_reduce(random: Random, state: State, ranks: int) -> Step:
    """The reduction of a group."""
    (src,) = views(random, state, [pick(random, state, _NO_WORDS)])
    dst = new(state.dtypes[src["tile"]], *shape_of(src)) | {"hbm": True}
    return {"dst": dst, "src": src, "op": random.choice(REDUCTIONS)} | _grouped(random, ranks)


def do_all_reduce(states: Sequence[State], step: Step) -> None:
    sent = [state.read(step["src"]) for state in states]
    for state in states:
        total = reduce(step["op"], [sent[peer] for peer in _peers(step, state.member)])
        state.write(step["dst"], fitting(total, step["dst"]["new"]))


def fitting(values: Any, dtype: str) -> Any:
    """Return values within the limits of what a program writes; else Unfit."""
    if np.abs(values).max(initial=0) > LIMITS[dtype]:
        raise Unfit("a value is too large")
    return values


def draw_all_gather(random: Random, state: State, ranks: int) -> Step:
    """The sources of a group, one below the other."""
    (src,) = views(random, state, [pick(random, state)])
    grouped = _grouped(random, ranks)
    rows, columns = shape_of(src)
    count = len(grouped["groups"][0])
    dst = new(state.dtypes[src["tile"]], rows * count, columns) | {"hbm": True}
    return {"dst": dst, "src": src} | grouped


def do_all_gather(states: Sequence[State], step: Step) -> None:
    sent = [state.bits(step["src"]) for state in states]
    for state in states:
        state.move(step["dst"], np.concatenate([sent[peer] for peer in _peers(step, state.member)]))


def _parts(random: Random, state: State, ranks: int, dtypes: Any) -> tuple[Step, int, dict[str, Any]]:
    """Return a view whose rows a group can share evenly, the rows of each, and the group."""
    (src,) = views(random, state, [pick(random, state, dtypes)])
    grouped = _grouped(random, ranks)
    count = len(grouped["groups"][0])
    rows = shape_of(src)[0] // count
    if not rows:
        raise Unfit("fewer rows than ranks")
    return {**src, "rows": [src["rows"][0], src["rows"][0] + rows * count]}, rows, grouped


def draw_reduce_scatter(random: Random, state: State, ranks: int) -> Step:
    """Each rank's part of the reduction."""
    src, rows, grouped = _parts(random, state, ranks, _NO_WORDS)
    dst = new(state.dtypes[src["tile"]], rows, shape_of(src)[1]) | {"hbm": True}
    return {"dst": dst, "src": src, "op": random.choice(REDUCTIONS)} | grouped


def do_reduce_scatter(states: Sequence[State], step: Step) -> None:
    sent, rows = [state.read(step["src"]) for state in states], step["dst"]["shape"][0]
    for state in states:
        peers = _peers(step, state.member)
        total = fitting(reduce(step["op"], [sent[peer] for peer in peers]), step["dst"]["new"])
        state.write(step["dst"], total[peers.index(state.member) * rows :][:rows])


def draw_all_to_all(random: Random, state: State, ranks: int) -> Step:
    """The n-th part of each rank to the n-th rank."""
    src, _, grouped = _parts(random, state, ranks, None)
    return {"dst": new(state.dtypes[src["tile"]], *shape_of(src)) | {"hbm": True}, "src": src} | grouped


def do_all_to_all(states: Sequence[State], step: Step) -> None:
    sent = [state.bits(step["src"]) for state in states]
    for state in states:
        peers = _peers(step, state.member)
        rows, at = step["dst"]["shape"][0] // len(peers), peers.index(state.member)
        state.move(step["dst"], np.concatenate([sent[peer][at * rows : (at + 1) * rows] for peer in peers]))


def draw_collective_permute(random: Random, state: State, ranks: int) -> Step:
    """From source to target; what is no target keeps what it had."""
    (src,) = views(random, state, [pick(random, state)])
    targets = random.sample(range(ranks), ranks)
    pairs = random.sample(list(enumerate(targets)), random.randint(1, ranks))
    return {"dst": new(state.dtypes[src["tile"]], *shape_of(src), fill=3) | {"hbm": True}, "src": src, "pairs": pairs}


def do_collective_permute(states: Sequence[State], step: Step) -> None:
    sent = [state.bits(step["src"]) for state in states]
    sources = {target: source for source, target in step["pairs"]}
    for state in states:
        source = sources.get(state.member)
        state.move(step["dst"], np.full_like(sent[0], step["dst"]["fill"]) if source is None else sent[source])


def draw_collective_permute_implicit(random: Random, state: State, ranks: int) -> Step:
    """Each rank gets what the one before it in the ring sends."""
    (src,) = views(random, state, [pick(random, state)])
    dst = new(state.dtypes[src["tile"]], *shape_of(src)) | {"hbm": True}
    return {"dst": dst, "src": src} | _grouped(random, ranks)


def do_collective_permute_implicit(states: Sequence[State], step: Step) -> None:
    sent = [state.bits(step["src"]) for state in states]
    for state in states:
        peers = _peers(step, state.member)
        state.move(step["dst"], sent[peers[peers.index(state.member) - 1]])


def draw_collective_permute_implicit_reduce(random: Random, state: State, ranks: int) -> Step:
    """The same of two sources that are reduced before."""
    tile = pick(random, state, _NO_WORDS)
    one, second = views(random, state, [tile, other(random, state, tile)])
    dst = new(state.dtypes[tile], *shape_of(one)) | {"hbm": True}
    return {"dst": dst, "src": one, "src1": second, "op": random.choice(REDUCTIONS)} | _grouped(random, ranks)


def do_collective_permute_implicit_reduce(states: Sequence[State], step: Step) -> None:
    sent = [reduce(step["op"], [state.read(step[name]) for name in ("src", "src1")]) for state in states]
    for state in states:
        peers = _peers(step, state.member)
        state.write(step["dst"], fitting(sent[peers[peers.index(state.member) - 1]], step["dst"]["new"]))


def draw_rank_id(random: Random, state: State, ranks: int) -> Step:
    """The number of the rank, and of the rank whose data it has after some steps around the ring."""
    return {"dst": new("int32", 1, 2), "iteration": random.randint(0, 5)} | _grouped(random, ranks)


def do_rank_id(states: Sequence[State], step: Step) -> None:
    for state in states:
        peers = _peers(step, state.member)
        state.write(step["dst"], [[state.member, peers[(peers.index(state.member) - step["iteration"]) % len(peers)]]])
