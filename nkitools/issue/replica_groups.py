"""Replica groups: which ranks take part in a collective together, and where one of them stands among the others."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NoReturn

import numpy as np

from nkitools.chip.core import Core
from nkitools.issue.plan import Check
from nkitools.rules.finding import refuse

_FORM = "Write nki.collectives.ReplicaGroup([[0, 1], [2, 3]]): lists of ranks, with no rank in two of them."
_LISTS = (list, tuple, range)


@dataclass(frozen=True)
class ReplicaGroup:
    """The ranks that take part in a collective: lists of ranks, each list a group of its own.

    The lists may be tuples too, as public kernels write them. A rank's place in its list is its place in what is
    gathered, scattered and exchanged, and in the ring; the reference says "ordered by rank index", which is the same
    for lists in ascending order, all that public kernels have. The field has no documented name: pass it by position.
    Errors: NK609 (form, overlapping groups). Source: nki.collectives.ReplicaGroup (NKI 0.6).
    """

    replica_groups: tuple[tuple[int, ...], ...]

    def __init__(self, replica_groups: ReplicaGroup | Sequence[Sequence[int]]) -> None:
        groups = _lists(replica_groups)
        seen: set[int] = set()
        for rank in (rank for each in groups for rank in each):
            if rank in seen:
                _wrong(f"has rank {rank} twice in {[list(each) for each in groups]}; groups must not overlap")
            seen.add(rank)
        object.__setattr__(self, "replica_groups", groups)


class rg_partition_op(Enum):  # noqa: N801 - the public name
    """The operation of `ReplicaGroup.from_partition_op`: ranks with equal results form one list.

    ``bitwise_and``: ``rank & operand``; ``div``: ``rank // operand``; ``mod``: ``rank % operand``.
    """

    bitwise_and = "bitwise_and"
    div = "div"
    mod = "mod"


_KEYS: dict[rg_partition_op, Callable[[int, int], int]] = {
    rg_partition_op.bitwise_and: operator.and_,
    rg_partition_op.div: operator.floordiv,
    rg_partition_op.mod: operator.mod,
}


def partitioned(world_size: int, op: rg_partition_op, operand: int) -> list[list[int]]:
    """Return the ranks 0 to ``world_size - 1`` in lists: those with equal ``op(rank, operand)`` form one.

    Errors: NK609 (no operation, a size or operand that is no such integer).
    """
    if not isinstance(op, rg_partition_op):
        _wrong(f"from_partition_op: `op` must be a member of nki.collectives.rg_partition_op, it is {op!r}")
    least = 0 if op is rg_partition_op.bitwise_and else 1
    for role, value, low in (("world_size", world_size, 1), ("operand", operand, least)):
        if not is_rank(value) or int(value) < low:
            _wrong(f"from_partition_op: `{role}` must be an integer from {low} on, it is {value!r}")
    found: dict[int, list[int]] = {}
    for rank in range(int(world_size)):
        found.setdefault(_KEYS[op](rank, int(operand)), []).append(rank)
    return list(found.values())


def _lists(given: ReplicaGroup | Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """NK609: what is given, as tuples of ranks."""
    if isinstance(given, ReplicaGroup):
        return given.replica_groups
    groups: list[Any] = list(given) if isinstance(given, _LISTS) else [None]
    if not all(isinstance(each, _LISTS) for each in groups):
        _wrong(f"takes a list of lists of ranks, it is given {given!r}")
    if not groups or not all(groups):
        _wrong(f"has a group without ranks: {given!r}")
    wrong = [rank for each in groups for rank in each if not is_rank(rank)]
    if wrong:
        _wrong(f"has {wrong[0]!r} in {given!r}; a rank is an integer from 0 on")
    return tuple(tuple(int(rank) for rank in each) for each in groups)


def _wrong(sentence: str) -> NoReturn:
    refuse("NK609", f"ReplicaGroup {sentence}", remedy=_FORM)


def is_rank(value: Any) -> bool:
    """Return whether a value is an integer that a rank can be numbered by."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and int(value) >= 0


def rank_of(core: Core) -> int:
    """Return the rank that runs; a launch without ranks is rank 0 of one."""
    return 0 if core.world is None else core.rank or 0


def world_size(core: Core) -> int:
    """Return the number of running ranks."""
    return 1 if core.world is None else core.world.size


def how_to_run(count: int) -> str:
    """Return the remedy for a kernel that needs more ranks than run."""
    each = ", ".join(f"(arguments of rank {rank})" for rank in range(min(count, 2)))
    return f"Run it with nkitools.simulate(kernel, {each}{', ...' if count > 2 else ''}, ranks={count})."


def check_rank(check: Check, core: Core, rank: int, where: str) -> None:
    """NK609: a rank that does not run."""
    size = world_size(core)
    if rank >= size:
        there = "one rank, 0" if size == 1 else f"{size} ranks, 0..{size - 1}"
        check.refuse("NK609", f"{where} names rank {rank}; this run has {there}", remedy=how_to_run(rank + 1))


def rank_list(check: Check, core: Core, group: ReplicaGroup, *, sized: bool = True) -> tuple[int, ...]:
    """Return the running rank's own list, in its order. NK609: no replica group, unknown ranks, a rank in none of the
    lists.

    ``sized``: shapes follow from the length of the lists, which is then the same for all, as all ranks run one
    instruction (the reference has one "rank_list_size").
    """
    if not isinstance(group, ReplicaGroup):
        check.refuse("NK609", f"`replica_group` must be a ReplicaGroup, it is {type(group).__name__}", remedy=_FORM)
    groups = group.replica_groups
    check_rank(check, core, max(rank for each in groups for rank in each), "`replica_group`")
    shown = [list(each) for each in groups]
    if sized and len({len(each) for each in groups}) > 1:
        message = (
            f"`replica_group` {shown} has groups of different sizes; what {check.instruction} moves follows from one"
        )
        check.refuse("NK609", message, remedy="Give each group equally many ranks.")
    mine = rank_of(core)
    for each in groups:
        if mine in each:
            return each
    message = f"rank {mine} is in none of the groups {shown}"
    return check.refuse("NK609", message, remedy="Name every rank that calls the collective in one of the groups.")
