"""The meeting of a group's ranks in a collective: cores wait for each other, and arguments must agree.

The cores of a logical NeuronCore each issue the collective, as one program runs on both. Core c of a rank exchanges
with core c of the other ranks; data in shared HBM, which both cores of a rank name alike, are moved once for both.
So the two cores of a rank wait for each other before a collective of shared HBM and after it: each core may have
written a part of the data sent, and may read all of the data received. The reference does not mention two cores; public
production kernels, which send the writes of both cores with no barrier between them, rely on this.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from nkitools.chip.core import Core
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.issue.plan import Check
from nkitools.issue.replica_groups import rank_of
from nkitools.record.beside_rows import Transfer
from nkitools.record.rows import storages_of, words_of

# The rule of a disagreement between the ranks of a group; NK609 where none is named.
_RULES = {"the collective": "NK504", "the memory": "NK201", "dtypes": "NK301", "shapes": "NK109"}


@dataclass(eq=False)
class Offer:
    """The offer of one core to a collective: its line in the kernel, values that must agree, copies of its data."""

    rank: int
    number: int  # that the baton knows the program by
    members: tuple[int, ...]  # the numbers of those that meet
    place: str
    agreed: dict[str, Any]
    sources: list[Array]
    complaint: tuple[str, str] | None = None  # rule and sentence, where this one differs from the others
    shared: dict[Any, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Met:
    """The offers of a group's ranks, in the order of the group; ``at`` is the running rank's place in it."""

    offers: list[Offer]
    at: int
    senders: set[int] = field(default_factory=set)  # the numbers of the programs whose sources were taken

    def source(self, number: int, at: int) -> Array:
        """Return source ``number`` of the rank at this place of the group."""
        self.senders.add(self.offers[at].number)
        return self.offers[at].sources[number]

    def sources(self, number: int) -> list[Array]:
        """Return source ``number`` of all ranks."""
        return [self.source(number, at) for at in range(len(self.offers))]

    def transfer(self, position: int) -> Transfer:
        """Return from whom the running rank's instruction at ``position`` has received."""
        mine = self.offers[self.at]
        return Transfer(position, mine.members, mine.number, tuple(sorted(self.senders - {mine.number})))

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return a value that all ranks of the group share; the first caller makes it."""
        shared = self.offers[0].shared
        if key not in shared:
            shared[key] = make()
        return shared[key]


def meet(check: Check, core: Core, ranks: Sequence[int], agreed: dict[str, Any], sources: Iterable[Array]) -> Met:
    """Wait for the same core of the other ranks; the n-th collective of these ranks is the same one on all of them.

    Errors: NK504 (a rank that does not come, another collective, other groups), NK109, NK201, NK301, NK609 (arguments
    that do not agree, on the rank that differs).
    """
    index = core.team.index(core.baton.running)
    members = tuple(rank * len(core.team) + index for rank in ranks)
    mine = Offer(
        rank_of(core),
        core.baton.running,
        members,
        place_of(core),
        {"the collective": check.instruction, **agreed},
        list(sources),
    )
    _check_groups(check, core, mine, ranks)
    waiting = f"waits in nki.collectives.{check.instruction} with ranks {list(ranks)} at {mine.place}"
    standing = {} if core.world is None else core.world.standing
    standing[mine.number] = mine

    def settle(offered: dict[int, Offer]) -> None:
        for member in members:
            standing.pop(member, None)  # a program that has been met waits no longer, though it may not run yet
        _compare([offered[member] for member in members])

    offered: dict[int, Offer] = core.baton.meet("collective", members, mine, lambda: waiting, settle)
    offers = [offered[member] for member in members]
    if mine.complaint is not None:
        rule, sentence = mine.complaint
        check.refuse(rule, sentence, remedy=_SAME)
    if any(offer.complaint for offer in offers):  # stand still until the rank that differs has ended the run
        core.baton.wait_until(lambda: False, lambda: waiting)
    return Met(offers, ranks.index(mine.rank))


def _check_groups(check: Check, core: Core, mine: Offer, ranks: Sequence[int]) -> None:
    """NK504: another rank waits for this one already, in a group of other ranks."""
    standing = {} if core.world is None else core.world.standing
    for member in mine.members:
        other = standing.get(member)
        if other is None or other.members == mine.members or core.baton.running not in other.members:
            continue
        theirs = [each // len(core.team) for each in other.members]
        if sorted(theirs) != sorted(ranks):
            message = (
                f"rank {mine.rank} waits with ranks {list(ranks)} here, while rank {other.rank} waits for it in "
                f"{other.agreed['the collective']} with ranks {theirs} at {other.place}, so that neither goes on"
            )
            check.refuse("NK504", message, remedy=_SAME)
        message = (
            f"rank {mine.rank} has its group in the order {list(ranks)}, rank {other.rank} in the order {theirs} at "
            f"{other.place}"
        )
        check.refuse("NK609", message, remedy=_SAME)


_SAME = "Call the same collectives with the same groups, sizes and operators, in the same order, on every rank."


def _compare(offers: list[Offer]) -> None:
    """Put a complaint on the first offer that differs from the majority (in a tie: from the first offer)."""
    for what in offers[0].agreed:
        values = [offer.agreed.get(what) for offer in offers]
        counts = Counter(map(str, values))
        usual = max(values, key=lambda value: counts[str(value)])
        wrong = next((offer for offer in offers if offer.agreed.get(what) != usual), None)
        if wrong is None:
            continue
        right = [offer for offer in offers if offer.agreed.get(what) == usual]
        places = ", ".join(dict.fromkeys(offer.place for offer in right))
        others = f"rank{'' if len(right) == 1 else 's'} {', '.join(str(offer.rank) for offer in right)}"
        wrong.complaint = (
            _RULES.get(what, "NK609"),
            f"{what} must be the same on all ranks of a group: {_shown(wrong.agreed.get(what))} on rank {wrong.rank} "
            f"at {wrong.place}, {_shown(usual)} on {others} at {places}",
        )
        return


def _shown(value: Hashable) -> str:
    return value if isinstance(value, str) else repr(value)


def shared_words(operands: Iterable[NkiTensor]) -> tuple[int, ...]:
    """Return the words of the operands in shared HBM: which views these are."""
    return tuple(words_of(each for each in operands if each.buffer is MemoryRegion.shared_hbm))


def both_cores(core: Core, what: str, words: tuple[int, ...]) -> bool:
    """Wait for the other core of a rank if operands are in shared HBM; return whether this core moves the data for
    both.

    It does if both cores name the same views and it comes first in the grid. Earlier accesses of each core to these
    tensors come before later accesses of the other. Errors: NK504.
    """
    if len(core.team) < 2 or not words:
        return False
    place = place_of(core)
    programs = [(number,) for number in range(len(core.team))]

    def settle(offered: dict[int, tuple[int, ...]]) -> None:
        for storage in dict.fromkeys(storage for each in offered.values() for storage in storages_of(each)):
            core.record.met(programs, storage)

    offered = core.baton.meet(
        "cores of a collective",
        core.team,
        words,
        lambda: f"waits in nki.collectives.{what} for the other core of its rank at {place}",
        settle,
    )
    first = core.team[0]
    return bool(core.baton.running != first and offered[first] == words)


def check_lnc(check: Check, core: Core) -> None:
    """NK613: "Only LNC=2 is supported" (all_gather_v, all_to_all_v)."""
    if len(core.team) != 2:
        message = f"{check.instruction} is supported on LNC=2 only; this kernel is launched on one core a rank"
        check.fail("NK613", message, remedy="Launch it as kernel[2], or with grid=2.")


def place_of(core: Core) -> str:
    """``kernel.py:12``: the author's current line."""
    site = core.record.sites[core.record.site()]
    return f"{os.path.basename(site.file)}:{site.line}"
