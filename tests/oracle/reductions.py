"""Reductions and scans along the free dimensions and over partitions, and the registers in which engines reduce."""

from __future__ import annotations

import math

import numpy as np

from tests.oracle.arithmetic import (
    COMPARISONS,
    FUNCTIONS,
    IDENTITY,
    REDUCTIONS,
    operate,
    reduce_in_lanes,
    reduced,
    scalar,
)
from tests.oracle.drawing import Random, columns_of, new, number, operand, pick, shape_of, value, vector, views
from tests.oracle.forms import factors, reform
from tests.oracle.state import FLOATS, State, Step, Unfit, summed


def draw_tensor_reduce(random: Random, state: State) -> Step:
    """Along some of the last dimensions of up to five."""
    dst, data = views(random, state, [pick(random, state), pick(random, state)])
    dims = factors(random, shape_of(data)[1]) if random.random() < 0.7 else [shape_of(data)[1]]
    kept, keepdims = dims[: random.randrange(len(dims))], random.random() < 0.3
    places = kept + [1] * (len(dims) - len(kept)) if keepdims else kept
    if len(dims) > 1:
        data = reform(random, data, state.tiles[data["tile"]].shape[1], dims, written=False)
    dst |= {"columns": columns_of(random, state, dst["tile"], math.prod(kept))}
    if places:
        dst = reform(random, dst, state.tiles[dst["tile"]].shape[1], places, written=True)
    return {
        "dst": dst,
        "op": random.choice(["add", "maximum", "minimum"]),
        "data": data,
        "axis": [*range(1 + len(kept), 1 + len(dims))],
        "negate": random.random() < 0.3,
        "keepdims": keepdims,
    }


def do_tensor_reduce(state: State, step: Step) -> None:
    values, (rows, kept) = state.read(step["data"]), shape_of(step["dst"])
    values = reduced(step["op"], values.reshape(rows * kept, -1), state.sum_order).reshape(rows, kept)
    state.write(step["dst"], -values if step["negate"] else values)


def draw_tensor_tensor_scan(random: Random, state: State) -> Step:
    dst, one, other = views(random, state, [pick(random, state) for _ in range(3)])
    op0 = random.choice(["multiply", "add", "maximum", "minimum"])
    return {
        "dst": dst,
        "data0": one,
        "data1": other,
        "initial": number(random),
        "op0": op0,
        "op1": random.choice(["add", "maximum", "minimum", "subtract"]),
    }


def do_tensor_tensor_scan(state: State, step: Step) -> None:
    one, other = state.read(step["data0"]), state.read(step["data1"])
    result = np.full(len(one), step["initial"])
    columns = []
    for column in range(one.shape[1]):
        result = operate(step["op0"], one[:, column], result)
        result = operate(step["op1"], result, other[:, column])
        columns.append(result)
        if np.abs(result).max(initial=0) > 1e6:
            raise Unfit("a value is too large")
    state.write(step["dst"], np.stack(columns, axis=1))


def draw_tensor_scalar_reduce(random: Random, state: State) -> Step:
    dst, data = views(random, state, [pick(random, state), pick(random, state)])
    step = {
        "dst": dst,
        "data": data,
        "op0": random.choice(["add", "multiply", "subtract", "maximum", "minimum"]),
        "operand0": operand(random, state, data),
        "reduce_op": random.choice(REDUCTIONS),
        "reduce_res": vector(random, state, data),
        "reduce_cmd": random.choice(["reset_reduce", "reset_reduce", "load_reduce", "reduce"]),
    }
    if step["reduce_cmd"] == "load_reduce":
        step["reduce_init"] = float(random.randint(-9, 9))
    return step


def do_tensor_scalar_reduce(state: State, step: Step) -> None:
    values = scalar(state, step, state.read(step["data"]), 0)
    if step["reduce_res"]["tile"] == step["dst"]["tile"]:
        raise Unfit("both results in one tile")
    state.write(step["dst"], values)
    reduce_in_lanes(state, "vector", step, values, step["reduce_op"])


def draw_tensor_scalar_cumulative(random: Random, state: State) -> Step:
    """A running reduction, which begins in the registers and stays there."""
    dtypes = ("float32", "bfloat16", "float16", "int8", "uint8", "int16")
    dst, src = views(random, state, [pick(random, state, dtypes), pick(random, state, dtypes)])
    step = {
        "dst": dst,
        "src": src,
        "op0": random.choice(["add", "multiply", "subtract", "maximum", "minimum"]),
        "op1": random.choice(["add", "subtract", "multiply", "maximum", "minimum"]),
        "imm0": operand(random, state, src),
        "reduce_cmd": random.choice(["reset_reduce", "load_reduce", "reduce"]),
    }
    if step["reduce_cmd"] == "load_reduce":
        step["imm1"] = float(random.randint(-9, 9))
    return step


def do_tensor_scalar_cumulative(state: State, step: Step) -> None:
    values = operate(step["op0"], state.read(step["src"]), value(state, step["imm0"]))
    rows = slice(*step["src"]["rows"])
    begins = {"reduce": state.lanes["vector"][rows], "load_reduce": step.get("imm1")}
    before = np.broadcast_to(begins.get(step["reduce_cmd"], IDENTITY[step["op1"]]), (len(values), 1))[:, 0]
    if np.isnan(before).any():
        raise Unfit("what the registers hold is not documented")
    columns = []
    for column in values.T:
        before = operate(step["op1"], column, before)
        columns.append(before)
        if np.abs(before).max(initial=0) > 1e6:
            raise Unfit("a value is too large")
    state.write(step["dst"], np.stack(columns, axis=1))
    state.lanes["vector"][rows] = before[:, None]


def draw_tensor_partition_reduce(random: Random, state: State) -> Step:
    dst, data = views(random, state, [pick(random, state), pick(random, state)])
    rows = data["rows"][1] - data["rows"][0]
    return {
        "dst": {**dst, "rows": [0, 1]},
        "op": random.choice(["add", "maximum"]),
        "data": {**data, "rows": [0, rows]},
    }


def do_tensor_partition_reduce(state: State, step: Step) -> None:
    values = state.read(step["data"])
    state.write(step["dst"], summed(values, 0) if step["op"] == "add" else values.max(axis=0))


def draw_activation_reduce(random: Random, state: State) -> Step:
    dst, data = views(random, state, [pick(random, state), pick(random, state)])
    op, scale = random.choice(list(FUNCTIONS)), random.choice([1.0, 2.0])
    return {
        "dst": dst,
        "op": op,
        "data": data,
        "reduce_op": "add",
        "reduce_res": vector(random, state, data),
        "scale": scale,
    }


def do_activation_reduce(state: State, step: Step) -> None:
    if step["reduce_res"]["tile"] == step["dst"]["tile"]:
        raise Unfit("both results in one tile")
    values = FUNCTIONS[step["op"]](state.read(step["data"]) * step["scale"])
    values = values.astype(np.float32).astype(np.float64)  # before they are added up
    state.write(step["dst"], values)
    reduce_in_lanes(state, "scalar", step | {"reduce_cmd": "reset_reduce"}, values, "add")


def draw_select_reduce(random: Random, state: State) -> Step:
    """A choice, with the largest of each row or without."""
    names = [pick(random, state, ("float32", "bfloat16")), pick(random, state, ("uint8",)), pick(random, state, FLOATS)]
    dst, predicate, data = views(random, state, names)
    step = {
        "dst": dst,
        "predicate": predicate,
        "on_true": data,
        "on_false": random.choice([number(random), vector(random, state, data)]),
        "reverse_pred": random.random() < 0.4,
    }
    if random.random() < 0.5:
        step |= {"reduce_res": new("float32", shape_of(data)[0], 1), "reduce_op": "maximum"}
        step["reduce_cmd"] = random.choice(["reset_reduce", "reset_reduce", "reduce"])
    return step


def do_select_reduce(state: State, step: Step) -> None:
    taken = (state.read(step["predicate"]) != 0) != step["reverse_pred"]
    values = np.where(taken, state.read(step["on_true"]), value(state, step["on_false"]))
    state.write(step["dst"], values)
    if "reduce_op" in step:
        reduce_in_lanes(state, "vector", {**step, "data": step["on_true"]}, values, "maximum")
    else:
        state.lanes["vector"][slice(*step["dst"]["rows"])] = np.nan  # "may still be modified"


def draw_range_select(random: Random, state: State) -> Step:
    """Elements between two bounds, which are columns; all others become the least float32."""
    state.needs("trn2", "trn3")
    (data,) = views(random, state, [pick(random, state, FLOATS)])
    rows, columns = shape_of(data)
    names = ["equal", "less", "less_equal", "greater", "greater_equal"]
    return {
        "dst": new("float32", rows, columns),
        "on_true_tile": data,
        "comp_op0": random.choice(names),
        "comp_op1": random.choice(names),
        "bound0": vector(random, state, data),
        "bound1": vector(random, state, data),
        "range_start": random.randint(-9, 9),
        "reduce_res": new("float32", rows, 1),
        "reduce_op": "maximum",
        "reduce_cmd": "reset_reduce",
        "on_false_value": -3.4028234663852886e38,
    }


def do_range_select(state: State, step: Step) -> None:
    data = state.read(step["on_true_tile"])
    places = step["range_start"] + np.arange(data.shape[1])
    first, second = (
        COMPARISONS[step[f"comp_op{at}"]](places, state.read(step[f"bound{at}"])).astype(bool) for at in (0, 1)
    )
    values = np.where(first & second, data, step["on_false_value"])
    state.write(step["dst"], values)
    reduce_in_lanes(state, "vector", {**step, "data": step["on_true_tile"]}, values, "maximum")
