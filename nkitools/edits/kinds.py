"""The table of kinds of edits, which the modules of kinds fill."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from nkitools.edits.source import Edit, Source

Edits = Callable[[Source], Iterator[Edit]]


@dataclass(frozen=True)
class Kind:
    """One kind of mistake: its name, the author's deed, and where it can be made in a source."""

    name: str
    mistake: str
    edits: Edits


KINDS: dict[str, Kind] = {}


def kind(name: str, mistake: str) -> Callable[[Edits], Edits]:
    """Put a function that finds the places of a mistake into the table."""

    def registered(edits: Edits) -> Edits:
        assert name not in KINDS, f"two kinds are called {name}"
        KINDS[name] = Kind(name, mistake, edits)
        return edits

    return registered
