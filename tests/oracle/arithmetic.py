"""The operators and functions of the engines, in float64, rounded to float32 after each operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.oracle.drawing import value
from tests.oracle.state import EXACT_SUM, State, Step, Unfit, summed

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "less": np.less,
    "less_equal": np.less_equal,
}
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    **COMPARISONS,
}
BITWISE: dict[str, Callable[[Any, Any], Any]] = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
}
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "relu": lambda x: np.maximum(x, 0),
    "copy": lambda x: x,
    "square": lambda x: x * x,
    "abs": np.abs,
    "sign": np.sign,
}
SMOOTH: dict[str, Callable[[Any], Any]] = {"exp": np.exp, "tanh": np.tanh, "sigmoid": lambda x: 1 / (1 + np.exp(-x))}
WORDS = frozenset(("int32", "uint32"))  # dtypes that the GpSimd Engine computes with as they are
REDUCTIONS = ("add", "maximum", "minimum")
# What a reduction begins with, so that it changes nothing.
IDENTITY = {"add": 0.0, "subtract": 0.0, "multiply": 1.0, "maximum": -np.inf, "minimum": np.inf}


def operate(op: str, one: Any, other: Any) -> Any:
    """Return one operation of the ALU: exact, and rounded to float32 once."""
    return np.asarray(OPERATORS[op](one, other), np.float64).astype(np.float32).astype(np.float64)


def exact_words(state: State, view: Step, values: Any) -> None:
    """Write integers of 32 bits that no float32 came between."""
    limits = np.iinfo(state.dtype(view))
    if values.min() < limits.min or values.max() > limits.max:
        raise Unfit("what an integer beyond 32 bits becomes is not documented")
    state.move(view, values.astype(limits.dtype))


def scalar(state: State, step: Step, values: Any, number: int) -> Any:
    """Return what operator and operand of a number make of the values."""
    given = value(state, step[f"operand{number}"])
    pair = (given, values) if step.get(f"reverse{number}") else (values, given)
    return operate(step[f"op{number}"], *pair)


def reduced(op: str, values: Any, sum_order: str = "fast") -> Any:
    """Return the reduction of each row: a sum that is exact or in the order of elements, or an extreme."""
    if op == "add":
        return in_order(values) if sum_order == "chip" else summed(values, 1)
    return (np.max if op == "maximum" else np.min)(values, axis=1, keepdims=True)


def in_order(values: Any) -> Any:
    """Return the float32 sum of each row, one element after the other, as a chip adds."""
    total = values[:, 0]
    for column in values.T[1:]:
        total = operate("add", total, column)
    return total[:, None]


def reduce_in_lanes(state: State, engine: str, step: Step, values: Any, op: str) -> None:
    """Reduce each row into the engine's register of its partition, as ``reduce_cmd`` says, and read that out."""
    rows = slice(*step["data"]["rows"])
    begins = {"reduce": state.lanes[engine][rows], "load_reduce": step.get("reduce_init")}
    before = begins.get(step["reduce_cmd"], IDENTITY[op])
    if np.isnan(before).any():
        raise Unfit("what the registers hold is not documented")
    if op == "add" and state.sum_order == "chip":
        total = in_order(np.concatenate([np.broadcast_to(before, (len(values), 1)), values], axis=1))
    else:
        total = np.asarray(OPERATORS[op](reduced(op, values), before), np.float64)
    if op == "add" and np.abs(total).max(initial=0) > EXACT_SUM:
        raise Unfit("the sum may be rounded")
    state.lanes[engine][rows] = total
    if "reduce_res" in step:
        state.write(step["reduce_res"], total)
