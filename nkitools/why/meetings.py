"""The senders of data that instructions received: in collectives of ranks, and in exchanges of two cores."""

from __future__ import annotations

from collections.abc import Sequence

from nkitools.issue.element_maps import From
from nkitools.record.dependences import Exchange, transfers_in
from nkitools.record.record import Record

Node = tuple[int, int]
"""An instruction: the number of its record, and its position there."""


class Meetings:
    """The instructions that met in each exchange of data between ranks or cores."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = records
        met: dict[Exchange, list[Node]] = {}
        for meeting, number, each in transfers_in(records):
            met.setdefault(meeting, []).append((number, each.position))
        self._others = {node: nodes for nodes in met.values() for node in nodes}

    def origin(self, node: Node, source: From) -> Node | None:
        """Return the instruction of the rank or core that ``source`` names, which met ``node``; None if there is none.

        That is ``node`` itself if the source names neither.
        """
        if source.rank is None and source.core is None:
            return node
        return next((each for each in self._others.get(node, [node]) if self._is_of(each, source)), None)

    def _is_of(self, node: Node, source: From) -> bool:
        number, position = node
        record = self._records[number]
        if source.core is not None:
            return record.program_at(position)[-1:] == (source.core,)
        return (record.rank or 0) == source.rank
