"""The instructions: how a call is drawn, and what it does.

Each function ``draw_NAME`` returns a step, a dictionary that JSON can hold; ``do_NAME`` executes it. Views of one step
have the same rows, since engines work partition by partition.
"""

from __future__ import annotations

import random as _random
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.oracle.state import FLOATS, INTEGERS, State, Step, Unfit, numpy_dtype, summed, whole

Random = _random.Random

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
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
    **_COMPARISONS,
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


def operate(op: str, one: Any, other: Any) -> Any:
    """One operation of the ALU: exact, and rounded to float32 once."""
    return np.asarray(OPERATORS[op](one, other), np.float64).astype(np.float32).astype(np.float64)


# --- views -----------------------------------------------------------------------------------------------------------


def rows_of(random: Random, state: State, tiles: list[str]) -> list[int]:
    """Rows that all of the tiles have; they begin where an engine can begin."""
    count = min(state.tiles[each].shape[0] for each in tiles)
    starts = [0, *(start for start in (32, 64, 96) if start < count)]
    start = random.choice([0, random.choice(starts)])
    most = min(count - start, {0: 128, 32: 32, 64: 64, 96: 32}[start])
    return [start, start + random.choice([most, random.randint(1, most)])]


def columns_of(random: Random, state: State, tile: str, count: int) -> list[int]:
    """So many columns of a tile, next to each other or every second one."""
    width = state.tiles[tile].shape[1]
    step = random.choice([1, 1, 1, 2]) if 2 * count - 1 <= width else 1
    span = step * (count - 1) + 1
    left = random.choice([0, random.randint(0, width - span)])
    return [left, left + span, step]


def views(random: Random, state: State, tiles: list[str]) -> list[Step]:
    """Views of one form on tiles."""
    rows = rows_of(random, state, tiles)
    width = min(state.tiles[each].shape[1] for each in tiles)
    count = random.choice([width, random.randint(1, width)])
    return [{"tile": each, "rows": rows, "columns": columns_of(random, state, each, count)} for each in tiles]


def vector(random: Random, state: State, like: Step) -> Step:
    """One column of a float32 tile, in the rows of another view."""
    tile = pick(random, state, ("float32",))
    if state.tiles[tile].shape[0] < like["rows"][1]:
        raise Unfit("too few rows")
    return {"tile": tile, "rows": like["rows"], "columns": columns_of(random, state, tile, 1)}


def pick(random: Random, state: State, dtypes: Any = None) -> str:
    """A tile, of some dtypes."""
    found = [name for name in state.tiles if dtypes is None or state.dtypes[name] in dtypes]
    if not found:
        raise Unfit("no tile of that dtype")
    return random.choice(found)


def number(random: Random) -> float:
    """A number of few bits."""
    return random.choice([0.0, 1.0, -1.0, 2.0, 0.5, -3.0, float(random.randint(-8, 8))])


def operand(random: Random, state: State, like: Step) -> Any:
    """A number, or a column."""
    return number(random) if random.random() < 0.6 else vector(random, state, like)


def value(state: State, given: Any) -> Any:
    """The values of an operand."""
    return state.read(given) if isinstance(given, dict) else given


# --- copies and fills ------------------------------------------------------------------------------------------------


def draw_tensor_copy(random: Random, state: State) -> Step:
    dst, src = views(random, state, [pick(random, state), pick(random, state)])
    return {"dst": dst, "src": src}


def do_tensor_copy(state: State, step: Step) -> None:
    state.write(step["dst"], state.read(step["src"]))


def draw_memset(random: Random, state: State) -> Step:
    (dst,) = views(random, state, [pick(random, state)])
    return {"dst": dst, "value": float(random.randint(0, 9))}


def do_memset(state: State, step: Step) -> None:
    state.write(step["dst"], step["value"])


def draw_iota(random: Random, state: State) -> Step:
    (dst,) = views(random, state, [pick(random, state, ("int32", "float32"))])
    count = (dst["columns"][1] - dst["columns"][0] - 1) // dst["columns"][2] + 1
    return {
        "dst": dst,
        "pattern": [[random.randint(-3, 3), count]],
        "offset": random.randint(-9, 9),
        "channel_multiplier": random.randint(-2, 2),
    }


def do_iota(state: State, step: Step) -> None:
    ((stride, count),) = step["pattern"]
    rows = step["dst"]["rows"][1] - step["dst"]["rows"][0]
    values = step["offset"] + step["channel_multiplier"] * np.arange(rows)[:, None] + stride * np.arange(count)[None]
    state.write(step["dst"], values)


def draw_dma_copy(random: Random, state: State) -> Step:
    """A DMA moves bytes of one dtype, to other rows too."""
    dst = pick(random, state)
    same = [each for each in state.tiles if state.dtypes[each] == state.dtypes[dst] and each != dst]
    if not same:
        raise Unfit("no other tile of that dtype")
    dst_view, src_view = views(random, state, [dst, random.choice(same)])
    rows = dst_view["rows"][1] - dst_view["rows"][0]
    start = random.randint(0, state.tiles[src_view["tile"]].shape[0] - rows)
    return {"dst": dst_view, "src": {**src_view, "rows": [start, start + rows]}}


def do_dma_copy(state: State, step: Step) -> None:
    state.write(step["dst"], state.read(step["src"]))


# --- element by element ----------------------------------------------------------------------------------------------


def draw_tensor_tensor(random: Random, state: State) -> Step:
    names = [pick(random, state) for _ in range(3)]
    dtypes = {state.dtypes[each] for each in names}
    dst, one, other = views(random, state, names)
    pool = list(BITWISE) if len(dtypes) == 1 and dtypes <= INTEGERS and random.random() < 0.5 else list(OPERATORS)
    return {"dst": dst, "data1": one, "data2": other, "op": random.choice(pool)}


def do_tensor_tensor(state: State, step: Step) -> None:
    if step["op"] in BITWISE:
        state.write(step["dst"], BITWISE[step["op"]](state.bits(step["data1"]), state.bits(step["data2"])))
    else:
        state.write(step["dst"], operate(step["op"], state.read(step["data1"]), state.read(step["data2"])))


def draw_tensor_scalar(random: Random, state: State) -> Step:
    dst, data = views(random, state, [pick(random, state), pick(random, state)])
    step = {
        "dst": dst,
        "data": data,
        "op0": random.choice(list(OPERATORS)),
        "operand0": operand(random, state, data),
        "reverse0": random.random() < 0.3,
    }
    if random.random() < 0.5:
        step |= {"op1": random.choice(list(OPERATORS)), "operand1": operand(random, state, data)}
        step["reverse1"] = random.random() < 0.3
    return step


def _scalar(state: State, step: Step, values: Any, number: int) -> Any:
    given = value(state, step[f"operand{number}"])
    pair = (given, values) if step.get(f"reverse{number}") else (values, given)
    return operate(step[f"op{number}"], *pair)


def do_tensor_scalar(state: State, step: Step) -> None:
    values = _scalar(state, step, state.read(step["data"]), 0)
    state.write(step["dst"], _scalar(state, step, values, 1) if "op1" in step else values)


def draw_scalar_tensor_tensor(random: Random, state: State) -> Step:
    dst, data, other = views(random, state, [pick(random, state) for _ in range(3)])
    return {
        "dst": dst,
        "data": data,
        "op0": random.choice(list(OPERATORS)),
        "operand0": operand(random, state, data),
        "op1": random.choice(list(OPERATORS)),
        "operand1": other,
        "reverse0": random.random() < 0.3,
        "reverse1": random.random() < 0.3,
    }


def do_scalar_tensor_tensor(state: State, step: Step) -> None:
    values = _scalar(state, step, state.read(step["data"]), 0)
    state.write(step["dst"], _scalar(state, step, values, 1))


def draw_activation(random: Random, state: State) -> Step:
    dst, data = views(random, state, [pick(random, state), pick(random, state)])
    step = {
        "dst": dst,
        "op": random.choice([*FUNCTIONS, *SMOOTH]),
        "data": data,
        "scale": random.choice([1.0, 0.5, -2.0]),
    }
    if random.random() < 0.4:
        step["bias"] = vector(random, state, data)
    return step


def do_activation(state: State, step: Step) -> None:
    values = state.read(step["data"]) * step["scale"]
    if "bias" in step:
        values = values + state.read(step["bias"])
    if (values != values.astype(np.float32)).any():
        raise Unfit("scale and bias may round once or twice")
    if step["op"] in SMOOTH:
        if np.abs(values).max(initial=0) > 6:
            raise Unfit("the function's values are too large")
        state.write(step["dst"], SMOOTH[step["op"]](values), exact=False)
    else:
        state.write(step["dst"], FUNCTIONS[step["op"]](values))


def draw_reciprocal(random: Random, state: State) -> Step:
    dst, data = views(random, state, [pick(random, state, FLOATS), pick(random, state)])
    return {"dst": dst, "data": data}


def do_reciprocal(state: State, step: Step) -> None:
    values = state.read(step["data"])
    mantissas, _ = np.frexp(values)
    if (np.abs(mantissas) != 0.5).any():
        raise Unfit("a reciprocal may be rounded in several ways")
    state.write(step["dst"], 1 / values)


# --- selections ------------------------------------------------------------------------------------------------------


def draw_tensor_copy_predicated(random: Random, state: State) -> Step:
    data = pick(random, state)
    same = [each for each in state.tiles if state.dtypes[each] == state.dtypes[data]]
    dst, src, predicate = views(random, state, [random.choice(same), data, pick(random, state, ("uint8",))])
    return {"dst": dst, "src": src, "predicate": predicate, "reverse_pred": random.random() < 0.4}


def do_tensor_copy_predicated(state: State, step: Step) -> None:
    taken = (state.read(step["predicate"]) != 0) != step["reverse_pred"]
    state.write(step["dst"], np.where(taken, state.read(step["src"]), state.read(step["dst"])))


def draw_affine_select(random: Random, state: State) -> Step:
    dst, data = views(random, state, [pick(random, state), pick(random, state)])
    count = (dst["columns"][1] - dst["columns"][0] - 1) // dst["columns"][2] + 1
    return {
        "dst": dst,
        "pattern": [[random.randint(-2, 2), count]],
        "channel_multiplier": random.randint(-2, 2),
        "on_true_tile": data,
        "on_false_value": number(random),
        "cmp_op": random.choice(["equal", "not_equal", "greater", "greater_equal", "less", "less_equal"]),
        "offset": random.randint(-9, 9),
    }


def do_affine_select(state: State, step: Step) -> None:
    ((stride, count),) = step["pattern"]
    data = state.read(step["on_true_tile"])
    places = (
        step["offset"] + step["channel_multiplier"] * np.arange(len(data))[:, None] + stride * np.arange(count)[None]
    )
    taken = _COMPARISONS[step["cmp_op"]](places, 0)
    state.write(step["dst"], np.where(taken, data, step["on_false_value"]))


# --- reductions ------------------------------------------------------------------------------------------------------


def _reduced(op: str, values: Any) -> Any:
    if op == "add":
        return summed(values, 1)
    return (np.max if op == "maximum" else np.min)(values, axis=1, keepdims=True)


def draw_tensor_reduce(random: Random, state: State) -> Step:
    dst, data = views(random, state, [pick(random, state), pick(random, state)])
    return {
        "dst": {**dst, "columns": [dst["columns"][0], dst["columns"][0] + 1, 1]},
        "op": random.choice(["add", "maximum", "minimum"]),
        "data": data,
        "axis": 1,
        "negate": random.random() < 0.3,
    }


def do_tensor_reduce(state: State, step: Step) -> None:
    values = _reduced(step["op"], state.read(step["data"]))
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


def draw_max8(random: Random, state: State) -> Step:
    dst, src = views(random, state, [pick(random, state, ("float32",)), pick(random, state, FLOATS)])
    if state.tiles[dst["tile"]].shape[1] < 8 or (src["columns"][1] - src["columns"][0] - 1) // src["columns"][2] < 7:
        raise Unfit("fewer than eight columns")
    return {"dst": {**dst, "columns": columns_of(random, state, dst["tile"], 8)}, "src": src}


def do_max8(state: State, step: Step) -> None:
    state.write(step["dst"], -np.sort(-state.read(step["src"]), axis=1)[:, :8])


def draw_tensor_scalar_reduce(random: Random, state: State) -> Step:
    dst, data = views(random, state, [pick(random, state), pick(random, state)])
    return {
        "dst": dst,
        "data": data,
        "op0": random.choice(["add", "multiply", "subtract", "maximum", "minimum"]),
        "operand0": operand(random, state, data),
        "reduce_op": random.choice(["add", "maximum", "minimum"]),
        "reduce_res": vector(random, state, data),
    }


def do_tensor_scalar_reduce(state: State, step: Step) -> None:
    values = _scalar(state, step, state.read(step["data"]), 0)
    if step["reduce_res"]["tile"] == step["dst"]["tile"]:
        raise Unfit("both results in one tile")
    state.write(step["dst"], values)
    state.write(step["reduce_res"], _reduced(step["reduce_op"], values))


def draw_tensor_partition_reduce(random: Random, state: State) -> Step:
    dst, data = views(random, state, [pick(random, state), pick(random, state)])
    rows = data["rows"][1] - data["rows"][0]
    return {"dst": {**dst, "rows": [0, 1]}, "op": "add", "data": {**data, "rows": [0, rows]}}


def do_tensor_partition_reduce(state: State, step: Step) -> None:
    state.write(step["dst"], summed(state.read(step["data"]), 0))


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
    state.write(step["dst"], values)
    state.write(step["reduce_res"], summed(values, 1))


def draw_select_reduce(random: Random, state: State) -> Step:
    names = [pick(random, state, ("float32", "bfloat16")), pick(random, state, ("uint8",)), pick(random, state, FLOATS)]
    dst, predicate, data = views(random, state, names)
    other = random.choice([number(random), vector(random, state, data)])
    return {
        "dst": dst,
        "predicate": predicate,
        "on_true": data,
        "on_false": other,
        "reverse_pred": random.random() < 0.4,
    }


def do_select_reduce(state: State, step: Step) -> None:
    taken = (state.read(step["predicate"]) != 0) != step["reverse_pred"]
    state.write(step["dst"], np.where(taken, state.read(step["on_true"]), value(state, step["on_false"])))


# --- the tensor engine -----------------------------------------------------------------------------------------------


def draw_nc_transpose(random: Random, state: State) -> Step:
    """Through PSUM, in the dtype of the data."""
    dst, data = pick(random, state), pick(random, state, ("float32", "bfloat16", "float16"))
    rows = min(state.tiles[data].shape[0], state.tiles[dst].shape[1], 128)
    columns = min(state.tiles[data].shape[1], state.tiles[dst].shape[0], 128)
    rows, columns = random.randint(1, rows), random.randint(1, columns)
    return {
        "dst": {"tile": dst, "rows": [0, columns], "columns": columns_of(random, state, dst, rows)},
        "data": {"tile": data, "rows": [0, rows], "columns": columns_of(random, state, data, columns)},
    }


def do_nc_transpose(state: State, step: Step) -> None:
    state.write(step["dst"], state.read(step["data"]).T)


def draw_nc_matmul(random: Random, state: State) -> Step:
    """stationary.T @ moving, once or twice into one tile of PSUM, then copied out."""
    narrow = ("bfloat16", "float16")
    kinds = random.choice([("float32",), narrow])
    dst, stationary, moving = pick(random, state), pick(random, state, kinds), pick(random, state, kinds)
    (k_rows,) = [rows_of(random, state, [stationary, moving])]
    m = random.randint(1, min(state.tiles[stationary].shape[1], state.tiles[dst].shape[0], 128))
    n = random.randint(1, min(state.tiles[moving].shape[1], state.tiles[dst].shape[1], 512))
    return {
        "dst": {"tile": dst, "rows": [0, m], "columns": columns_of(random, state, dst, n)},
        "stationary": {"tile": stationary, "rows": k_rows, "columns": columns_of(random, state, stationary, m)},
        "moving": {"tile": moving, "rows": k_rows, "columns": columns_of(random, state, moving, n)},
        "times": random.choice([1, 1, 2]),
    }


def do_nc_matmul(state: State, step: Step) -> None:
    stationary, moving = whole(state.read(step["stationary"])), whole(state.read(step["moving"]))
    product = stationary.T @ moving
    if (np.abs(stationary).T @ np.abs(moving)).max(initial=0) * step["times"] > 2.0**23:
        raise Unfit("the sum may be rounded")
    state.write(step["dst"], step["times"] * product)


# --- gathers ---------------------------------------------------------------------------------------------------------


def draw_nc_n_gather(random: Random, state: State) -> Step:
    """Columns by number, in each row others; the numbers are in a tile of uint32 of the step's own."""
    name = pick(random, state, ("float32", "int32"))
    same = [each for each in state.tiles if state.dtypes[each] == state.dtypes[name]]
    dst, data = views(random, state, [random.choice(same), name])
    count = (dst["columns"][1] - dst["columns"][0] - 1) // dst["columns"][2] + 1
    rows = dst["rows"][1] - dst["rows"][0]
    most = (data["columns"][1] - data["columns"][0] - 1) // data["columns"][2]
    if dst["rows"][0]:
        raise Unfit("the numbers begin at row 0")
    return {"dst": dst, "data": data, "indices": [[random.randint(0, most) for _ in range(count)] for _ in range(rows)]}


def do_nc_n_gather(state: State, step: Step) -> None:
    state.write(step["dst"], np.take_along_axis(state.read(step["data"]), np.array(step["indices"]), axis=1))


def draw_nc_stream_shuffle(random: Random, state: State) -> Step:
    """Each of 32 rows from one of 32 rows."""
    dst = pick(random, state)
    same = [each for each in state.tiles if state.dtypes[each] == state.dtypes[dst] and each != dst]
    found = [each for each in same if state.tiles[each].shape[0] >= 32]
    if not found or state.tiles[dst].shape[0] < 32:
        raise Unfit("fewer than 32 rows")
    to, source = views(random, state, [dst, random.choice(found)])
    rows = {"rows": [0, 32]}
    return {
        "dst": {**to, **rows},
        "src": {**source, **rows},
        "shuffle_mask": [random.randint(0, 31) for _ in range(32)],
    }


def do_nc_stream_shuffle(state: State, step: Step) -> None:
    state.write(step["dst"], state.read(step["src"])[step["shuffle_mask"]])


def draw_dma_transpose(random: Random, state: State) -> Step:
    """As nc_transpose, by a DMA: two tiles of one dtype."""
    step = draw_nc_transpose(random, state)
    if state.dtypes[step["dst"]["tile"]] != state.dtypes[step["data"]["tile"]]:
        raise Unfit("a DMA casts nothing here")
    if step["dst"]["tile"] == step["data"]["tile"]:
        raise Unfit("one tile")
    return {"dst": step["dst"], "src": step["data"]}


def do_dma_transpose(state: State, step: Step) -> None:
    state.write(step["dst"], state.read(step["src"]).T)


INSTRUCTIONS = tuple(name.removeprefix("do_") for name in list(globals()) if name.startswith("do_"))


def draw(name: str, random: Random, state: State) -> Step:
    """A step of an instruction; Unfit where the tiles do not allow one."""
    step: Step = globals()[f"draw_{name}"](random, state)
    parts = [each for each in step.values() if isinstance(each, dict)]
    for written in (each for each in (step["dst"], step.get("reduce_res")) if each is not None):
        if any(each is not written and _share(written, each) for each in parts):
            raise Unfit("an instruction would overwrite what it reads")
    return {"instruction": name, **step}


def _share(one: Step, other: Step) -> bool:
    """Whether two views share elements in different places: an instruction works on its own element at most."""
    return bool(one["tile"] == other["tile"] and one != other and _spans(one["rows"], other["rows"])
                and _spans(one["columns"], other["columns"]))  # fmt: skip


def _spans(one: list[int], other: list[int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def do(state: State, step: Step) -> None:
    """Execute a step."""
    globals()[f"do_{step['instruction']}"](state, step)


__all__ = ["INSTRUCTIONS", "do", "draw", "numpy_dtype"]
