"""Views of two to five dimensions: how the columns of a tile are cut, ordered, stepped through and repeated.

A view names its columns, or a ``pattern`` in their place; ``form`` lists what is then done to their dimensions. The
column numbers of a view are those operations on ``np.arange``. A view of any form has the elements of a row in order.
"""

from __future__ import annotations

import math
import random as _random
from typing import Any

import numpy as np

Random = _random.Random
View = dict[str, Any]
_MOST_FREE = 4  # dimensions beside the partitions


def is_plain(view: View) -> bool:
    """Return whether a view is columns next to each other, or every so many."""
    return "pattern" not in view and "form" not in view


def places(view: View, width: int) -> Any:
    """Return the column numbers of a view on a tile of some width, with the view's free dimensions."""
    numbers: Any = np.arange(width)
    if "pattern" in view:
        numbers = np.array(view["pattern"]["start"])
        for stride, count in view["pattern"]["pairs"]:
            numbers = np.add.outer(numbers, stride * np.arange(count))
    else:
        left, right, step = view["columns"]
        numbers = numbers[left:right:step]
    for name, given in view.get("form", []):
        if name == "reshape":
            numbers = numbers.reshape(given)
        elif name == "permute":
            numbers = numbers.transpose(given)
        elif name == "index":
            numbers = numbers[tuple(slice(*each) if isinstance(each, list) else each for each in given)]
        else:
            dim, size = given
            numbers = np.repeat(numbers, size, axis=dim)
    return numbers


def count_of(view: View) -> int:
    """Return how many elements of a row a view has, or an array that a program brings, or a result."""
    if "array" in view:
        return len(view["array"][0]) // (4 if view["dtype"].endswith("_x4") else 1)
    if "new" in view:
        return math.prod(view["shape"][1:])
    if "pattern" in view:
        return math.prod(count for _, count in view["pattern"]["pairs"])
    left, right, step = view["columns"]
    return int(places(view, right).size) if "form" in view else (right - left - 1) // step + 1


def reform(random: Random, view: View, width: int, dims: list[int], *, written: bool) -> View:
    """Return a view of other elements in those dimensions, or of the same ones; a written one names each once."""
    forms = [_cut, _ordered, _stepped, _patterned] if written else [_cut, _ordered, _stepped, _repeated, _overlapping]
    made = random.choice(forms)(random, view, width, dims)
    return {"tile": view["tile"], "rows": view["rows"], **(made or _cut(random, view, width, dims) or {})}


def factors(random: Random, count: int, most: int = _MOST_FREE) -> list[int]:
    """Return one to four sizes, or to another number of them, the product of which is the count."""
    sizes = [count]
    for _ in range(random.randint(0, most - 1)):
        at = random.randrange(len(sizes))
        chosen = random.choice([each for each in range(1, sizes[at] + 1) if sizes[at] % each == 0])
        sizes[at : at + 1] = [chosen, sizes[at] // chosen]
    return sizes


def _cut(random: Random, view: View, width: int, dims: list[int]) -> View | None:
    """The same columns, in more dimensions."""
    return {"columns": view["columns"], "form": [["reshape", dims]]}


def _ordered(random: Random, view: View, width: int, dims: list[int]) -> View | None:
    """The same columns in another order."""
    order = random.sample(range(len(dims)), len(dims))
    before = [0] * len(dims)
    for at, dim in enumerate(order):
        before[dim] = dims[at]
    return {"columns": view["columns"], "form": [["reshape", before], ["permute", order]]}


def _stepped(random: Random, view: View, width: int, dims: list[int]) -> View | None:
    """Every first or second place of each dimension of a larger block, of which one plane is taken."""
    sizes, indices, left = [], [], width // math.prod(dims)
    for size in dims:
        step = random.choice([1, 1, 2, 3])
        span = step * (size - 1) + 1
        start = random.randint(0, 1)
        if (start + span) > left * size:
            start, span, step = 0, size, 1
        sizes.append(start + span)
        indices.append([start, start + span, step])
        left = width // math.prod([*sizes, *dims[len(sizes) :]])
    if len(dims) < _MOST_FREE and left > 1 and random.random() < 0.5:
        at = random.randint(0, len(dims))
        sizes.insert(at, left)
        indices.insert(at, random.randrange(left))
    total = math.prod(sizes)
    begin = random.randint(0, width - total)
    return {"columns": [begin, begin + total, 1], "form": [["reshape", sizes], ["index", indices]]}


def _patterned(random: Random, view: View, width: int, dims: list[int]) -> View | None:
    """An access pattern that names no element twice."""
    strides, reach = [0] * len(dims), 1
    for dim in random.sample(range(len(dims)), len(dims)):
        strides[dim] = reach * random.choice([1, 1, 2])
        reach = strides[dim] * (dims[dim] - 1) + reach
    return _pattern(random, width, strides, dims)


def _overlapping(random: Random, view: View, width: int, dims: list[int]) -> View | None:
    """An access pattern that names elements several times, or goes nowhere in a dimension."""
    return _pattern(random, width, [random.randint(0, 3) for _ in dims], dims)


def _pattern(random: Random, width: int, strides: list[int], dims: list[int]) -> View | None:
    reach = sum(stride * (size - 1) for stride, size in zip(strides, dims, strict=True))
    if reach >= width:
        return None
    pairs = [list(pair) for pair in zip(strides, dims, strict=True)]
    return {"pattern": {"start": random.randint(0, width - 1 - reach), "pairs": pairs}}


def _repeated(random: Random, view: View, width: int, dims: list[int]) -> View | None:
    """Fewer columns, which are broadcast along some dimensions."""
    wide = [dim for dim in range(len(dims)) if random.random() < 0.5]
    small = [1 if dim in wide else size for dim, size in enumerate(dims)]
    begin = random.randint(0, width - math.prod(small))
    columns = [begin, begin + math.prod(small), 1]
    return {"columns": columns, "form": [["reshape", small], *(["broadcast", [dim, dims[dim]]] for dim in wide)]}
