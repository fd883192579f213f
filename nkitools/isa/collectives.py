"""Collectives whose parts all have one size: all_reduce, all_gather, reduce_scatter, all_to_all.

Reductions are computed in float32 ("performs its reduction compute in floating point (f32)", NCC_EVRF061) and cast
once, to the destination. The order is not documented and depends on the algorithm that the runtime chooses (ring, mesh
and more); here it is that of the group. A rank stands still until the others have come; on a device it goes on with
what does not touch these tensors.
AWS's own tests of these calls copy inputs into a tensor of the kernel first and results out of one, saying that a
collective "cannot read/write IO tensors"; the reference has no such limit, and none is set here.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.engines.operators import OperatorToken
from nkitools.issue.collective_call import Collective, reduced
from nkitools.issue.collective_meeting import Met
from nkitools.issue.collective_memory import check_hbm
from nkitools.issue.element_maps import of_ranks
from nkitools.issue.element_rules import SAME, Parts
from nkitools.issue.instruction import NkiInstruction
from nkitools.issue.replica_groups import ReplicaGroup, rank_list, rank_of


def all_reduce(
    srcs: list[NkiTensor],
    dsts: list[NkiTensor],
    replica_group: ReplicaGroup,
    op: OperatorToken,
    priority: int | None = None,
    name: str | None = None,
) -> NkiInstruction:
    """Reduce each source over the ranks of the group: ``dst = src of the first rank op … op src of the last``.

    ``srcs``, ``dsts``: lists of tensors, all in HBM or (one pair, two dimensions) all in SBUF. Shapes: equal. Dtypes:
    equal, no integers of 32 or 64 bits, no packed ones. ``op``: nl.add, nl.minimum or nl.maximum, computed in float32
    in the order of the ranks in their group, and cast once. ``priority``: 0 to 3, on NeuronCore-v4 only; it changes no
    result.
    The call waits until all ranks of the group have come (NK504 if one never does). It returns a handle (NKI 0.6:
    None), as all collectives do that move data.
    Since NKI 0.7 the tensors of a list that the kernel itself allocates in HBM are all private or all shared; if the
    kernel runs on one core, private (exceptions: `nkitools.issue.collective_memory`).
    Errors: NK101, NK107, NK109, NK110, NK201, NK301, NK306, NK401, NK402, NK504, NK606, NK609, NK618.
    Source: nki.collectives.all_reduce (NKI 0.7); NCC_EVRF061 (integers).
    """
    call = Collective(all_reduce, priority, name)
    ranks = rank_list(call.check, call.core, replica_group, sized=False)
    sent, received, _ = call.pairs(srcs, dsts)
    check_hbm(call.check, call.core, sent, received)
    operator = call.operator(op, *sent)
    for number, (src, dst) in enumerate(zip(sent, received, strict=True)):
        call.shaped((f"dsts[{number}]", dst), (f"srcs[{number}]", src), src.shape, "that of")

    def moves(met: Met, destinations: list[Array]) -> None:
        for number, (destination, dst) in enumerate(zip(destinations, received, strict=True)):
            total = met.once(number, partial(reduced, operator, met.sources(number)))
            call.put(destination, total, dst)

    elements = of_ranks([(number, rank, SAME) for rank in ranks] for number in range(len(sent)))
    return call.exchange(ranks, received, sent, moves, elements, op=str(operator))


def all_gather(
    srcs: list[NkiTensor],
    dsts: list[NkiTensor],
    replica_group: ReplicaGroup,
    collective_dim: int,
    priority: int | None = None,
    name: str | None = None,
) -> NkiInstruction:
    """Put the sources of all ranks side by side in ``dst`` along ``collective_dim``, in the order of the group.

    ``srcs``, ``dsts``: lists of tensors, all in HBM or (one pair, two dimensions) all in SBUF. Shape of a destination:
    that of its source, with dimension ``collective_dim`` times the number of ranks. Dtypes: equal, any.
    ``collective_dim``: 0 in HBM, 0 or 1 in SBUF. All groups have equally many ranks. Private and shared HBM,
    ``priority``, waiting and the handle are as in ``all_reduce``.
    Errors: NK101, NK107, NK109, NK110, NK201, NK301, NK401, NK402, NK504, NK606, NK609, NK618.
    Source: nki.collectives.all_gather (NKI 0.7).
    """
    call = Collective(all_gather, priority, name)
    ranks = rank_list(call.check, call.core, replica_group)
    sent, received, in_sbuf = call.pairs(srcs, dsts)
    check_hbm(call.check, call.core, sent, received)
    dim = _dimension(call, collective_dim, (0, 1) if in_sbuf else (0,))
    for number, (src, dst) in enumerate(zip(sent, received, strict=True)):
        wanted = (*src.shape[:dim], src.shape[dim] * len(ranks), *src.shape[dim + 1 :])
        why = f"{len(ranks)} times along dimension {dim} that of"
        call.shaped((f"dsts[{number}]", dst), (f"srcs[{number}]", src), wanted, why)

    def moves(met: Met, destinations: list[Array]) -> None:
        for number, destination in enumerate(destinations):
            parts = np.split(destination, len(ranks), axis=dim)
            for part, source in zip(parts, met.sources(number), strict=True):
                np.copyto(part, source, casting="unsafe")

    sizes = [src.shape[dim] for src in sent]
    elements = of_ranks(
        [(number, rank, Parts(((place * size, 0, size),), dim)) for place, rank in enumerate(ranks)]
        for number, size in enumerate(sizes)
    )
    return call.exchange(ranks, received, sent, moves, elements, collective_dim=dim)


def reduce_scatter(
    srcs: list[NkiTensor],
    dsts: list[NkiTensor],
    replica_group: ReplicaGroup,
    collective_dim: int,
    op: OperatorToken,
    priority: int | None = None,
    name: str | None = None,
) -> NkiInstruction:
    """Reduce the sources of all ranks; rank number n of the group gets part n of the result along dimension 0.

    ``srcs``, ``dsts``: lists of tensors, all in HBM or (one pair, two dimensions) all in SBUF. Shape of a source: that
    of its destination, with dimension 0 times the number of ranks. Dtypes: equal, no integers of 32 or 64 bits, no
    packed ones. ``collective_dim``: 0. ``op``: nl.add, nl.minimum or nl.maximum, computed in float32 in the order of
    the group, and cast once. All groups have equally many ranks. ``priority``, waiting and the handle are as in
    ``all_reduce``.
    Errors: NK101, NK107, NK109, NK110, NK113, NK201, NK301, NK306, NK401, NK402, NK504, NK606, NK609.
    Source: nki.collectives.reduce_scatter (NKI 0.6); NCC_EVRF063 (integers).
    """
    call = Collective(reduce_scatter, priority, name)
    ranks = rank_list(call.check, call.core, replica_group)
    sent, received, _ = call.pairs(srcs, dsts)
    _dimension(call, collective_dim, (0,))
    operator = call.operator(op, *sent)
    for number, (src, dst) in enumerate(zip(sent, received, strict=True)):
        rows = _part(call, f"srcs[{number}]", src, len(ranks))
        why = f"one of {len(ranks)} parts along dimension 0 of"
        call.shaped((f"dsts[{number}]", dst), (f"srcs[{number}]", src), (rows, *src.shape[1:]), why)

    def moves(met: Met, destinations: list[Array]) -> None:
        for number, (destination, dst) in enumerate(zip(destinations, received, strict=True)):
            total = met.once(number, partial(reduced, operator, met.sources(number)))
            call.put(destination, np.split(total, len(ranks))[met.at], dst)

    at, sizes = ranks.index(rank_of(call.core)), [dst.shape[0] for dst in received]
    elements = of_ranks(
        [(number, rank, Parts(((0, at * size, size),), 0)) for rank in ranks] for number, size in enumerate(sizes)
    )
    return call.exchange(ranks, received, sent, moves, elements, collective_dim=0, op=str(operator))


def all_to_all(
    srcs: list[NkiTensor],
    dsts: list[NkiTensor],
    replica_group: ReplicaGroup,
    collective_dim: int,
    priority: int | None = None,
    name: str | None = None,
) -> NkiInstruction:
    """Send part n of each source to rank number n of the group; ``dst`` has the parts in the order of the senders.

    ``srcs``, ``dsts``: lists of tensors in HBM. Shapes: equal; dimension 0, along which the parts lie, is a multiple of
    the number of ranks. Dtypes: equal, any. ``collective_dim``: 0. All groups have equally many ranks. ``priority``,
    waiting and the handle are as in ``all_reduce``.
    Errors: NK109, NK113, NK201, NK301, NK401, NK402, NK504, NK606, NK609. Source: nki.collectives.all_to_all (NKI 0.7).
    """
    call = Collective(all_to_all, priority, name)
    ranks = rank_list(call.check, call.core, replica_group)
    sent, received, _ = call.pairs(srcs, dsts, only_hbm=True)
    _dimension(call, collective_dim, (0,))
    for number, (src, dst) in enumerate(zip(sent, received, strict=True)):
        _part(call, f"srcs[{number}]", src, len(ranks))
        call.shaped((f"dsts[{number}]", dst), (f"srcs[{number}]", src), src.shape, "that of")

    def moves(met: Met, destinations: list[Array]) -> None:
        for number, destination in enumerate(destinations):
            parts = np.split(destination, len(ranks))
            for part, source in zip(parts, met.sources(number), strict=True):
                np.copyto(part, np.split(source, len(ranks))[met.at], casting="unsafe")

    at, sizes = ranks.index(rank_of(call.core)), [src.shape[0] // len(ranks) for src in sent]
    elements = of_ranks(
        [(number, rank, Parts(((place * size, at * size, size),), 0)) for place, rank in enumerate(ranks)]
        for number, size in enumerate(sizes)
    )
    return call.exchange(ranks, received, sent, moves, elements, collective_dim=0)


def _dimension(call: Collective, dim: Any, allowed: tuple[int, ...]) -> int:
    """NK609: the dimensions that a collective works along."""
    whole = isinstance(dim, (int, np.integer)) and not isinstance(dim, bool)
    if not whole or int(dim) not in allowed:
        where = "in SBUF" if len(allowed) > 1 else "here"
        call.check.refuse("NK609", f"`collective_dim` must be {' or '.join(map(str, allowed))} {where}, it is {dim!r}")
    return int(dim)


def _part(call: Collective, role: str, tensor: Any, count: int) -> int:
    """NK113: how many rows each of the ranks gets."""
    rows, rest = divmod(tensor.shape[0], count)
    if rest:
        message = f"dimension 0 of `{role}` has {tensor.shape[0]} rows, which {count} ranks cannot share evenly"
        call.check.refuse("NK113", message, tensor, remedy=f"Pad it to a multiple of {count}.")
    return int(rows)
