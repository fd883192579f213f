"""A selection of a grid in words: its coordinates, the author's name of the tensor, and the elements."""

from __future__ import annotations

from collections.abc import Sequence

from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import name_of, plain_name_of
from nkitools.language.grid_axis import Axis

_MOST_RUNS = 3  # more stretches of elements than that are not listed


def words(unit: str, tensor: NkiTensor, axes: Sequence[Axis], *, plain: bool = False) -> str:
    """Return ``tile (2, 1) of `x`, rows 256:384, columns 256:512``; ``plain``: without a name that is found later."""
    coordinates = [_numbers(axis.numbers, taken=axis.taken) for axis in axes]
    what = unit if all(len(axis.coordinates) == 1 for axis in axes) else f"{unit}s"
    of = (plain_name_of if plain else name_of)(tensor, " of")
    part = "" if tensor.size == tensor.storage.array.size else " of a part"
    elements = ", ".join(f"{name} {_elements(axis)}" for name, axis in zip(_names(axes), axes, strict=True))
    return f"{what} ({', '.join(coordinates)}){part}{of}, {elements}"


def _names(axes: Sequence[Axis]) -> list[str]:
    """Return the names of the dimensions: row and column of a matrix, else numbers."""
    tiled = sum(axis.tiled for axis in axes)
    if tiled != 2:
        return [f"dimension {dim}" for dim in range(len(axes))]
    return [*(f"dimension {dim}" for dim in range(len(axes) - 2)), "rows", "columns"]


def _numbers(numbers: range, *, taken: bool) -> str:
    if taken or not numbers:
        return str(numbers[0]) if numbers else "none"
    step = f":{numbers.step}" if numbers.step > 1 and len(numbers) > 1 else ""
    return f"{numbers[0]}:{numbers[-1] + 1}{step}"


def _elements(axis: Axis) -> str:
    if axis.dropped:
        return str(axis.coordinates[0])
    span = axis.span
    if span is not None:
        first, step, count = span
        return f"{first}:{first + (count - 1) * step + 1}{f':{step}' if step > 1 and count > 1 else ''}"
    runs = [f"{first}:{end}" for first, end in axis.runs()]
    if len(runs) <= _MOST_RUNS:
        return " and ".join(runs) or "none"
    return f"{runs[0]} and {runs[1]} … {runs[-1]}"
