"""The context of sentences about an operator: its tensors by name and element, and the source places of addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

import numpy as np

from nkitools.chip.element_boxes import boxes_text
from nkitools.customop.abi import LOCAL
from nkitools.customop.symbols import Place, Symbols
from nkitools.rules.finding import NO_FACTS, Fact

_MOST_BOXED = 1 << 24  # elements of a tensor whose ranges are boxes


class Message(NamedTuple):
    """A sentence about a broken rule."""

    rule: str
    text: str
    remedy: str = ""  # '' for the remedy of the rule
    severity: str = ""  # '' for the severity of the rule
    facts: Mapping[str, Fact] = NO_FACTS


@dataclass(frozen=True)
class Context:
    """The context of sentences: the operator, its tensors, and the source places of addresses."""

    operator: str
    tensors: dict[int, str]
    symbols: Symbols
    home: Place  # of the kernel, where nothing better is known
    who: str = "kernel"  # the function that ran: kernel or shape function
    ended: bool = True  # whether the call ended there; not where only a second run has guard pages
    shapes: dict[int, tuple[str, tuple[int, ...]]] = field(default_factory=dict)  # names ('': unknown) and shapes

    def tensor(self, number: int) -> str:
        """Return the name of a tensor in a sentence."""
        return self.tensors.get(number, "a tensor that the kernel made" if number == LOCAL else "the tensor")

    def elements(self, number: int, first: int, last: int) -> str:
        """Return ``x[0, 10:20], x[1:8, 0:20]``: a range of a tensor's elements, in its own indices if known."""
        name, shape = self.shapes.get(number, ("", ()))
        if not 0 <= first <= last < prod(shape) <= _MOST_BOXED:
            return span(first, last)
        mask = np.zeros(shape, np.bool_)
        mask.reshape(-1)[first : last + 1] = True
        return boxes_text(name, mask) if name else f"element{'s' if last > first else ''} {boxes_text('', mask)}"

    def line(self, address: int) -> str:
        """Return `` (line 31)`` of an address, '' for an address outside of the author's sources."""
        place = self.symbols.author_place([address]) if address else None
        return f" (line {place.line})" if place is not None else ""


def span(first: int, last: int) -> str:
    """``elements 875..881 (7)``."""
    return f"element {first}" if first == last else f"elements {first}..{last} ({last - first + 1})"
