"""Tables of the page: each thing stands there once, and everything else names it by its place."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any


class Table:
    """Rows, each once, by a key."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self._places: dict[Hashable, int] = {}

    @property
    def keys(self) -> list[Hashable]:
        """Return the keys of the rows, in their order."""
        return list(self._places)

    def place(self, key: Hashable, row: Any = None) -> int:
        """Return the place of a row (or what it returns; without one the key), which is added where it is new."""
        known = self._places.get(key)
        if known is None:
            made = row() if callable(row) else row
            known = self._places[key] = len(self.rows)
            self.rows.append(key if made is None else made)
        return known


def number(value: float | None) -> float | int | None:
    """Return a number as JSON has it, with the digits of float32; None where it has none."""
    if value is None or not math.isfinite(value):
        return None
    if value == int(value) and abs(value) < 1 << 53:
        return int(value)
    return float(f"{value:.8g}")
