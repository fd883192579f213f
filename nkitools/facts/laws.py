"""Laws of time that profiles of chips show: what an instruction takes, as a fixed part and a part an element.

The table is ``laws.tsv``. ``opcode`` and ``function`` are a profile's, ``instructions`` the names that have them here.
An instruction of n elements in a partition (bytes, for the DMA) takes ``fixed_ns`` + n x ``element_ns`` from its start
to its end, and lets go of its engine ``overlap_ns`` earlier. An empty ``element_ns`` is the documented rate. ``seen``
are the instructions that the row is fitted to, ``error`` is its largest error at their medians (where it is empty, one
line was published). ``src`` and ``dst`` are a dtype and a memory; ``*`` stands for all. A generation without rows has
documented costs alone, as an instruction has that no row names.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from nkitools.facts.tsv import rows_of

_WIDTHS = {1: "uint8", 2: "bfloat16", 4: "float32"}  # the profiled dtypes, which others of their width count as
_ANY = "*"


class Law(NamedTuple):
    """One row of the table."""

    generation: str
    engine: str
    opcode: str
    instructions: str
    function: str
    src: str
    dst: str
    fixed_ns: float
    element_ns: float | None  # None for the documented rate
    overlap_ns: float
    seen: int
    error: str
    source: str

    def nanoseconds(self, elements: float, documented: float = 0.0) -> float:
        """Return how long it takes; ``documented``: nanoseconds by the documented rate."""
        return self.fixed_ns + (documented if self.element_ns is None else elements * self.element_ns)

    def _fits(self, function: str, src: str, dst: str) -> bool:
        words = self._words <= set(function.lower().split())
        return words and all(own in (_ANY, other) for own, other in ((self.src, src), (self.dst, dst)))

    @property
    def _words(self) -> set[str]:
        return set() if self.function == _ANY else set(self.function.split())

    @property
    def _named(self) -> int:
        others = self.instructions, self.opcode, self.src, self.dst
        return len(self._words) + sum(each != _ANY for each in others)


@cache
def laws() -> tuple[Law, ...]:
    """Return all rows of the table."""
    return tuple(
        Law(
            **{
                name: row[name] for name in ("generation", "engine", "opcode", "instructions", "function", "src", "dst")
            },
            fixed_ns=float(row["fixed_ns"]),
            element_ns=float(row["element_ns"]) if row["element_ns"] else None,
            overlap_ns=float(row["overlap_ns"] or 0),
            seen=int(row["seen"]),
            error=row["error"],
            source=row["source"],
        )
        for row in rows_of(Path(__file__).with_name("laws.tsv"))
    )


@cache
def law_of(generation: str, engine: str, name: str, function: str, src: str, dst: str) -> Law | None:
    """Return the law of an instruction of this project's names, the one that names most of it; None for none."""
    return _most_named(
        each
        for each in laws()
        if (each.generation, each.engine.lower()) == (generation, engine)
        and (each.instructions == _ANY or name in each.instructions.split())
        and each._fits(function, src, dst)
    )


@cache
def profiled(generation: str, engine: str, opcode: str, function: str, src: str = "-", dst: str = "-") -> Law | None:
    """Return the law of an instruction of a profile's names."""
    return _most_named(
        each
        for each in laws()
        if (each.generation, each.engine, each.opcode) == (generation, engine, opcode)
        and each._fits(function, src, dst)
    )


def _most_named(found: Iterable[Law]) -> Law | None:
    return max(found, key=lambda each: each._named, default=None)


def operand(itemsize: int, memory: str) -> str:
    """Return the text of an operand as the table has it."""
    return f"{_WIDTHS.get(itemsize, _ANY)} {memory}"
