"""The turns that a loop on the device has made, as the record keeps them."""

from __future__ import annotations

from nkitools.facts.light_classes import NamedTuple


class LoopTurns(NamedTuple):
    """A finished loop on the device, in one program.

    The program's instructions from position ``repeats_from`` to ``end`` of the record repeat those of the first turn.
    """

    program: tuple[int, ...]
    path: tuple[int, ...]  # the sites of the loops around it, and its own
    turns: int
    repeats_from: int
    end: int
