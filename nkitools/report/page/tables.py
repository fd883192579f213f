"""Tables of the page: each thing stands there once, and everything else names it by its place."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any


class Table:
    """Rows, each once, by a key."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self._places: dict[Hashable, int] = {}

    def place(self, key: Hashable, row: Any = None) -> int:
        """Return the place of a row (the key itself where nothing else is given), which is added where it is new."""
        known = self._places.get(key)
        if known is None:
            known = self._places[key] = len(self.rows)
            self.rows.append(key if row is None else row)
        return known


def loops_row(loops: Mapping[str, int]) -> list[list[Any]]:
    """Counters as JSON: an object's order would be lost where a name is a number."""
    return [[name, value] for name, value in loops.items()]


def number(value: float | None) -> float | int | None:
    """Return a number as JSON has it, with the digits of float32; None where it has none."""
    if value is None or not math.isfinite(value):
        return None
    if value == int(value) and abs(value) < 1 << 53:
        return int(value)
    return float(f"{value:.8g}")
