"""Gathers, scatters and other moves of data, by DMA and by GpSimd."""

from __future__ import annotations

import math

import numpy as np

from tests.oracle.drawing import Random, array, block, columns_of, element, new, other, pick, shape_of, table, views
from tests.oracle.forms import factors, places, reform
from tests.oracle.state import LIMITS, State, Step, Unfit


def draw_dma_copy(random: Random, state: State) -> Step:
    """A DMA moves bytes of one dtype, to other rows too."""
    dst = pick(random, state)
    dst_view, src_view = views(random, state, [dst, other(random, state, dst)])
    rows = dst_view["rows"][1] - dst_view["rows"][0]
    start = random.randint(0, state.tiles[src_view["tile"]].shape[0] - rows)
    return {"dst": dst_view, "src": {**src_view, "rows": [start, start + rows]}}


def do_dma_copy(state: State, step: Step) -> None:
    state.move(step["dst"], state.bits(step["src"]))


def _linear(random: Random, count: int, *, written: bool) -> tuple[Step, int]:
    """Return a view of so many elements on a tensor in HBM of one dimension, and how many that has."""
    width = count + random.choice([0, 1, count // 2, count])
    whole = {"tile": "", "rows": [0, 1], "columns": [0, count, 1]}
    view = reform(random, whole, width, factors(random, count, 5), written=written)
    return {key: view[key] for key in ("columns", "pattern", "form") if key in view}, width


def draw_dma_load(random: Random, state: State) -> Step:
    """A view of one to five dimensions of a tensor in HBM, into a tile."""
    dst = pick(random, state)
    rows, columns = random.randint(1, min(6, state.tiles[dst].shape[0])), random.randint(1, state.tiles[dst].shape[1])
    view, width = _linear(random, rows * columns, written=False)
    (values,) = table(random, state.dtypes[dst], 1, width)["array"]
    return {
        "dst": block(random, state, dst, rows, columns),
        "src": array(random.choice([state.dtypes[dst], "float32", "int32"]), values, in_hbm=True),
        "view": view,
    }


def do_dma_load(state: State, step: Step) -> None:
    bits = state.bits(step["src"])
    state.move(step["dst"], bits[places(step["view"], len(bits)).reshape(shape_of(step["dst"]))])


def draw_dma_store(random: Random, state: State) -> Step:
    """A tile into a view of one to five dimensions of a tensor in HBM."""
    src = pick(random, state)
    rows, columns = random.randint(1, min(6, state.tiles[src].shape[0])), random.randint(1, state.tiles[src].shape[1])
    view, width = _linear(random, rows * columns, written=True)
    return {
        "dst": new(state.dtypes[src], 1, width) | {"hbm": True},
        "src": block(random, state, src, rows, columns),
        "table": table(random, state.dtypes[src], 1, width),
        "view": view,
    }


def do_dma_store(state: State, step: Step) -> None:
    values = state.bits(step["table"]).copy()
    values[0, places(step["view"], values.size).reshape(-1)] = state.bits(step["src"]).reshape(-1)
    state.move(step["dst"], values)


# Of so many dimensions: in which order a transposing DMA writes them.
TRANSPOSED = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}


def draw_dma_transpose(random: Random, state: State) -> Step:
    """By a DMA: two tiles of one dtype, of two to four dimensions."""
    dst = pick(random, state)
    src = other(random, state, dst)
    rows = random.randint(1, min(state.tiles[src].shape[0], state.tiles[dst].shape[1]))
    most = min(state.tiles[dst].shape[1] // rows, state.tiles[src].shape[1])
    middle = factors(random, random.randint(1, most), 2) if random.random() < 0.6 else []
    last = random.randint(1, min(state.tiles[src].shape[1] // math.prod(middle), state.tiles[dst].shape[0]))
    views = [
        {"tile": tile, "rows": [0, height], "columns": columns_of(random, state, tile, math.prod(dims))}
        for tile, height, dims in ((src, rows, [*middle, last]), (dst, last, [*middle[::-1], rows]))
    ]
    if middle:
        order = TRANSPOSED[len(middle) + 2]
        sizes = [rows, *middle, last]
        for view, dims in zip(views, ([*middle, last], [sizes[dim] for dim in order[1:]]), strict=True):
            view["form"] = [["reshape", dims]]
    return {"dst": views[1], "src": views[0]}


def do_dma_transpose(state: State, step: Step) -> None:
    values = state.bits(step["src"])
    dims = step["src"].get("form", [["reshape", values.shape[1:]]])[0][1]
    turned = values.reshape(len(values), *dims).transpose(TRANSPOSED[len(dims) + 1])
    state.move(step["dst"], turned.reshape(len(turned), -1))


# --- indirect: rows that a table of indices names --------------------------------------------------------------------


def draw_dma_gather(random: Random, state: State) -> Step:
    """Rows of a table in HBM by index; a skipped index leaves its row as it was."""
    dst = pick(random, state)
    rows = random.randint(1, min(8, state.tiles[dst].shape[0]))
    columns = random.randint(1, state.tiles[dst].shape[1])
    skips = random.random() < 0.4
    height = random.randint(1, 9)
    beyond = height + (3 if skips else -1)
    return {
        "dst": block(random, state, dst, rows, columns),
        "table": table(random, state.dtypes[dst], height, columns),
        "indices": array("uint32", [[random.randint(0, beyond)] for _ in range(rows)]),
        "skips": skips,
    }


def do_dma_gather(state: State, step: Step) -> None:
    values, source = state.bits(step["dst"]), state.bits(step["table"])
    for row, (index,) in enumerate(step["indices"]["array"]):
        if index < len(source):
            values[row] = source[index]
    state.move(step["dst"], values)


def draw_dma_scatter(random: Random, state: State) -> Step:
    """Rows into a table in HBM, or added to what is there; no index comes twice."""
    src = pick(random, state, tuple(name for name in LIMITS if name != "uint8"))
    rows = random.randint(1, min(6, state.tiles[src].shape[0]))
    columns = random.randint(1, state.tiles[src].shape[1])
    skips = random.random() < 0.4
    height = rows + random.randint(0, 4)
    chosen = random.sample(range(height + (3 if skips else 0)), rows)
    dtype = state.dtypes[src]
    return {
        "dst": new(dtype, height, columns) | {"hbm": True},
        "src": block(random, state, src, rows, columns),
        "table": table(random, dtype, height, columns),
        "indices": array("uint32", [[each] for each in chosen]),
        "skips": skips,
        "adds": random.random() < 0.4,
    }


def do_dma_scatter(state: State, step: Step) -> None:
    values, source = state.bits(step["table"]), state.bits(step["src"])
    if step["adds"]:
        values, source = state.read(step["table"]), state.read(step["src"])
    for row, (index,) in enumerate(step["indices"]["array"]):
        if index < len(values):
            values[index] = source[row] + step["adds"] * values[index]
    (state.write if step["adds"] else state.move)(step["dst"], values)


def draw_dma_gather_add(random: Random, state: State) -> Step:
    """Rows of a table by index, added to a tile on the way (dma_compute)."""
    return {**draw_dma_gather(random, state), "skips": False}


def do_dma_gather_add(state: State, step: Step) -> None:
    chosen = [index for (index,) in step["indices"]["array"]]
    source = state.read(step["table"])
    if max(chosen) >= len(source):
        raise Unfit("an index lies beyond the table")
    state.write(step["dst"], state.read(step["dst"]) + source[chosen])


def draw_dma_compute(random: Random, state: State) -> Step:
    """A sum of two or three tiles by DMA."""
    names = [pick(random, state) for _ in range(random.randint(2, 4))]
    dst, *srcs = views(random, state, names)
    return {"dst": dst, "srcs": srcs}


def do_dma_compute(state: State, step: Step) -> None:
    total = np.zeros(shape_of(step["dst"]))
    for src in step["srcs"]:
        total = (total + state.read(src)).astype(np.float32).astype(np.float64)
    state.write(step["dst"], total)


def draw_dma_at_offset(random: Random, state: State) -> Step:
    """Rows of a table from one on that a register holds."""
    dst = pick(random, state)
    rows = random.randint(1, min(6, state.tiles[dst].shape[0]))
    columns = random.randint(1, state.tiles[dst].shape[1])
    return {
        "dst": block(random, state, dst, rows, columns),
        "table": table(random, state.dtypes[dst], rows + random.randint(0, 5), columns),
        "at": element(random, state, pick(random, state, ("int32",)))
        if random.random() < 0.5
        else random.randint(0, 5),
    }


def do_dma_at_offset(state: State, step: Step) -> None:
    source, (rows, _) = state.read(step["table"]), shape_of(step["dst"])
    start = int(state.read(step["at"])[0, 0]) if isinstance(step["at"], dict) else step["at"]
    if not 0 <= start <= len(source) - rows:
        raise Unfit("rows beyond the table")
    state.move(step["dst"], state.bits(step["table"])[start : start + rows])


# --- GpSimd and the Vector Engine ------------------------------------------------------------------------------------


def draw_nc_n_gather(random: Random, state: State) -> Step:
    """Columns by number, in each row others."""
    name = pick(random, state, ("float32", "int32", "bfloat16", "int8"))
    same = [each for each in state.tiles if state.dtypes[each] == state.dtypes[name]]
    dst, data = views(random, state, [random.choice(same), name])
    if dst["rows"][0]:
        raise Unfit("the numbers begin at row 0")
    (rows, count), (_, width) = shape_of(dst), shape_of(data)
    chosen = [[random.randint(0, width - 1) for _ in range(count)] for _ in range(rows)]
    return {"dst": dst, "data": data, "indices": array("uint32", chosen)}


def do_nc_n_gather(state: State, step: Step) -> None:
    state.move(step["dst"], np.take_along_axis(state.bits(step["data"]), np.array(step["indices"]["array"]), axis=1))


CORE = 16  # partitions of a core of GpSimd


def draw_local_gather(random: Random, state: State) -> Step:
    """One list of indices for each 16 partitions, which stands in them partition first."""
    name = pick(random, state)
    height, width = state.tiles[name].shape
    if height < CORE:
        raise Unfit("fewer partitions than a core has")
    rows, each = CORE * random.randint(1, height // CORE), random.choice([1, 1, 2, 4])
    src = block(random, state, name, rows, random.randint(min(each, width), width))
    free = random.randint(1, 2)
    count = random.choice([CORE * free, random.randint(1, CORE * free)])
    if each > shape_of(src)[1]:
        raise Unfit("fewer columns than elements of an index")
    indices = [[random.randint(0, shape_of(src)[1] - each) for _ in range(free)] for _ in range(rows)]
    return {
        "dst": new(state.dtypes[name], rows, count * each),
        "src_buffer": src,
        "index": array("uint16", indices),
        "num_elem_per_idx": each,
        "num_valid_indices": count,
    }


def do_local_gather(state: State, step: Step) -> None:
    source, index, each = state.bits(step["src_buffer"]), np.array(step["index"]["array"]), step["num_elem_per_idx"]
    values = np.zeros(step["dst"]["shape"], source.dtype)
    for row in range(len(source)):
        mine = index[row - row % CORE : row - row % CORE + CORE].T.reshape(-1)[: step["num_valid_indices"]]
        values[row] = [source[row, start + more] for start in mine for more in range(each)]
    state.move(step["dst"], values)


UNMODIFIED = 255


def draw_nc_stream_shuffle(random: Random, state: State) -> Step:
    """Each of 32 rows from one of 32 rows, or left as it was."""
    dst = pick(random, state)
    source = other(random, state, dst)
    if min(state.tiles[dst].shape[0], state.tiles[source].shape[0]) < 32:
        raise Unfit("fewer than 32 rows")
    to, src = views(random, state, [dst, source])
    rows = {"rows": [0, 32]}
    mask = [random.choice([random.randint(0, 31)] * 9 + [UNMODIFIED]) for _ in range(32)]
    return {"dst": {**to, **rows}, "src": {**src, **rows}, "shuffle_mask": mask}


def do_nc_stream_shuffle(state: State, step: Step) -> None:
    values, source = state.bits(step["dst"]), state.bits(step["src"])
    for row, taken in enumerate(step["shuffle_mask"]):
        if taken != UNMODIFIED:
            values[row] = source[taken]
    state.move(step["dst"], values)
