"""Programs: tiles with inputs, and steps, as plain data that is drawn with a seed."""

from __future__ import annotations

import random as _random
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.oracle.state import INTEGERS, LIMITS, State, Unfit, numpy_dtype
from tests.oracle.steps import ALONE, CORES, RANKS, do, draw

CHIPS = ("trn1", "trn2", "trn3")
VERSIONS = ("0.6", "0.7")
_ATTEMPTS = 8  # to draw one step

Program = dict[str, Any]


def program_of(
    seed: int,
    instructions: Sequence[str] = (),
    versions: Sequence[str] = VERSIONS,
    dtypes: Sequence[str] = tuple(LIMITS),
    sum_order: str = "fast",
) -> Program:
    """Return the program of a seed, of all instructions, versions and dtypes or of some.

    With ``sum_order="chip"`` its float32 tiles hold fractions, whose sums are rounded.
    """
    random = _random.Random(seed)
    rows = random.choice([1, 3, 32, 33, 64, 128])
    tiles = {
        f"t{number}": {
            "shape": [random.choice([rows, rows, 128]), random.choice([1, 5, 8, 12, 16, 20, 24, 36])],
            "dtype": random.choice([*dtypes, "float32", "bfloat16"]),
            "seed": random.randint(0, 2**31),
        }
        for number in range(random.randint(2, 4))
    }
    for tile in tiles.values():
        if tile["dtype"] in INTEGERS and random.random() < 0.4:
            tile["wide"] = True
    program: Program = {
        "seed": seed,
        "chip": random.choice(CHIPS),
        "version": random.choice(versions),
        "sum_order": sum_order,
        "cores": 1,
        "ranks": 1,
        "tiles": tiles,
        "steps": [],
    }
    for tile in tiles.values():
        tile["fractions"] = sum_order == "chip" and tile["dtype"] == "float32"
    together = random.random()
    if together < 0.2 and program["chip"] != "trn1":
        program["cores"] = 2
    elif together > 0.85:
        program["ranks"] = random.randint(2, 4)
    _draw_steps(random, program, instructions)
    return program


def _draw_steps(random: _random.Random, program: Program, instructions: Sequence[str]) -> None:
    exchanged = CORES if program["cores"] > 1 else RANKS if program["ranks"] > 1 else ()
    alone = [name for name in ALONE if not instructions or name in instructions]
    exchanged = tuple(name for name in exchanged if not instructions or name in instructions)
    states = states_of(program)
    for _ in range(random.randint(2, 7)):
        pool = exchanged if exchanged and (not alone or random.random() < 0.4) else alone
        if not pool:
            return
        name = random.choice(pool)
        for _ in range(_ATTEMPTS):
            tried = [state.copied() for state in states]
            try:
                step = draw(name, random, tried)
                do(tried, step)
            except Unfit:
                continue
            states = tried
            program["steps"].append(step)
            break


def members(program: Program) -> int:
    """Return how many cores or ranks run the program."""
    return max(int(program["cores"]), int(program.get("ranks", 1)))


def states_of(program: Program) -> list[State]:
    """Return the tiles of each core or rank before the first step."""
    states = []
    for member in range(members(program)):
        arrays = {name: input_of(tile, member) for name, tile in program["tiles"].items()}
        dtypes = {name: tile["dtype"] for name, tile in program["tiles"].items()}
        exact = dict.fromkeys(arrays, True)
        state = State(arrays, dtypes, program["chip"], exact, program["version"], member)
        state.sum_order = program.get("sum_order", "fast")
        states.append(state)
    return states


def input_of(tile: dict[str, Any], member: int = 0) -> Any:
    """Return small whole numbers, or halves, which every dtype holds."""
    random = np.random.default_rng([tile["seed"], member])
    if tile.get("fractions"):
        return random.random(tile["shape"], np.float32)
    if tile.get("wide"):
        return _wide(random, tile)
    least = 0 if tile["dtype"].startswith("uint") else -4
    values = random.integers(least, 5, tile["shape"])
    if tile["dtype"] not in INTEGERS and tile["seed"] % 3 == 0:
        values = values / 2
    return values.astype(np.float32).astype(numpy_dtype(tile["dtype"]))


def _wide(random: np.random.Generator, tile: dict[str, Any]) -> Any:
    """Return integers of the whole range of the dtype, and around those up to which float32 holds all integers."""
    limits = np.iinfo(tile["dtype"])
    anywhere = random.integers(limits.min, limits.max, tile["shape"], endpoint=True)
    edge = random.choice([2**24, 2**25, 2**31, 255, 256, 2**16], tile["shape"]) * random.choice([-1, 1], tile["shape"])
    near = np.clip(edge + random.integers(-3, 4, tile["shape"]), limits.min, limits.max)
    return np.where(random.random(tile["shape"]) < 0.5, near, anywhere).astype(tile["dtype"])


def executed(program: Program) -> list[State]:
    """Return the tiles after the last step; Unfit where a step does not belong into the program."""
    states = states_of(program)
    for step in program["steps"]:
        do(states, step)
    return states
