"""Operands of random calls. Views of one step have the same rows, since engines work partition by partition."""

from __future__ import annotations

import random as _random
from typing import Any

from tests.oracle.forms import count_of
from tests.oracle.state import State, Step, Unfit

Random = _random.Random


def rows_of(random: Random, state: State, tiles: list[str]) -> list[int]:
    """Return rows that all of the tiles have; they begin where an engine can begin."""
    count = min(state.tiles[each].shape[0] for each in tiles)
    starts = [0, *(start for start in (32, 64, 96) if start < count)]
    start = random.choice([0, random.choice(starts)])
    most = min(count - start, {0: 128, 32: 32, 64: 64, 96: 32}[start])
    return [start, start + random.choice([most, random.randint(1, most)])]


def columns_of(random: Random, state: State, tile: str, count: int) -> list[int]:
    """Return so many columns of a tile, next to each other or every second one."""
    width = state.tiles[tile].shape[1]
    step = random.choice([1, 1, 1, 2]) if 2 * count - 1 <= width else 1
    span = step * (count - 1) + 1
    left = random.choice([0, random.randint(0, width - span)])
    return [left, left + span, step]


def views(random: Random, state: State, tiles: list[str]) -> list[Step]:
    """Return views of one form on tiles."""
    rows = rows_of(random, state, tiles)
    width = min(state.tiles[each].shape[1] for each in tiles)
    count = random.choice([width, random.randint(1, width)])
    return [{"tile": each, "rows": rows, "columns": columns_of(random, state, each, count)} for each in tiles]


def shape_of(view: Step) -> tuple[int, int]:
    """Return the rows of a view, and the elements of one."""
    top, bottom = view["rows"]
    return bottom - top, count_of(view)


def block(random: Random, state: State, tile: str, rows: int, columns: int) -> Step:
    """Return a view of so many rows from the first on."""
    if rows > state.tiles[tile].shape[0] or columns > state.tiles[tile].shape[1]:
        raise Unfit("the tile is too small")
    return {"tile": tile, "rows": [0, rows], "columns": columns_of(random, state, tile, columns)}


def element(random: Random, state: State, tile: str) -> Step:
    """Return a view of one element."""
    row = random.choice([start for start in (0, 32, 64, 96) if start < state.tiles[tile].shape[0]])
    return {"tile": tile, "rows": [row, row + 1], "columns": columns_of(random, state, tile, 1)}


def vector(random: Random, state: State, like: Step) -> Step:
    """Return one column of a float32 tile, in the rows of another view."""
    tile = pick(random, state, ("float32",))
    if state.tiles[tile].shape[0] < like["rows"][1]:
        raise Unfit("too few rows")
    return {"tile": tile, "rows": like["rows"], "columns": columns_of(random, state, tile, 1)}


def pick(random: Random, state: State, dtypes: Any = None) -> str:
    """Return a tile, of some dtypes."""
    found = [name for name in state.tiles if dtypes is None or state.dtypes[name] in dtypes]
    if not found:
        raise Unfit("no tile of that dtype")
    return random.choice(found)


def other(random: Random, state: State, tile: str) -> str:
    """Return another tile of the same dtype."""
    found = [each for each in state.tiles if state.dtypes[each] == state.dtypes[tile] and each != tile]
    if not found:
        raise Unfit("no other tile of that dtype")
    return random.choice(found)


def new(dtype: str, *shape: int, fill: float | None = None) -> Step:
    """Return a result of its own, filled beforehand where the instruction leaves elements as they were."""
    return {"new": dtype, "shape": list(shape)} | ({} if fill is None else {"fill": fill})


def array(dtype: str, values: Any, *, in_hbm: bool = False) -> Step:
    """Return an array that the program brings: it is loaded into a tile, or stays in HBM."""
    return {"array": values, "dtype": dtype} | ({"hbm": True} if in_hbm else {})


def table(random: Random, dtype: str, rows: int, columns: int) -> Step:
    """Return an array of small whole numbers in HBM."""
    least = 0 if dtype.startswith("uint") else -4
    values = [[random.randint(least, 4) for _ in range(columns)] for _ in range(rows)]
    return array(dtype, values, in_hbm=True)


def number(random: Random) -> float:
    """Return a number of few bits."""
    return random.choice([0.0, 1.0, -1.0, 2.0, 0.5, -3.0, float(random.randint(-8, 8))])


def operand(random: Random, state: State, like: Step) -> Any:
    """Return a number, or a column."""
    return number(random) if random.random() < 0.6 else vector(random, state, like)


def value(state: State, given: Any) -> Any:
    """Return the values of an operand."""
    return state.read(given) if isinstance(given, dict) else given
