"""The stretches of programs that may run at the same time, as far as the meetings of a launch order them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import combinations
from math import inf

from nkitools.record.record import Meeting

Program = tuple[int, ...]


class Eras:
    """The stretches of programs between meetings, for the accesses to one storage.

    The eras of a program are numbered: its meeting number n ends its era n. A meeting orders all earlier eras of its
    members, and all eras before these, before the later ones: a vector clock of positions in the record.
    """

    def __init__(self, meetings: Sequence[Meeting], storage: int, programs: Sequence[Program]) -> None:
        self._stops: dict[Program, list[int]] = {program: [] for program in programs}
        self._known: dict[Program, list[dict[Program, int]]] = {program: [{}] for program in programs}
        clocks: dict[Program, dict[Program, int]] = {}
        for meeting in meetings:
            if meeting.storage not in (-1, storage):
                continue
            clock: dict[Program, int] = {}
            for program in meeting.programs:
                for other, position in clocks.get(program, {}).items():
                    clock[other] = max(position, clock.get(other, 0))
            clock.update((program, meeting.position) for program in meeting.programs)
            for program in meeting.programs:
                clocks[program] = clock
                if program in self._stops:
                    self._stops[program].append(meeting.position)
                    self._known[program].append(clock)

    def of(self, program: Program, position: int) -> int:
        """Return the era in which a program issued the instruction at ``position``."""
        return bisect_right(self._stops[program], position)

    def side_by_side(self) -> Iterator[list[tuple[Program, int]]]:
        """Yield groups of eras of different programs that no meeting orders.

        Each such pair of eras is in one of the groups. An era is a program and a number.
        """
        if not any(self._stops.values()):
            yield [(program, 0) for program in self._stops]
            return
        for first, second in combinations(self._stops, 2):
            ends_first, ends_second = ([*self._stops[each], inf] for each in (first, second))
            known_of_first = [clock.get(first, 0) for clock in self._known[second]]
            for era, end in enumerate(ends_first):
                after = bisect_right(ends_second, self._known[first][era].get(second, 0))
                before = bisect_left(known_of_first, end)
                for other in range(after, before):
                    yield [(first, era), (second, other)]


def between(meetings: Sequence[Meeting], positions: tuple[int, int], programs: Sequence[Program]) -> list[Meeting]:
    """Return the meetings between two positions of the record in which all of ``programs`` take part."""
    low, high = sorted(positions)
    inside = [each for each in meetings if low < each.position <= high]
    return [each for each in inside if all(program in each.programs for program in programs)]
