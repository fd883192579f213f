"""Registers, and loops on the device whose turns they count."""

from __future__ import annotations

import numpy as np

from tests.oracle.drawing import Random, element, number, pick, views
from tests.oracle.state import INTEGERS, State, Step, Unfit, numpy_dtype

WHOLE = ("int32", "int16", "int8", "uint8", "uint16", "uint32")
_MOST_TURNS = 6


def draw_register_store(random: Random, state: State) -> Step:
    """A number into a register, from there into another one, and into a tile."""
    dst = element(random, state, pick(random, state, (*WHOLE, "float32")))
    return {"dst": dst, "value": random.randint(-300, 300)}


def do_register_store(state: State, step: Step) -> None:
    state.write(step["dst"], step["value"])


def draw_register_load(random: Random, state: State) -> Step:
    """From one tile into another one."""
    dst = element(random, state, pick(random, state, (*WHOLE, "float32")))
    return {"dst": dst, "src": element(random, state, pick(random, state, WHOLE))}


def do_register_load(state: State, step: Step) -> None:
    (number,) = state.bits(step["src"]).reshape(-1)
    dtype = state.dtype(step["dst"])
    if dtype not in INTEGERS:
        state.write(step["dst"], number)
    elif not np.iinfo(dtype).min <= number <= np.iinfo(dtype).max:
        raise Unfit("what a register leaves in a narrower integer is not documented")
    else:
        state.move(step["dst"], numpy_dtype(dtype).type(number))


def draw_scalar_store(random: Random, state: State) -> Step:
    """From one tile into another one, by a scalar, which keeps the dtype."""
    if state.version == "0.6":
        raise Unfit("it came with 0.7")
    dst, src = (element(random, state, pick(random, state, ("int32",))) for _ in range(2))
    return {"dst": dst, "src": src}


def do_scalar_store(state: State, step: Step) -> None:
    state.move(step["dst"], state.bits(step["src"]))


def draw_device_loop(random: Random, state: State) -> Step:
    """As many turns as an element says, each of which adds a number."""
    (dst,) = views(random, state, [pick(random, state)])
    count = element(random, state, pick(random, state, WHOLE))
    return {"dst": dst, "count": count, "operand": number(random)}


def do_device_loop(state: State, step: Step) -> None:
    (turns,) = state.read(step["count"]).reshape(-1)
    if not 0 <= turns <= _MOST_TURNS:
        raise Unfit("too many turns, or fewer than none")
    for _ in range(int(turns)):
        state.write(step["dst"], state.read(step["dst"]) + step["operand"])


def draw_while_loop(random: Random, state: State) -> Step:
    """Turns until an element, of which each takes one away, is zero."""
    (dst,) = views(random, state, [pick(random, state)])
    return {"dst": dst, "count": element(random, state, pick(random, state, ("int32",))), "operand": number(random)}


def do_while_loop(state: State, step: Step) -> None:
    do_device_loop(state, step)
    if step["count"]["tile"] == step["dst"]["tile"]:
        raise Unfit("the loop would change its own counter")
    state.write(step["count"], 0)
