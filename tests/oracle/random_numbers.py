"""Random numbers: the documents fix no bits, so that programs check laws, whose outcome is decided.

Each recipe lets the engine compare what it drew, and leaves zeros, or ones, where the law holds.
"""

from __future__ import annotations

import numpy as np

from tests.oracle.drawing import Random, array, new, number, pick, views
from tests.oracle.state import FLOATS, State, Step

WORDS = {"gpsimd": 6, "vector": 24}  # of the states of an engine's generators in one partition


def draw_rng_of_seed(random: Random, state: State) -> Step:
    """The same seed gives the same numbers, of which a narrow dtype keeps the lowest bits: their difference."""
    (dst,) = views(random, state, [pick(random, state, ("int32",))])
    return {"dst": dst, "seed": random.getrandbits(31), "dtype": random.choice(["uint8", "uint16", "uint32"])}


def do_rng_of_seed(state: State, step: Step) -> None:
    state.write(step["dst"], 0)


def draw_rng_of_state(random: Random, state: State) -> Step:
    """The same states give the same numbers; they are read back as they were set: both differences, and the states."""
    engine = random.choice(["gpsimd", "vector"])
    state.needs(*(("trn3",) if engine == "vector" else ("trn2", "trn3")))
    (dst,) = views(random, state, [pick(random, state, ("int32",))])
    rows = dst["rows"][1]
    words = [[random.getrandbits(32) for _ in range(WORDS[engine])] for _ in range(rows)]
    return {
        "dst": {**dst, "rows": [0, rows]},
        "words": array("uint32", words),
        "states": new("uint32", rows, WORDS[engine]),
        "engine": engine,
    }


def do_rng_of_state(state: State, step: Step) -> None:
    state.keep(step["states"], np.array(step["words"]["array"], np.uint32))
    state.write(step["dst"], 0)


def draw_rand2(random: Random, state: State) -> Step:
    """Numbers between two limits: one where an element is neither less nor greater."""
    state.needs("trn3")
    (dst,) = views(random, state, [pick(random, state, ("float32", "bfloat16", "int32"))])
    low = float(random.randint(-8, 8))
    return {"dst": dst, "low": low, "high": low + random.choice([1.0, 2.0, 16.0])}


def do_rand2(state: State, step: Step) -> None:
    state.write(step["dst"], 1)


def draw_dropout(random: Random, state: State) -> Step:
    """All are dropped, or none."""
    data = pick(random, state)
    same = [each for each in state.tiles if state.dtypes[each] == state.dtypes[data]]
    dst, source = views(random, state, [random.choice(same), data])
    return {"dst": dst, "data": source, "prob": random.choice([0.0, 1.0])}


def do_dropout(state: State, step: Step) -> None:
    bits = state.bits(step["data"])
    state.move(step["dst"], bits * bits.dtype.type(1 - step["prob"]))


def draw_dropout_of_some(random: Random, state: State) -> Step:
    """An element is zero, or what it was: one where it is."""
    dst, source = views(random, state, [pick(random, state, FLOATS), pick(random, state, FLOATS)])
    return {"dst": dst, "data": source, "prob": random.choice([0.25, 0.5, abs(number(random)) / 16])}


def do_dropout_of_some(state: State, step: Step) -> None:
    state.read(step["data"])
    state.write(step["dst"], 1)
