"""Permutes: each rank sends to one rank and receives from one, as pairs say or around a ring; and who a rank is.

In a ring a rank sends to the next one of its group and receives from the one before, the last sends to the first. On a
device the runtime lays the ring out, each channel its own, and only there is known whose data have come; here all rings
go in the order of the group. A kernel that asks
``collective_permute_implicit_current_processing_rank_id`` is right in both.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.chip.registers import VirtualRegister
from nkitools.chip.tensor import NkiTensor
from nkitools.engines.operators import OperatorToken
from nkitools.issue import instruction_guards
from nkitools.issue.careful_call import CarefulCall
from nkitools.issue.carry_out import carry_out
from nkitools.issue.collective_call import Collective, reduced
from nkitools.issue.collective_meeting import Met
from nkitools.issue.element_maps import made, of_ranks
from nkitools.issue.element_rules import SAME
from nkitools.issue.instruction import NkiInstruction
from nkitools.issue.plan import Plan
from nkitools.issue.replica_groups import ReplicaGroup, check_rank, how_to_run, is_rank, rank_list, rank_of
from nkitools.issue.resolve import plan_of

MOST_CHANNELS = 4  # "4 for replica groups containing all devices inside a node and 2 for other" (channels)
_ONE_CHANNEL = [0]


def collective_permute(
    srcs: list[NkiTensor],
    dsts: list[NkiTensor],
    source_target_pairs: list[tuple[int, int]],
    priority: int | None = None,
    name: str | None = None,
) -> NkiInstruction:
    """For each ``(source, target)`` of the pairs copy ``srcs[0]`` of rank source to ``dsts[0]`` of rank target.

    ``srcs``, ``dsts``: lists of one tensor in HBM, of equal shape and dtype. A rank is a source once and a target once
    at most. All ranks of the pairs wait for each other (NK504); on any other rank the call does nothing. A rank that is
    no target keeps its ``dst`` as it was. Any pairs run here, as AWS's docstring has it; the runtime's guide, which is
    older, allows only circular permutes between neighbours. ``priority`` and the handle are as in ``all_reduce``.
    Errors: NK109, NK201, NK301, NK401, NK402, NK504, NK606, NK609.
    Source: nki.collectives.collective_permute (NKI 0.6).
    """
    call = Collective(collective_permute, priority, name)
    pairs = _pairs(call, source_target_pairs)
    sent, received, _ = call.pairs(srcs, dsts, one=True, only_hbm=True)
    call.shaped(("dsts[0]", received[0]), ("srcs[0]", sent[0]), sent[0].shape, "that of")
    mine = rank_of(call.core)
    ranks = sorted({rank for pair in pairs for rank in pair})
    if mine not in ranks:
        return call.handle()
    origin = next((source for source, target in pairs if target == mine), None)

    def moves(met: Met, destinations: list[Array]) -> None:
        if origin is not None:
            np.copyto(destinations[0], met.source(0, ranks.index(origin)), casting="unsafe")

    sends = any(source == mine for source, _ in pairs)
    masks = (_all_or_none(received[0], origin is not None), _all_or_none(sent[0], sends))
    elements = made({"dsts[0]": {"dsts[0]": SAME}}) if origin is None else of_ranks([[(0, origin, SAME)]])
    return call.exchange(ranks, received, sent, moves, elements, touches=masks, source_target_pairs=pairs)


def collective_permute_implicit(
    srcs_by_channel: list[list[NkiTensor]],
    dsts_by_channel: list[list[NkiTensor]],
    replica_group: ReplicaGroup,
    channel_ids: list[int] = _ONE_CHANNEL,
    priority: int | None = None,
    name: str | None = None,
) -> NkiInstruction:
    """Copy the source of each rank to the ``dst`` of the next rank in the ring of its group, on each channel.

    The ring has the order of the group; the last rank sends to the first. ``srcs_by_channel``, ``dsts_by_channel``: for
    each channel a list of one tensor, all in HBM or all in SBUF (two dimensions). Shapes and dtypes: equal on a
    channel. ``channel_ids``: [0], [0, 1] and so on, at most 4; the reference allows 2 if the group does not have all
    devices of a node, which is not checked. A rank goes on when all channels have moved. ``priority``, waiting and the
    handle are as in ``all_reduce``.
    Errors: NK101, NK107, NK109, NK110, NK201, NK301, NK401, NK402, NK504, NK606, NK609.
    Source: nki.collectives.collective_permute_implicit (NKI 0.6).
    """
    call = Collective(collective_permute_implicit, priority, name)
    ranks = rank_list(call.check, call.core, replica_group, sized=False)
    channels = _channels(call, channel_ids)
    sent = call.by_channel("srcs_by_channel", srcs_by_channel, channels)
    received = call.by_channel("dsts_by_channel", dsts_by_channel, channels)
    _check_ring(call, srcs_by_channel=sent, dsts_by_channel=received)

    def moves(met: Met, destinations: list[Array]) -> None:
        for channel, destination in enumerate(destinations):
            np.copyto(destination, met.source(channel, met.at - 1), casting="unsafe")

    before = ranks[ranks.index(rank_of(call.core)) - 1]
    elements = of_ranks([(channel, before, SAME)] for channel in range(channels))
    return call.exchange(ranks, received, sent, moves, elements, channel_ids=channels)


def collective_permute_implicit_reduce(
    srcs0_by_channel: list[list[NkiTensor]],
    srcs1_by_channel: list[list[NkiTensor]],
    dsts_by_channel: list[list[NkiTensor]],
    replica_group: ReplicaGroup,
    op: OperatorToken,
    channel_ids: list[int] = _ONE_CHANNEL,
    priority: int | None = None,
    name: str | None = None,
) -> NkiInstruction:
    """Send ``src0 op src1`` of each rank to the ``dst`` of the next rank in the ring of its group, on each channel.

    Lists, memory, shapes, dtypes, channels and ``priority`` are those of ``collective_permute_implicit``, here of three
    tensors; no integers of 32 or 64 bits, no packed dtypes. ``op``: nl.add, nl.minimum or nl.maximum, computed in
    float32, and cast once.
    Errors: NK101, NK107, NK109, NK110, NK201, NK301, NK306, NK401, NK402, NK504, NK606, NK609.
    Source: nki.collectives.collective_permute_implicit_reduce (NKI 0.6); NCC_EVRF061 (integers).
    """
    call = Collective(collective_permute_implicit_reduce, priority, name)
    ranks = rank_list(call.check, call.core, replica_group, sized=False)
    channels = _channels(call, channel_ids)
    first = call.by_channel("srcs0_by_channel", srcs0_by_channel, channels)
    second = call.by_channel("srcs1_by_channel", srcs1_by_channel, channels)
    received = call.by_channel("dsts_by_channel", dsts_by_channel, channels)
    _check_ring(call, srcs0_by_channel=first, srcs1_by_channel=second, dsts_by_channel=received)
    operator = call.operator(op, *first)

    def moves(met: Met, destinations: list[Array]) -> None:
        for channel, (destination, dst) in enumerate(zip(destinations, received, strict=True)):
            operands = [met.source(each, met.at - 1) for each in (channel, channels + channel)]
            call.put(destination, reduced(operator, operands), dst)

    before = ranks[ranks.index(rank_of(call.core)) - 1]
    elements = of_ranks([(each, before, SAME) for each in (channel, channels + channel)] for channel in range(channels))
    return call.exchange(ranks, received, [*first, *second], moves, elements, channel_ids=channels, op=str(operator))


def collective_permute_implicit_current_processing_rank_id(
    iteration_id: int, replica_group: ReplicaGroup, channel_id: int = 0, name: str | None = None
) -> VirtualRegister:
    """Return a register with the rank whose data a rank has after ``iteration_id`` steps around the ring of its group.

    After 0 steps that is the rank itself, after 1 step the one before it in the ring, and so on around. The number is
    that of the rank in the run, not its place in the group (the reference: "the rank ID"). ``iteration_id``: an integer
    of at least 0. ``channel_id``: 0 to 3; all channels give the same number here.
    Errors: NK609. Source: nki.collectives.collective_permute_implicit_current_processing_rank_id (NKI 0.6).
    """
    call = Collective(collective_permute_implicit_current_processing_rank_id, None, name)
    ranks = rank_list(call.check, call.core, replica_group, sized=False)
    step = instruction_guards.integer(call.check, "iteration_id", iteration_id, 0)
    instruction_guards.integer(call.check, "channel_id", channel_id, 0, MOST_CHANNELS - 1)
    return _register(call, ranks[(ranks.index(rank_of(call.core)) - step) % len(ranks)])


def rank_id(name: str | None = None) -> VirtualRegister:
    """Return a register with the number of the rank that runs; both cores of a logical NeuronCore are one rank.

    "Within the collective group" is read as: among all ranks of the run, as the call names no group.
    Errors: NK609 (in a kernel that runs without ranks). Source: nki.collectives.rank_id (NKI 0.6).
    """
    call = Collective(rank_id, None, name)
    if call.core.world is None:
        call.check.refuse(
            "NK609", "the kernel runs without ranks, so that there is no rank to name", remedy=how_to_run(2)
        )
    return _register(call, rank_of(call.core))


def _register(call: Collective, rank: int) -> VirtualRegister:
    """Return a register that an instruction has set; no cost is published: that of the shortest instruction."""
    cycles = float(call.core.generation.min_initiation_cycles)
    plan = plan_of(call.core, (call.name,), lambda: Plan("sync", cycles, lambda: None, made(), name=call.name))
    carry_out(CarefulCall(call.core, plan, (), (), plan), call, call.label)
    return VirtualRegister(rank)


def _pairs(call: Collective, given: Any) -> tuple[tuple[int, int], ...]:
    """NK609: pairs of ranks that run, none of them a source or a target twice."""
    form = isinstance(given, (list, tuple)) and all(
        isinstance(each, (list, tuple)) and len(each) == 2 for each in given
    )
    if not form or not given or not all(is_rank(rank) for each in given for rank in each):
        call.check.refuse("NK609", f"`source_target_pairs` must be a list of (source, target) ranks, it is {given!r}")
    pairs = tuple((int(source), int(target)) for source, target in given)
    check_rank(call.check, call.core, max(rank for each in pairs for rank in each), "`source_target_pairs`")
    for role, ranks in (("source", [pair[0] for pair in pairs]), ("target", [pair[1] for pair in pairs])):
        twice = next((rank for rank in ranks if ranks.count(rank) > 1), None)
        if twice is not None:
            message = f"`source_target_pairs` {list(pairs)} has rank {twice} as a {role} twice; it is one once at most"
            call.check.refuse("NK609", message)
    return pairs


def _channels(call: Collective, given: Any) -> int:
    """NK609: "consecutive integers starting from 0"; how many."""
    count = len(given) if isinstance(given, (list, tuple, range)) else 0
    if not 1 <= count <= MOST_CHANNELS or [*given] != [*range(count)]:
        shown = [*range(MOST_CHANNELS)]
        call.check.refuse(
            "NK609", f"`channel_ids` must be [0] or the first of {shown}, consecutive from 0; it is {given!r}"
        )
    return count


def _check_ring(call: Collective, **lists: list[NkiTensor]) -> None:
    """NK109, NK201, NK301: on each channel tensors of one shape and dtype, all of them in one memory."""
    call.alike(**lists)
    call.memory(lists, coalesced=False)
    (first, sources), *others = lists.items()
    for role, tensors in others:
        for channel, (src, each) in enumerate(zip(sources, tensors, strict=True)):
            call.shaped((f"{role}[{channel}][0]", each), (f"{first}[{channel}][0]", src), src.shape, "that of")


def _all_or_none(tensor: NkiTensor, takes_part: bool) -> Array | None:
    """Return a mask of the elements of a tensor that a permute touches; None for all."""
    return None if takes_part else np.zeros((1,) * tensor.ndim, np.bool_)
