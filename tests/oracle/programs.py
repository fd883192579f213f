"""Programs: tiles with inputs, and steps, as plain data that is drawn with a seed."""

from __future__ import annotations

import random as _random
from typing import Any

import numpy as np

from tests.oracle.state import INTEGERS, LIMITS, State, Unfit, numpy_dtype
from tests.oracle.steps import INSTRUCTIONS, do, draw

CHIPS = ("trn1", "trn2", "trn3")
VERSIONS = ("0.6", "0.7")

Program = dict[str, Any]


def program_of(seed: int) -> Program:
    """The program of a seed."""
    random = _random.Random(seed)
    rows = random.choice([1, 3, 32, 33, 64, 128])
    tiles = {
        f"t{number}": {
            "shape": [random.choice([rows, rows, 128]), random.choice([1, 5, 8, 16, 20])],
            "dtype": random.choice([*LIMITS, "float32", "bfloat16"]),
            "seed": random.randint(0, 2**31),
        }
        for number in range(random.randint(2, 4))
    }
    program: Program = {
        "seed": seed,
        "chip": random.choice(CHIPS),
        "version": random.choice(VERSIONS),
        "cores": random.choice([1, 1, 1, 2]),
        "tiles": tiles,
        "steps": [],
    }
    if program["chip"] == "trn1":
        program["cores"] = 1
    states = [state_of(program, core) for core in range(program["cores"])]
    for _ in range(random.randint(1, 5)):
        name = random.choice(INSTRUCTIONS)
        for _ in range(8):  # attempts
            tried = [state.copied() for state in states]
            try:
                step = draw(name, random, tried[0])
                for state in tried:
                    do(state, step)
            except Unfit:
                continue
            states = tried
            program["steps"].append(step)
            break
    return program


def state_of(program: Program, core: int = 0) -> State:
    """The tiles before the first step."""
    arrays = {name: input_of(tile, core) for name, tile in program["tiles"].items()}
    dtypes = {name: tile["dtype"] for name, tile in program["tiles"].items()}
    return State(arrays, dtypes, program["chip"], dict.fromkeys(arrays, True))


def input_of(tile: dict[str, Any], core: int = 0) -> Any:
    """Small whole numbers, which every dtype holds."""
    random = np.random.default_rng([tile["seed"], core])
    least = 0 if tile["dtype"] == "uint8" else -4
    values = random.integers(least, 5, tile["shape"])
    if tile["dtype"] not in INTEGERS and tile["seed"] % 3 == 0:
        values = values / 2
    return values.astype(np.float32).astype(numpy_dtype(tile["dtype"]))


def executed(program: Program, core: int = 0) -> State:
    """The tiles after the last step; Unfit where a step does not belong into the program."""
    state = state_of(program, core)
    for step in program["steps"]:
        do(state, step)
    return state
