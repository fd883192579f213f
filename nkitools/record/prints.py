"""Device prints as records."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import numpy as np

from nkitools.chip.numerics import Array


@dataclass(frozen=True, eq=False)
class Print:
    """One ``device_print``: what was printed, with which counters, by which line, and by which of the run's ranks."""

    prefix: str
    value: Array
    shape: tuple[int, ...]
    dtype: str
    program: tuple[int, ...] = ()
    loops: dict[str, int] = field(default_factory=dict)
    file: str = ""
    line: int = 0
    memory: str = ""
    rank: int | None = None

    def place(self) -> str:
        """``program 0, m=0, n=1, giou.py:41``; where there are ranks, ``rank 2`` comes first."""
        program = ", ".join(str(index) for index in self.program) or "0"
        counters = [f"{name}={value}" for name, value in self.loops.items()]
        where = [f"{os.path.basename(self.file)}:{self.line}"] if self.file else []
        rank = [f"rank {self.rank}"] if self.rank is not None else []
        return ", ".join([*rank, f"program {program}", *counters, *where])

    def text(self) -> str:
        """The header, then the array elided as NumPy does."""
        memory = f" {self.memory}" if self.memory else ""
        return f"{self.prefix} [{self.place()}]{memory} {self.dtype} {list(self.shape)}\n{_elided(self.value)}"


def _elided(value: Array) -> str:
    shown = value if value.dtype.kind in "fiub" or value.dtype.names else value.astype(np.float32)
    with np.printoptions(threshold=64, edgeitems=3, linewidth=120):
        return str(shown)
