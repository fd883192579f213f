"""Searches along the free dimension, and statistics."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.oracle.drawing import Random, array, columns_of, new, number, pick, shape_of, views
from tests.oracle.state import FLOATS, State, Step, Unfit


def draw_max8(random: Random, state: State) -> Step:
    dst, src = views(random, state, [pick(random, state, ("float32",)), pick(random, state, FLOATS)])
    if state.tiles[dst["tile"]].shape[1] < 8 or shape_of(src)[1] < 8:
        raise Unfit("fewer than eight columns")
    return {"dst": {**dst, "columns": columns_of(random, state, dst["tile"], 8)}, "src": src}


def do_max8(state: State, step: Step) -> None:
    state.write(step["dst"], -np.sort(-state.read(step["src"]), axis=1)[:, :8])


def _rows_and_values(random: Random) -> tuple[list[list[float]], list[list[float]]]:
    """Return rows of distinct numbers, and eight of each; which of equal ones is meant no document says."""
    width = random.randint(8, 20)
    rows = [[each / 2 for each in random.sample(range(-60, 60), width)] for _ in range(random.choice([1, 5, 33]))]
    return rows, [random.sample(row, 8) for row in rows]


def draw_nc_find_index8(random: Random, state: State) -> Step:
    data, values = _rows_and_values(random)
    dtype = random.choice(["float32", "bfloat16"])
    dst = new(random.choice(["uint32", "uint16"]), len(data), 8)
    return {"dst": dst, "data": array(dtype, data), "vals": array(dtype, values)}


def _indices(step: Step) -> Any:
    pairs = zip(step["data"]["array"], step["vals"]["array"], strict=True)
    return np.array([[row.index(each) for each in values] for row, values in pairs])


def do_nc_find_index8(state: State, step: Step) -> None:
    state.write(step["dst"], _indices(step))


def draw_nc_match_replace8(random: Random, state: State) -> Step:
    data, values = _rows_and_values(random)
    step = {
        "dst": new("float32", len(data), len(data[0])),
        "data": array("float32", data),
        "vals": array("float32", values),
        "imm": number(random),
    }
    if random.random() < 0.6:
        step["dst_idx"] = new("uint32", len(data), 8)
    return step


def do_nc_match_replace8(state: State, step: Step) -> None:
    found, replaced = _indices(step), np.array(step["data"]["array"])
    np.put_along_axis(replaced, found, step["imm"], axis=1)
    state.write(step["dst"], replaced)
    if "dst_idx" in step:
        state.write(step["dst_idx"], found)


def draw_nonzero_with_count(random: Random, state: State) -> Step:
    """Of the first row of each GpSimd core; all others stay as they were."""
    state.needs("trn2", "trn3")
    (src,) = views(random, state, [pick(random, state, ("float32", "int32"))])
    rows, columns = shape_of(src)
    return {
        "dst": new("int32", rows, columns + 1, fill=77),
        "src": {**src, "rows": [0, rows]},
        "index_offset": random.choice([0, 16, -3]),
        "padding_val": random.choice([-1, 0, 99]),
    }


def do_nonzero_with_count(state: State, step: Step) -> None:
    source = state.read(step["src"])
    result = np.full(step["dst"]["shape"], step["dst"]["fill"])
    for row in range(0, len(source), 16):
        places = [place + step["index_offset"] for place, each in enumerate(source[row]) if each != 0]
        padding = [step["padding_val"]] * (source.shape[1] - len(places))
        result[row] = [*places, *padding, len(places)]
    state.write(step["dst"], result)


def draw_topk(random: Random, state: State) -> Step:
    """The largest of each 16 rows, element i at row i % 16. No order is promised: the results are compared sorted.

    Distinct numbers, and a multiple of 16 of them, so that it is decided which they are and what is written.
    """
    if state.version == "0.6":
        raise Unfit("before 0.7 the documents place the results otherwise")
    groups, width, taken = random.randint(1, 2), random.randint(2, 5), random.randint(1, 2)
    values = [random.sample(range(-120, 120), 16 * width) for _ in range(groups)]
    rows = [group[row::16] for group in values for row in range(16)]
    count = 16 * taken
    return {
        "val_dst": new("bfloat16", 16 * groups, count, fill=0) | {"unordered": taken},
        "idx_dst": new("uint32", 16 * groups, count, fill=0) | {"unordered": taken},
        "src": array("bfloat16", rows),
        "n": random.randint(max(8, count), 16 * width),
    }


def do_topk(state: State, step: Step) -> None:
    count, taken = step["val_dst"]["shape"][1], step["val_dst"]["unordered"]
    results = {name: np.zeros(step[name]["shape"]) for name in ("val_dst", "idx_dst")}
    for first in range(0, step["val_dst"]["shape"][0], 16):
        snake = np.array(step["src"]["array"][first : first + 16]).T.reshape(-1)[: step["n"]]
        places = np.sort(np.argsort(-snake)[:count])
        for name, found in (("val_dst", np.sort(snake[places])), ("idx_dst", places)):
            results[name][first : first + 16, :taken] = found.reshape(taken, 16).T
    for name, values in results.items():
        state.write(step[name], values)


def draw_sequence_bounds(random: Random, state: State) -> Step:
    """Draw segments: runs of equal numbers, of which 0 is padding; the step finds where each begins and ends."""
    ids: list[int] = []
    for segment in range(1, random.randint(2, 5)):
        ids += [random.choice([segment, segment, 0])] * random.randint(1, 4)
    types = [random.choice(["float32", "int32"]) for _ in range(2)]
    return {"dst": new(types[0], 1, 2, len(ids)), "segment_ids": array(types[1], [ids])}


def do_sequence_bounds(state: State, step: Step) -> None:
    (ids,) = step["segment_ids"]["array"]
    starts, ends = [], []
    for place, segment in enumerate(ids):
        start, end = place, place + 1
        while start and ids[start - 1] == segment:
            start -= 1
        while end < len(ids) and ids[end] == segment:
            end += 1
        starts.append(start if segment else len(ids))
        ends.append(end if segment else -1)
    state.write(step["dst"], [[starts, ends]])


# --- statistics ------------------------------------------------------------------------------------------------------


def draw_bn_stats(random: Random, state: State) -> Step:
    """Count, mean and variance times count of the even elements, then of the odd ones."""
    (data,) = views(random, state, [pick(random, state)])
    return {"dst": new("float32", shape_of(data)[0], 6), "data": data}


def do_bn_stats(state: State, step: Step) -> None:
    values = state.read(step["data"])
    parts = []
    for half in (values[:, 0::2], values[:, 1::2]):
        if half.shape[1] not in (1, 2, 4, 8, 16):
            raise Unfit("a mean may be rounded in several ways")
        mean = half.mean(axis=1)
        parts += [np.full(len(half), half.shape[1]), mean, ((half - mean[:, None]) ** 2).sum(axis=1)]
    if np.abs(values).max(initial=0) > 64:
        raise Unfit("a variance may be rounded in several ways")
    state.write(step["dst"], np.stack(parts, axis=1))


def draw_bn_aggr(random: Random, state: State) -> Step:
    """Mean and variance out of triples, whose counts make a power of two."""
    counts = random.choice([[1, 1], [2, 2], [4], [1, 3], [2, 6], [1, 2, 1], [4, 2, 2]])
    rows = [
        [part for count in counts for part in (count, random.randint(-4, 4), random.randint(0, 8))]
        for _ in range(random.choice([1, 5, 33]))
    ]
    return {"dst": new("float32", len(rows), 2), "data": array("float32", rows)}


def do_bn_aggr(state: State, step: Step) -> None:
    triples = np.array(step["data"]["array"], np.float64).reshape(len(step["data"]["array"]), -1, 3)
    counts, means, sums = triples[:, :, 0], triples[:, :, 1], triples[:, :, 2]
    total = counts.sum(axis=1)
    mean = (counts * means).sum(axis=1) / total
    variance = (sums + counts * (means - mean[:, None]) ** 2).sum(axis=1) / total
    state.write(step["dst"], np.stack([mean, variance], axis=1))
