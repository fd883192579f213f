"""The pair that a door is asked about: what a kernel copies, and what it should return."""

from __future__ import annotations

from typing import Any

PAIR: list[Any] = [None, None]
