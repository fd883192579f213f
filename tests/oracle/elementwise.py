"""Copies, fills and the work element by element of the Vector, Scalar and GpSimd Engine."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.oracle.arithmetic import (
    BITWISE,
    COMPARISONS,
    FUNCTIONS,
    OPERATORS,
    REDUCTIONS,
    SMOOTH,
    WORDS,
    exact_words,
    operate,
    reduce_in_lanes,
    scalar,
)
from tests.oracle.drawing import Random, new, number, operand, pick, shape_of, vector, views
from tests.oracle.forms import factors
from tests.oracle.state import FLOATS, INTEGERS, LIMITS, State, Step, Unfit, cast


def draw_tensor_copy(random: Random, state: State) -> Step:
    dst, src = views(random, state, [pick(random, state), pick(random, state)])
    engines = ["vector", "gpsimd"] if state.chip == "trn1" else ["vector", "gpsimd", "scalar"]
    return {"dst": dst, "src": src} | ({"engine": random.choice(engines)} if random.random() < 0.5 else {})


def do_tensor_copy(state: State, step: Step) -> None:
    state.move(step["dst"], state.bits(step["src"]))


def draw_memset(random: Random, state: State) -> Step:
    (dst,) = views(random, state, [pick(random, state)])
    return {"dst": dst, "value": float(random.randint(0, 9))}


def do_memset(state: State, step: Step) -> None:
    state.write(step["dst"], step["value"])


def draw_iota(random: Random, state: State) -> Step:
    (dst,) = views(random, state, [pick(random, state, ("int32", "float32"))])
    return {
        "dst": dst,
        "pattern": _drawn_pattern(random, shape_of(dst)[1]),
        "offset": random.randint(-9, 9),
        "channel_multiplier": random.randint(-2, 2),
    }


def _drawn_pattern(random: Random, count: int) -> list[list[int]]:
    """Return strides, backwards ones too, and sizes of one to four dimensions."""
    return [[random.randint(-3, 3), size] for size in factors(random, count)]


def _affine(step: Step, rows: int) -> Any:
    """Return the number of each element that offset, partition and pattern give."""
    numbers = step["offset"] + step["channel_multiplier"] * np.arange(rows)
    for stride, count in step["pattern"]:
        numbers = np.add.outer(numbers, stride * np.arange(count))
    return numbers.reshape(rows, -1)


def do_iota(state: State, step: Step) -> None:
    state.write(step["dst"], _affine(step, shape_of(step["dst"])[0]))


def draw_tensor_tensor(random: Random, state: State) -> Step:
    names = [pick(random, state) for _ in range(3)]
    dtypes = {state.dtypes[each] for each in names}
    dst, one, other = views(random, state, names)
    pool = list(BITWISE) if len(dtypes) == 1 and dtypes <= INTEGERS and random.random() < 0.5 else list(OPERATORS)
    step = {"dst": dst, "data1": one, "data2": other, "op": random.choice(pool)}
    if step["op"] in OPERATORS and random.random() < 0.5:
        step["engine"] = random.choice(["vector", "gpsimd"])
    return step


def do_tensor_tensor(state: State, step: Step) -> None:
    is_words = {state.dtype(step[key]) for key in ("dst", "data1", "data2")} <= WORDS
    if step["op"] in OPERATORS and is_words and step.get("engine") != "vector":
        exact_words(state, step["dst"], OPERATORS[step["op"]](*(state.bits(step[key]).astype(np.int64)
                                                               for key in ("data1", "data2"))))  # fmt: skip
    elif step["op"] in BITWISE:
        state.move(step["dst"], BITWISE[step["op"]](state.bits(step["data1"]), state.bits(step["data2"])))
    else:
        state.write(step["dst"], operate(step["op"], state.read(step["data1"]), state.read(step["data2"])))


def draw_tensor_scalar(random: Random, state: State) -> Step:
    dst, data = views(random, state, [pick(random, state), pick(random, state)])
    dtypes = {state.dtypes[dst["tile"]], state.dtypes[data["tile"]]}
    if len(dtypes) == 1 and dtypes <= INTEGERS and random.random() < 0.5:
        return {"dst": dst, "data": data, "op0": random.choice(list(BITWISE)), "operand0": random.randint(0, 127)}
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


def do_tensor_scalar(state: State, step: Step) -> None:
    if step["op0"] in BITWISE:
        bits = state.bits(step["data"])
        state.move(step["dst"], BITWISE[step["op0"]](bits, bits.dtype.type(step["operand0"])))
        return
    values = scalar(state, step, state.read(step["data"]), 0)
    state.write(step["dst"], scalar(state, step, values, 1) if "op1" in step else values)


def draw_scalar_tensor_tensor(random: Random, state: State) -> Step:
    dst, data, other = views(random, state, [pick(random, state) for _ in range(3)])
    step = {
        "dst": dst,
        "data": data,
        "op0": random.choice(list(OPERATORS)),
        "operand0": operand(random, state, data),
        "op1": random.choice(list(OPERATORS)),
        "operand1": other,
        "reverse0": random.random() < 0.3,
        "reverse1": random.random() < 0.3,
    }
    if state.version != "0.6" and random.random() < 0.4:
        step |= {"reduce_op": random.choice(REDUCTIONS), "reduce_cmd": random.choice(["reset_reduce", "reduce"])}
        step["reduce_res"] = new("float32", shape_of(data)[0], 1)
    return step


def do_scalar_tensor_tensor(state: State, step: Step) -> None:
    values = scalar(state, step, scalar(state, step, state.read(step["data"]), 0), 1)
    state.write(step["dst"], values)
    if "reduce_op" in step:
        reduce_in_lanes(state, "vector", step, values, step["reduce_op"])


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
    if step["op"] in FUNCTIONS and random.random() < 0.4:
        step |= {"reduce_op": "add", "reduce_cmd": random.choice(["reset_reduce", "reset_reduce", "reduce"])}
        if random.random() < 0.7:
            step["reduce_res"] = new("float32", shape_of(data)[0], 1)
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
        return
    values = FUNCTIONS[step["op"]](values)
    state.write(step["dst"], values)
    if "reduce_op" in step:
        reduce_in_lanes(state, "scalar", step, values, "add")


def draw_reciprocal(random: Random, state: State) -> Step:
    dst, data = views(random, state, [pick(random, state, FLOATS), pick(random, state)])
    return {"dst": dst, "data": data}


def do_reciprocal(state: State, step: Step) -> None:
    values = state.read(step["data"])
    mantissas, _ = np.frexp(values)
    if (np.abs(mantissas) != 0.5).any():
        raise Unfit("a reciprocal may be rounded in several ways")
    state.write(step["dst"], 1 / values)


def draw_tensor_copy_predicated(random: Random, state: State) -> Step:
    data = pick(random, state)
    same = [each for each in state.tiles if state.dtypes[each] == state.dtypes[data]]
    dst, src, predicate = views(random, state, [random.choice(same), data, pick(random, state, ("uint8",))])
    return {"dst": dst, "src": src, "predicate": predicate, "reverse_pred": random.random() < 0.4}


def do_tensor_copy_predicated(state: State, step: Step) -> None:
    taken = (state.read(step["predicate"]) != 0) != step["reverse_pred"]
    state.move(step["dst"], np.where(taken, state.bits(step["src"]), state.bits(step["dst"])))


def draw_affine_select(random: Random, state: State) -> Step:
    dst, data = views(random, state, [pick(random, state), pick(random, state)])
    _, count = shape_of(dst)
    return {
        "dst": dst,
        "pattern": _drawn_pattern(random, count),
        "channel_multiplier": random.randint(-2, 2),
        "on_true_tile": data,
        "on_false_value": number(random),
        "cmp_op": random.choice(["equal", "not_equal", "greater", "greater_equal", "less", "less_equal"]),
        "offset": random.randint(-9, 9),
    }


def do_affine_select(state: State, step: Step) -> None:
    dtype, data = state.dtype(step["dst"]), state.bits(step["on_true_tile"])
    taken = COMPARISONS[step["cmp_op"]](_affine(step, len(data)), 0)
    if state.dtype(step["on_true_tile"]) == dtype:
        state.move(step["dst"], np.where(taken, data, cast(step["on_false_value"], dtype)))
    else:
        state.write(step["dst"], np.where(taken, state.read(step["on_true_tile"]), step["on_false_value"]))


def draw_activate2(random: Random, state: State) -> Step:
    """Two operators, a function, and a reduction of the Scalar Engine."""
    state.needs("trn3")
    dst, data = views(random, state, [pick(random, state), pick(random, state)])
    op0, op1 = random.choice(
        [("multiply", "add"), ("multiply", "subtract"), ("multiply", "bypass"), ("add", "bypass"),
         ("subtract", "bypass"), ("bypass", "bypass")]
    )  # fmt: skip
    step = {"dst": dst, "op": random.choice(list(FUNCTIONS)), "data": data, "op0": op0, "op1": op1}
    step |= {"imm0": number(random), "imm1": number(random)}
    step |= {"reverse0": op0 != "bypass" and random.random() < 0.3}
    step |= {"reverse1": op1 != "bypass" and random.random() < 0.3}
    if random.random() < 0.5:
        step |= {"reduce_op": random.choice(REDUCTIONS), "reduce_cmd": "reset_reduce"}
        step["reduce_res"] = new("float32", shape_of(data)[0], 1)
    return step


def do_activate2(state: State, step: Step) -> None:
    values = state.read(step["data"])
    for at in (0, 1):
        if step[f"op{at}"] != "bypass":
            pair = (step[f"imm{at}"], values) if step[f"reverse{at}"] else (values, step[f"imm{at}"])
            values = operate(step[f"op{at}"], *pair)
    values = FUNCTIONS[step["op"]](values)
    state.write(step["dst"], values)
    if "reduce_op" in step:
        reduce_in_lanes(state, "scalar", step, values, step["reduce_op"])


_EXPONENTS = tuple(name for name in LIMITS if name != "float8_e4m3fn")


def draw_exponential(random: Random, state: State) -> Step:
    """Into a result of its own, since it rounds, with the sum."""
    state.needs("trn3")
    (src,) = views(random, state, [pick(random, state, _EXPONENTS)])
    rows, columns = shape_of(src)
    return {
        "dst": new("float32", rows, columns),
        "src": src,
        "max_value": number(random),
        "reduce_res": new("float32", rows, 1),
        "reduce_cmd": random.choice(["reset_reduce", "load_reduce"]),
    }


def do_exponential(state: State, step: Step) -> None:
    arguments = state.read(step["src"]) - step["max_value"]
    if np.abs(arguments).max(initial=0) > 20:
        raise Unfit("the function's values are too large")
    state.write(step["dst"], np.exp(arguments), exact=False)
    state.write(step["reduce_res"], np.exp(arguments).sum(axis=1, keepdims=True), exact=False)
    state.lanes["vector"][slice(*step["src"]["rows"])] = np.nan  # what they hold is rounded
