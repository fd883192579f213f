"""``nki.collectives``: documented, not modelled in this version."""

from __future__ import annotations

from typing import Any

from nkitools.dialects.absent import missing

DOCUMENTED = frozenset(
    {
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
    }
)

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    return missing("nki.collectives", name, DOCUMENTED)
