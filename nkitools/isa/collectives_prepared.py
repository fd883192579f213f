"""The halves of all_gather_v and all_to_all_v: prepare reads the metadata ahead of time, trigger moves the data.

A core has one slot. A prepare takes the slot, for either of the two, and the trigger that is given the handle of that
prepare frees it. Prepare looks at the metadata only, so sources and destinations may be filled afterwards, and the
metadata may be overwritten. The number of elements received is written (row 2 of the metadata) by the trigger.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from nkitools.chip.core import current_core
from nkitools.chip.tensor import NkiTensor
from nkitools.isa.collectives_variable import ChunkExchange
from nkitools.issue.collective_call import Collective
from nkitools.issue.collective_meeting import both_cores, place_of, shared_words
from nkitools.issue.element_maps import made
from nkitools.issue.instruction import NkiInstruction
from nkitools.issue.replica_groups import ReplicaGroup


def all_gather_v_prepare(
    srcs: list[NkiTensor],
    dsts: list[NkiTensor],
    replica_group: ReplicaGroup,
    metadata_tensor: NkiTensor,
    recv_counts_known: bool = False,
    has_rdispls: bool = False,
    priority: int | None = None,
    name: str | None = None,
) -> NkiInstruction:
    """Read the metadata of an all_gather_v ahead of time; return the handle that `all_gather_v_trigger` takes.

    Arguments and limits are those of ``all_gather_v``. Refused on NeuronCore-v4, which has a NeuronSwitch (NK606). A
    core holds one prepare at a time: the next one is NK609 before the trigger, and a prepare without a trigger is
    NK504. A prepare waits for no other rank. Sources, destinations and metadata may be written between prepare and
    trigger; the metadata count as they were read.
    Errors: NK109, NK113, NK201, NK301, NK401, NK504, NK606, NK609, NK613.
    Source: nki.collectives.all_gather_v_prepare (NKI 0.7). No cost is published: that of a DMA transfer of the
    metadata.
    """
    call = _Prepared(all_gather_v_prepare, priority, name, recv_counts_known, has_rdispls)
    call.gather(srcs, dsts, replica_group, metadata_tensor)
    return call.prepare()


def all_gather_v_trigger(prepare_instr: NkiInstruction, name: str | None = None) -> NkiInstruction:
    """Do the all_gather_v that a prepare has described: read its ``srcs``, write its ``dsts`` and the received sizes.

    ``prepare_instr``: the handle of the `all_gather_v_prepare` that this core issued last, in the same loop on the
    device; any other handle is NK609. The call waits for the other ranks.
    Errors: NK401, NK402, NK504, NK609. Source: nki.collectives.all_gather_v_trigger (NKI 0.7). Cost: that of
    ``all_gather_v``.
    """
    return _triggered(all_gather_v_trigger, all_gather_v_prepare, prepare_instr, name)


def all_to_all_v_prepare(
    srcs: list[NkiTensor],
    dsts: list[NkiTensor],
    replica_group: ReplicaGroup,
    metadata_tensor: NkiTensor,
    recv_counts_known: bool = False,
    has_rdispls: bool = False,
    priority: int | None = None,
    name: str | None = None,
) -> NkiInstruction:
    """Read the metadata of an all_to_all_v ahead of time; return the handle that `all_to_all_v_trigger` takes.

    Arguments and limits are those of ``all_to_all_v``. Refused on NeuronCore-v4, which has a NeuronSwitch (NK606). A
    core holds one prepare at a time: the next one is NK609 before the trigger, and a prepare without a trigger is
    NK504. A prepare waits for no other rank. Sources, destinations and metadata may be written between prepare and
    trigger; the metadata count as they were read.
    Errors: NK109, NK113, NK201, NK301, NK401, NK504, NK606, NK609, NK613.
    Source: nki.collectives.all_to_all_v_prepare (NKI 0.7). No cost is published: that of a DMA transfer of the
    metadata.
    """
    call = _Prepared(all_to_all_v_prepare, priority, name, recv_counts_known, has_rdispls)
    call.scatter(srcs, dsts, replica_group, metadata_tensor)
    return call.prepare()


def all_to_all_v_trigger(prepare_instr: NkiInstruction, name: str | None = None) -> NkiInstruction:
    """Do the all_to_all_v that a prepare has described: read its ``srcs``, write its ``dsts`` and the received sizes.

    ``prepare_instr``: the handle of the `all_to_all_v_prepare` that this core issued last, in the same loop on the
    device; any other handle is NK609. The call waits for the other ranks.
    Errors: NK401, NK402, NK504, NK607 (chunks that overlap), NK609.
    Source: nki.collectives.all_to_all_v_trigger (NKI 0.7). Cost: that of ``all_to_all_v``.
    """
    return _triggered(all_to_all_v_trigger, all_to_all_v_prepare, prepare_instr, name)


class _Prepared(ChunkExchange):
    """A prepare, and after it the exchange that is to be triggered."""

    def prepare(self) -> NkiInstruction:
        """Read the metadata and take the slot of the core. Errors: NK401, NK504, NK606, NK609."""
        core, metadata = self.core, [self.metadata]
        if core.generation.neuron_switch:
            message = f"{core.generation.name} has a NeuronSwitch, on which a collective has no halves"
            self.check.fail("NK606", message, remedy=f"Call {self.name.removesuffix('_prepare')}, which does both.")
        if core.prepared is not None:
            message = f"{core.prepared.shown} was not triggered yet; one prepare at a time can wait for its trigger"
            self.check.refuse("NK609", message, remedy=f"Call {core.prepared.trigger_name} before this line.")
        words = shared_words(metadata)
        both_cores(core, self.name, words)
        self.table = self.read()
        plan = self.plan([], metadata, made(), names_only=False)
        self.instruction = self.carry_out(plan, [], metadata, _read_already, (self.used,))
        self.site, self.shown = core.record.site(), f"{self.name} at {place_of(core)}"
        both_cores(core, self.name, words)
        core.prepared = self
        return self.instruction

    @property
    def trigger_name(self) -> str:
        """Return the name of the other half."""
        return f"{self.name.removesuffix('_prepare')}_trigger"

    def trigger(self, call: Collective) -> NkiInstruction:
        """Exchange, as the trigger that ``call`` is."""
        prepared = self.position
        self.core.prepared = None
        self.name, self.check, self.label = call.name, call.check, call.label
        handle = self.send(self.table, [])
        self.core.record.beside.depends(self.position, [prepared])
        return handle


def _triggered(
    function: Callable[..., object], prepare: Callable[..., object], given: NkiInstruction, name: str | None
) -> NkiInstruction:
    """Trigger the prepare that waits. NK609: there is none, or the handle is that of another instruction."""
    call = Collective(function, None, name)
    waiting: _Prepared | None = current_core(f"nki.collectives.{call.name}").prepared

    def wrong(sentence: str) -> NoReturn:
        remedy = f"Pass what {prepare.__name__} has returned, once, before the next prepare."
        call.check.refuse("NK609", sentence, remedy=remedy)

    if not isinstance(given, NkiInstruction):
        wrong(f"`prepare_instr` must be the handle of a prepare, it is of class {type(given).__name__}")
    if waiting is None:
        wrong("there is no prepare that waits for its trigger; each prepare has exactly one")
    if waiting.instruction is not given:
        wrong(f"`prepare_instr` is the handle of another instruction than {waiting.shown}, which waits for its trigger")
    if waiting.trigger_name != call.name:
        wrong(f"{waiting.shown} waits for {waiting.trigger_name}")
    if given.handle is not call.core.device_loop:
        wrong(
            f"{waiting.shown} is not in the same loop on the device, so that prepares and triggers come unequally often"
        )
    return waiting.trigger(call)


def _read_already(*arrays: Any) -> None:
    """Compute nothing: prepare has read the metadata."""
