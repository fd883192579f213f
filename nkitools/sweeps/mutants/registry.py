"""The table of mutation operators, which the modules of operators fill."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from nkitools.sweeps.mutants.source import Edit, Source

Edits = Callable[[Source], Iterator[Edit]]


@dataclass(frozen=True)
class Operator:
    """One kind of mistake: its name, the author's deed, and where it can be made in a source."""

    name: str
    mistake: str
    edits: Edits


OPERATORS: dict[str, Operator] = {}


def operator(name: str, mistake: str) -> Callable[[Edits], Edits]:
    """Put a function that finds the places of a mistake into the table."""

    def registered(edits: Edits) -> Edits:
        assert name not in OPERATORS, f"two operators are called {name}"
        OPERATORS[name] = Operator(name, mistake, edits)
        return edits

    return registered
