"""An instruction that may be wrong."""

from __future__ import annotations

from dataclasses import dataclass

from nkitools.why.meetings import Node


@dataclass(frozen=True)
class Suspect:
    """An instruction that may be wrong, and what says so."""

    node: Node
    reason: str
    loop: str = ""  # the counter of the loop that is wrong, in place of the instruction
    beyond: bool = False  # whether it may be an instruction that has made nothing of the value
