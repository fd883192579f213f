"""Loops that AWS's compiler traces once: the author's Python in the body decides for all iterations.

So a kernel that counts addresses up in the body of nl.affine_range or nl.sequential_range gives each tensor only one
address. nl.static_range is unrolled: every iteration has its own addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from nkitools.chip.core import CORE
from nkitools.dialects.legacy.kernels.kernel_state import form_of
from nkitools.language.programs import LoopRange

Address: TypeAlias = tuple[int, int]


class Trace:
    """The addresses given out in the first iteration of a loop, in order, and how many of them this one has met."""

    def __init__(self) -> None:
        self.given: list[tuple[int, Address]] = []
        self.met = 0
        self.is_first = True

    def again(self) -> None:
        """Another iteration begins."""
        self.is_first = False
        self.met = 0

    def known(self, site: int) -> Address | None:
        """Return the address that the first iteration gave to the tensor that this one is about to make."""
        if self.is_first or self.met >= len(self.given) or self.given[self.met][0] != site:
            return None
        return self.given[self.met][1]

    def give(self, site: int, address: Address) -> None:
        """Give a tensor its address."""
        if self.is_first:
            self.given.append((site, address))
        self.met += 1


class TracedRange(LoopRange):
    """A range whose body is traced once."""

    def __iter__(self) -> Iterator[int]:
        if CORE.get() is None:
            yield from super().__iter__()
            return
        traces = form_of().traces
        trace = Trace()
        traces.append(trace)
        try:
            for value in super().__iter__():
                yield value
                trace.again()
        finally:
            traces.remove(trace)


def traced_address(site: int, decide: Callable[[], Address]) -> Address:
    """Return the address of a tensor made at a site; a new one only if no loop around it has one already."""
    traces = form_of().traces
    found = next((address for each in traces if (address := each.known(site)) is not None), None)
    address = decide() if found is None else found
    for trace in traces:
        trace.give(site, address)
    return address
