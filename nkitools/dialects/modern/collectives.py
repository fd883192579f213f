"""``nki.collectives`` 0.6: communication between the ranks of a run, ``nkitools.simulate(kernel, ..., ranks=N)``."""

from __future__ import annotations

from typing import Any

from nkitools.dialects.absent import missing
from nkitools.dialects.call_form import with_call_forms
from nkitools.dialects.modern.objects import NKIObject
from nkitools.isa.collectives import all_gather, all_reduce, all_to_all, reduce_scatter
from nkitools.isa.collectives_permute import (
    collective_permute,
    collective_permute_implicit,
    collective_permute_implicit_current_processing_rank_id,
    collective_permute_implicit_reduce,
    rank_id,
)
from nkitools.isa.collectives_variable import all_gather_v, all_to_all_v
from nkitools.issue import replica_groups

__all__ = [
    "ReplicaGroup",
    "all_gather",
    "all_gather_v",
    "all_reduce",
    "all_to_all",
    "all_to_all_v",
    "collective_permute",
    "collective_permute_implicit",
    "collective_permute_implicit_current_processing_rank_id",
    "collective_permute_implicit_reduce",
    "rank_id",
    "reduce_scatter",
]

DOCUMENTED: frozenset[str] = frozenset()  # what this version refuses: nothing


class ReplicaGroup(replica_groups.ReplicaGroup, NKIObject):
    """The ranks that take part in a collective together: ``ReplicaGroup([[0, 1], [2, 3]])``.

    Errors: NK609. Source: nki.collectives.ReplicaGroup (NKI 0.6).
    """


globals().update(with_call_forms("nki.collectives", {name: globals()[name] for name in __all__}))


def __getattr__(name: str) -> Any:
    return missing("nki.collectives", name, DOCUMENTED)
