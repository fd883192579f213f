"""A space of variants: names, each with the values that it may take, as a dictionary or as a TOML file.

The same kind of space serves `nkitools.tune`, `nkitools.sweep` and ``nkitools.pallas.sweep``. Values are a list, a
``range``, or, where cases are drawn, a Hypothesis strategy. A TOML file has them for each name, at its top or in a
table ``space``; a table of ``start``, ``stop`` and ``step`` is a range::

    BLOCK = [256, 512]
    order = ["mn", "nm"]
    rows = { start = 128, stop = 1024, step = 128 }
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, TypeAlias

Space: TypeAlias = "Mapping[str, Any] | str | os.PathLike[str]"
Point: TypeAlias = "dict[str, Any]"

_RANGE = {"start", "stop", "step"}


def points_of(space: Space) -> Iterator[Point]:
    """Yield each choice of a value for every name, the last name's values changing fastest.

    ValueError for a space without names, for a name without values, and for values that are no list and no range.
    """
    choices = choices_of(space)
    for name, values in choices.items():
        if is_strategy(values):
            raise ValueError(
                f"{name} of the space is a strategy, which has no end: say how many cases to draw, sample=100"
            )
    for values in product(*choices.values()):
        yield dict(zip(choices, values, strict=True))


def drawn_points(space: Space, sample: int | None, seed: int) -> list[Point]:
    """Return all choices, or ``sample`` different ones drawn with ``seed``: fewer where there are no more.

    ValueError as of `points_of`, and for a sample of less than one.
    """
    if sample is None:
        return list(points_of(space))
    if sample < 1:
        raise ValueError(f"sample is {sample}; draw one case or more")
    choices = choices_of(space)
    if any(map(is_strategy, choices.values())):
        return _from_strategies(choices, sample, seed)
    total = prod(len(values) for values in choices.values())
    chosen = random.Random(seed).sample(range(total), min(sample, total))
    return [_point(choices, number) for number in chosen]


def choices_of(space: Space) -> Mapping[str, Any]:
    """Return the values of each name: a sequence that is not empty, or a strategy. ValueError for another form."""
    table = table_of(space)
    found = table.get("space", table) if not isinstance(space, Mapping) else table
    if not isinstance(found, Mapping):
        found = table
    choices = {name: _range(values) for name, values in found.items() if found is not table or name != "arguments"}
    if not choices:
        raise ValueError("the space has no names; give each a list of values: {'BLOCK': [256, 512]}")
    for name, values in choices.items():
        is_list = isinstance(values, Sequence) and not isinstance(values, (str, bytes)) and len(values)
        if not is_list and not is_strategy(values):
            raise ValueError(f"{name} of the space needs a list of values, [256, 512] say; it has {values!r}")
    return choices


def table_of(space: Space) -> Mapping[str, Any]:
    """Return a dictionary as it is, or the whole table of a TOML file. OSError or ValueError if it cannot be read."""
    if isinstance(space, Mapping):
        return space
    if not isinstance(space, (str, os.PathLike)):  # open() takes the number of an open file, too
        raise ValueError(f"the space is a dictionary of lists by name, or the path of a TOML file; it is {space!r}")
    import tomllib

    with open(space, "rb") as file:
        try:
            return tomllib.load(file)
        except ValueError as error:
            raise ValueError(f"{os.fspath(space)} is no TOML file: {error}") from None


def is_strategy(values: Any) -> bool:
    """Return whether values are those of a Hypothesis strategy, which is not imported to find out."""
    return any(each.__module__.startswith("hypothesis.") for each in type(values).__mro__)


def _range(values: Any) -> Any:
    if isinstance(values, Mapping) and "stop" in values and set(values) <= _RANGE:
        return range(values.get("start", 0), values["stop"], values.get("step", 1))
    return values


def _point(choices: Mapping[str, Any], number: int) -> Point:
    """Return the choice of a number, as `points_of` counts them."""
    point = {}
    for name in reversed(list(choices)):
        number, at = divmod(number, len(choices[name]))
        point[name] = choices[name][at]
    return {name: point[name] for name in choices}


def _from_strategies(choices: Mapping[str, Any], sample: int, seed: int) -> list[Point]:
    """Return different draws; Hypothesis ends where it finds no new ones."""
    from hypothesis import HealthCheck, Phase, given, settings, strategies
    from hypothesis import seed as seeded

    each = {
        name: values if is_strategy(values) else strategies.sampled_from(values) for name, values in choices.items()
    }
    found: dict[str, Point] = {}

    @seeded(seed)
    @settings(
        max_examples=4 * sample,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategies.fixed_dictionaries(each))
    def draw(point: Point) -> None:
        if len(found) < sample:
            found.setdefault(repr(point), point)

    draw()
    return list(found.values())
