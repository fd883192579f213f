"""The Tensor Engine: products, transposes, and microscaling formats."""

from __future__ import annotations

import numpy as np

from tests.oracle.drawing import Random, array, block, columns_of, new, pick, rows_of
from tests.oracle.state import EXACT_SUM, PACKED, State, Step, Unfit, whole


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
    """stationary.T @ moving, one to three times into one tile of PSUM, then copied out."""
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
        # of one product after the other into one tile of PSUM: the first one overwrites, where nothing is said
        "accumulate": random.choice([[None], [None, None], [False, True], [None, False, None], [None, True, True]]),
    }


def do_nc_matmul(state: State, step: Step) -> None:
    stationary, moving = whole(state.read(step["stationary"])), whole(state.read(step["moving"]))
    product = stationary.T @ moving
    said = step["accumulate"]
    times = len(said) - (said.index(False) if False in said else 0)
    if (np.abs(stationary).T @ np.abs(moving)).max(initial=0) * times > EXACT_SUM:
        raise Unfit("the sum may be rounded")
    state.write(step["dst"], times * product)


# --- microscaling ----------------------------------------------------------------------------------------------------

QUADRANT = 32  # partitions; the scales of their four groups lie in its first four rows
GROUP = (8, 4)  # partitions and neighbouring elements of one scale
# The scale is two to the power of the exponent of the largest element, less this (quantize_mx, NKI 0.6).
_RESERVE = {"float8_e5m2_x4": 14, "float8_e4m3fn_x4": 7}
_LEAST_SCALE = -127


def scale_rows(rows: int) -> list[int]:
    """Return the rows in which the scales of so many partitions lie."""
    return [QUADRANT * (group // 4) + group % 4 for group in range(rows // GROUP[0])]


def draw_quantize_mx(random: Random, state: State) -> Step:
    """Data and scales are results of their own."""
    state.needs("trn3")
    tile = pick(random, state, ("bfloat16", "float16"))
    height, width = state.tiles[tile].shape
    if height < QUADRANT or width < GROUP[1]:
        raise Unfit("the tile is too small")
    rows, columns = QUADRANT * random.randint(1, height // QUADRANT), random.randint(1, width // GROUP[1])
    src = block(random, state, tile, rows, GROUP[1] * columns)
    dtype = random.choice(list(_RESERVE))
    return {"dst": new(dtype, rows, columns), "src": src, "dst_scale": new("uint8", rows, columns, fill=0)}


def do_quantize_mx(state: State, step: Step) -> None:
    values = state.read(step["src"])
    dtype, (rows, columns) = step["dst"]["new"], step["dst"]["shape"]
    groups = values.reshape(rows // GROUP[0], GROUP[0], columns, GROUP[1])
    largest = np.abs(groups).max(axis=(1, 3))
    exponents = np.frexp(largest)[1] - 1 - _RESERVE[dtype]
    exponents = np.where(largest > 0, np.maximum(exponents, _LEAST_SCALE), _LEAST_SCALE)
    scaled = groups / np.exp2(exponents.astype(np.float64))[:, None, :, None]
    state.keep(step["dst"], scaled.reshape(values.shape).astype(PACKED[dtype][0]))
    scales = np.zeros(step["dst_scale"]["shape"], np.uint8)
    scales[scale_rows(rows)] = exponents + 127
    state.keep(step["dst_scale"], scales)


def draw_nc_matmul_mx(random: Random, state: State) -> Step:
    """Operands of few bits, and scales around one, so that the sums are exact."""
    state.needs("trn3")
    rows, m, n = QUADRANT * random.randint(1, 4), 2 * random.randint(1, 4), random.randint(1, 6)
    step: Step = {"dst": new("float32", m, n)}
    for name, free in (("stationary", m), ("moving", n)):
        elements = [[random.choice([0, 0.5, 1, -1, 1.5, 2, -3, 4]) for _ in range(4 * free)] for _ in range(rows)]
        step[name] = array(random.choice(list(PACKED)), elements)
        step[f"{name}_scale"] = array("uint8", [[random.randint(125, 129) for _ in range(free)] for _ in range(rows)])
    return step


def do_nc_matmul_mx(state: State, step: Step) -> None:
    operands = []
    for name in ("stationary", "moving"):
        values = np.array(step[name]["array"], np.float64)
        rows, free = values.shape[0], values.shape[1] // 4
        scales = np.exp2(np.array(step[f"{name}_scale"]["array"], np.float64)[scale_rows(rows)] - 127)
        groups = values.reshape(rows // GROUP[0], GROUP[0], free, GROUP[1]) * scales[:, None, :, None]
        operands.append(groups.transpose(0, 1, 3, 2).reshape(4 * rows, free))
    state.write(step["dst"], operands[0].T @ operands[1])
