"""A space of variants: names, each with the values that it may take, as a dictionary or as a TOML file.

The same kind of space serves `nkitools.tune` and ``nkitools.pallas.sweep``. A TOML file has a list for each name, at
its top or in a table ``space``::

    BLOCK = [256, 512]
    order = ["mn", "nm"]
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, TypeAlias

Space: TypeAlias = "Mapping[str, Sequence[Any]] | str | os.PathLike[str]"


def points_of(space: Space) -> Iterator[dict[str, Any]]:
    """Yield each choice of a value for every name, the last name's values changing fastest.

    ValueError for a space without names, for a name without values, and for what is no list of values.
    """
    choices = _choices(space)
    if not choices:
        raise ValueError("the space has no names; give each a list of values: {'BLOCK': [256, 512]}")
    for name, values in choices.items():
        if isinstance(values, (str, bytes)) or not isinstance(values, Sequence) or not len(values):
            raise ValueError(f"{name} of the space needs a list of values, [256, 512] say; it has {values!r}")
    for values in product(*choices.values()):
        yield dict(zip(choices, values, strict=True))


def _choices(space: Space) -> Mapping[str, Any]:
    if isinstance(space, Mapping):
        return space
    import tomllib

    with open(space, "rb") as file:
        found: dict[str, Any] = tomllib.load(file)
    table = found.get("space", found)
    return table if isinstance(table, Mapping) else found
