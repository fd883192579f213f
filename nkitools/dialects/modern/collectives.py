"""``nki.collectives``: communication between the ranks of a run, ``nkitools.simulate(kernel, ..., ranks=N)``.

Beside the errors that its docstring lists each function can give those of every instruction, which the docstring of
``nki.isa`` names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nkitools.dialects.call_form import language_here
from nkitools.dialects.modern.objects import NKIObject
from nkitools.dialects.public import find, publish
from nkitools.facts.versions import by_full_name
from nkitools.issue import replica_groups
from nkitools.rules.finding import refuse

if TYPE_CHECKING:
    from nkitools.isa.collectives import *
    from nkitools.isa.collectives_permute import *
    from nkitools.isa.collectives_prepared import *
    from nkitools.isa.collectives_variable import *


class ReplicaGroup(replica_groups.ReplicaGroup, NKIObject):
    """The ranks that take part in a collective together: ``ReplicaGroup([[0, 1], [2, 3]])``.

    Each list of ranks is a group of its own. The place of a rank in its list is its place in what is gathered,
    scattered and exchanged. Errors: NK609 (another form, no list, an empty one, a rank twice).
    Source: nki.collectives.ReplicaGroup (NKI 0.7).
    """

    @classmethod
    def from_partition_op(cls, world_size: int, op: replica_groups.rg_partition_op, operand: int) -> ReplicaGroup:
        """Return a replica group of ``world_size`` ranks: those with equal ``op(rank, operand)`` form a list.

        Of 8 ranks ``div, 4`` makes ``[[0, 1, 2, 3], [4, 5, 6, 7]]``, ``mod, 4`` ``[[0, 4], [1, 5], [2, 6], [3, 7]]``.
        ``op``: ``div``, ``mod`` or ``bitwise_and`` of ``rg_partition_op``; ``operand``: at least 1, for ``bitwise_and``
        at least 0.
        Errors: NK608 (before NKI 0.7), NK609. Source: nki.collectives.ReplicaGroup (NKI 0.7).
        """
        row, language = by_full_name()["nki.collectives.ReplicaGroup.from_partition_op"], language_here()
        if not row.is_in(language):
            refuse("NK608", f"{row.short} {row.absence(language)}", remedy=row.instead)
        return cls(replica_groups.partitioned(world_size, op, operand))


publish(globals(), "nki.collectives")


def __getattr__(name: str) -> Any:
    return find(globals(), "nki.collectives", name)
