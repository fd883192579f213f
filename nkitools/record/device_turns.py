"""The turns that a loop on the device has made, as the record keeps them."""

from __future__ import annotations

from nkitools.facts.light_classes import NamedTuple


class LoopTurns(NamedTuple):
    """A loop on the device that has ended, in one program.

    From position ``repeats_from`` of the record to ``end`` the program's instructions repeat those of the first turn.
    """

    program: tuple[int, ...]
    path: tuple[int, ...]  # the sites of the loops around it, and its own
    turns: int
    repeats_from: int
    end: int
