"""The common part of all collectives: their lists of tensors, the guards of these, and how a call becomes an
instruction.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np

from nkitools.chip.core import Core, current_core
from nkitools.chip.dtypes import float32
from nkitools.chip.full_precision_shadow import wide_of
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.numerics import Array, to_float32, working
from nkitools.chip.runtime_views import COMPUTED, DynamicTensor, OutOfBounds
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.twin_storage import is_widened
from nkitools.chip.view_checks import describe
from nkitools.engines.cast_on_write import put
from nkitools.engines.costs import DMA_COMPLETION_NS
from nkitools.engines.operators import Operator, OperatorToken
from nkitools.issue import guards, instruction_guards
from nkitools.issue.careful_call import CarefulCall
from nkitools.issue.carry_out import carry_out
from nkitools.issue.collective_meeting import Met, both_cores, meet, shared_words
from nkitools.issue.dma_descriptors import check_priority
from nkitools.issue.element_maps import Elements, made
from nkitools.issue.full_precision import FullPrecision
from nkitools.issue.instruction import NkiInstruction
from nkitools.issue.plan import DST, SRC, Check, Plan
from nkitools.issue.resolve import plan_of

SBUF = MemoryRegion.sbuf
REDUCING = ("add", "minimum", "maximum")
WIDE_INTEGERS = (
    "int32",
    "uint32",
    "int64",
    "uint64",
)  # "does not support 32-bit or 64-bit integer operands" (NCC_EVRF061, EVRF063)

Moves = Callable[[Met, list[Array]], None]  # writes what the ranks have brought to the destinations
Mask = Array | None


class Collective:
    """One call of a collective on the core that runs: guards first, then `exchange` or `issue`."""

    def __init__(self, function: Callable[..., object], priority: int | None = None, name: str | None = None) -> None:
        self.name = function.__name__
        self.core: Core = current_core(f"nki.collectives.{self.name}")
        self.check = Check(self.name, self.core.generation, self.core.language, partial(call_form, function))
        self.label = name
        if name is not None and not isinstance(name, str):
            self.check.refuse("NK609", f"`name` must be a string, it is of class {type(name).__name__}")
        check_priority(self.check, priority)

    def tensors(self, role: str, given: Sequence[NkiTensor], *, one: bool = False) -> list[NkiTensor]:
        """NK609: a list of tensors, not empty, at addresses of one run-time offset at most; ``one``: of one tensor."""
        if isinstance(given, NkiTensor) or not isinstance(given, (list, tuple)):
            self.check.refuse("NK609", f"`{role}` must be a list of tensors, it is {_told(given)}")
        for each in given:
            if not isinstance(each, NkiTensor):
                self.check.refuse("NK609", f"`{role}` must hold tensors, it has {_told(each)}")
            if each.is_indirect() and not isinstance(each, DynamicTensor):
                self.check.refuse(
                    "NK609", f"`{role}` cannot be gathered or scattered by an index, it has {describe(each)}", each
                )
        if not given or (one and len(given) != 1):
            wanted = "exactly one tensor" if one else "at least one tensor"
            self.check.refuse("NK609", f"`{role}` must hold {wanted}, it holds {len(given)}")
        for each in given:
            self._settle(each)
        return list(given)

    def pairs(
        self, srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], *, one: bool = False, only_hbm: bool = False
    ) -> tuple[list[NkiTensor], list[NkiTensor], bool]:
        """Return the sources and the destinations, in pairs of one dtype, and whether they are in SBUF."""
        sent, received = self.tensors("srcs", srcs, one=one), self.tensors("dsts", dsts, one=one)
        self.alike(srcs=sent, dsts=received)
        return sent, received, self.memory({"srcs": sent, "dsts": received}, only_hbm=only_hbm)

    def by_channel(self, role: str, given: Sequence[Sequence[NkiTensor]], channels: int) -> list[NkiTensor]:
        """NK609: a list of lists of one tensor, one list a channel."""
        if not isinstance(given, (list, tuple)) or len(given) != channels:
            count = f"{len(given)} lists" if isinstance(given, (list, tuple)) else _told(given)
            self.check.refuse(
                "NK609", f"`{role}` must have one list of tensors for each of {channels} channel_ids, it is {count}"
            )
        return [self.tensors(f"{role}[{channel}]", each, one=True)[0] for channel, each in enumerate(given)]

    def _settle(self, tensor: NkiTensor) -> None:
        if isinstance(tensor, DynamicTensor):
            try:
                tensor.settle(f"nki.collectives.{self.name}")
            except OutOfBounds as error:
                self.check.refuse("NK402", str(error), tensor, remedy=COMPUTED)

    def alike(self, **lists: list[NkiTensor]) -> None:
        """NK609, NK301: equally many tensors in each list, and those at one place of one dtype; nothing is cast."""
        (first, tensors), *others = lists.items()
        for role, each in others:
            if len(each) != len(tensors):
                self.check.refuse(
                    "NK609", f"`{first}` holds {len(tensors)} tensors and `{role}` {len(each)}; they go in pairs"
                )
            for number, (tensor, other) in enumerate(zip(tensors, each, strict=True)):
                instruction_guards.same_dtype(self.check, (f"{role}[{number}]", other), (f"{first}[{number}]", tensor))

    def memory(self, lists: dict[str, list[NkiTensor]], *, only_hbm: bool = False, coalesced: bool = True) -> bool:
        """NK201, NK110, NK609: all in HBM, or all in SBUF with two dimensions; whether it is SBUF.

        Several tensors of a list (``coalesced``) are possible in HBM only.
        """
        allowed = guards.HBM if only_hbm else (*guards.HBM, SBUF)
        operands = [(f"{role}[{number}]", each) for role, every in lists.items() for number, each in enumerate(every)]
        for role, tensor in operands:
            guards.memory(self.check, tensor, role, allowed)
        on_chip = [tensor for _, tensor in operands if tensor.buffer is SBUF]
        if not on_chip:
            return False
        if len(on_chip) < len(operands):
            other = next(tensor for _, tensor in operands if tensor.buffer is not SBUF)
            message = (
                f"all tensors must be in HBM, or all in SBUF; there are {describe(on_chip[0])} and {describe(other)}"
            )
            self.check.refuse("NK201", message, on_chip[0], other, remedy="Copy one of them with nisa.dma_copy first.")
        guards.sizes(self.check, *operands)
        for role, tensor in operands:
            instruction_guards.dimensions(self.check, role, tensor, 2)
        if coalesced and any(len(every) > 1 for every in lists.values()):
            message = f"several tensors in one call are possible in HBM only; here {len(on_chip)} lie in SBUF"
            self.check.refuse("NK609", message, remedy="Call the collective once for each tensor.")
        return True

    def shaped(self, dst: tuple[str, NkiTensor], src: tuple[str, NkiTensor], wanted: Sequence[int], why: str) -> None:
        """NK109: a destination has this shape."""
        (role, tensor), (src_role, source) = dst, src
        if tensor.shape != tuple(wanted):
            message = (
                f"`{role}`, {describe(tensor)}, must have shape {list(wanted)}, {why} `{src_role}`, {describe(source)}"
            )
            self.check.refuse("NK109", message, tensor, source, remedy=f"Allocate `{role}` with shape {list(wanted)}.")

    def operator(self, op: OperatorToken, *tensors: NkiTensor) -> Operator:
        """Return the operator: NK306 unless it is nl.add, nl.minimum or nl.maximum, NK301 for dtypes that cannot be
        reduced.

        It has no datapath for integers: it computes in float32, and AWS's compiler refuses those of 32 bits.
        """
        found = guards.operator(self.check, "op", op)
        if found.name not in REDUCING:
            message = f"`op`={found} is not supported; nl.add, nl.minimum and nl.maximum are"
            remedy = "Use one of these, or gather the tensors and reduce them on the core."
            self.check.refuse("NK306", message, remedy=remedy)
        for tensor in tensors:
            guards.not_packed(self.check, srcs=tensor)
            if tensor.dtype.name in WIDE_INTEGERS:
                message = (
                    f"{describe(tensor)} has {8 * tensor.dtype.itemsize}-bit integers; a reduction is computed in "
                    "float32, which cannot hold all of them (NCC_EVRF061)"
                )
                self.check.fail("NK301", message, tensor, remedy="Cast to float32 first, where the values allow it.")
        return found

    def put(self, destination: Array, total: Array, dst: NkiTensor) -> None:
        """Write a reduction's result, cast once into its destination (which full precision has in float32)."""
        wide = self.core.full_plans is not None and destination.dtype in (np.float32, np.float64)
        put(destination, total, float32 if wide else dst.dtype)

    def exchange(
        self,
        ranks: Sequence[int],
        dsts: list[NkiTensor],
        srcs: list[NkiTensor],
        moves: Moves,
        elements: Elements,
        *,
        touches: tuple[Mask, ...] = (),
        alike: bool = True,
        **agreed: str | int | Sequence[int | tuple[int, int]],
    ) -> NkiInstruction:
        """Wait for the other ranks, move their data, and record it; ``agreed`` must be equal on all ranks.

        ``touches``: the elements of each destination, then of each source, None for all. ``alike``: the operands' forms
        must be equal on all ranks too.
        """
        core, operands, agreed = self.core, [*dsts, *srcs], {**agreed, **(_forms(dsts, srcs) if alike else {})}
        words = shared_words(operands)
        follows = both_cores(core, self.name, words)

        def compute(*arrays: Array) -> None:
            sources = [np.array(each) for each in arrays[len(dsts) :]]
            met = meet(self.check, core, ranks, agreed, sources)
            moves(met, list(arrays[: len(dsts)]))
            if not follows:
                core.record.beside.transfers.append(met.transfer(core.record.next_position))

        plan = self.plan(dsts, srcs, made() if follows else elements, names_only=follows)
        handle = self.carry_out(plan, dsts, srcs, compute, touches)
        both_cores(core, self.name, words)
        return handle

    def carry_out(
        self,
        plan: Plan,
        dsts: list[NkiTensor],
        srcs: list[NkiTensor],
        compute: Callable[..., None],
        touches: tuple[Mask, ...],
    ) -> NkiInstruction:
        """Check, compute and record one instruction; ``position`` is then its place in the record."""
        operands = [*dsts, *srcs]
        running = replace(plan, compute=compute, touches=touches)
        roles = (DST,) * len(dsts) + (SRC,) * len(srcs)
        call = CarefulCall(self.core, plan, roles, tuple(operands), running, full=self._full(running, operands))
        carry_out(call, self, self.label)
        self.position: int = self.core.record.latest
        return self.handle()

    def handle(self) -> NkiInstruction:
        """Return a handle to the instruction; None before NKI 0.7."""
        if self.core.language.collective_handles:
            return NkiInstruction(self.core.device_loop)
        return cast(NkiInstruction, None)  # public signatures are annotated as in the newest version

    def plan(self, dsts: list[NkiTensor], srcs: list[NkiTensor], elements: Elements, *, names_only: bool) -> Plan:
        """Return the plan for the record: one for all calls that move equally many bytes between the same ranks.

        No cost is published. It is taken as a DMA transfer of the bytes that this rank sends or receives, whichever is
        more, without the wait and the way between devices.
        """
        moved = max(_nbytes(dsts), _nbytes(srcs))
        key = (self.name, moved, len(dsts), len(srcs), elements, names_only)
        cost = moved / self.core.generation.dma_bytes_per_second * 1e9 + DMA_COMPLETION_NS
        outputs = [(f"dsts[{number}]", True) for number in range(len(dsts))]
        inputs = [(f"srcs[{number}]", False) for number in range(len(srcs))]

        def make() -> Plan:
            return Plan("dma", 0.0, _moved_already, elements, nanoseconds=cost, names_only=names_only, name=self.name)

        return plan_of(self.core, key, make, *outputs, *inputs)

    def _full(self, plan: Plan, operands: list[NkiTensor]) -> FullPrecision | None:
        """Return the operands in full precision, so that the digits beyond the declared dtype move too; None outside of
        it.
        """
        if self.core.full_plans is None:
            return None
        packed = any(tensor.dtype.kind == "packed" for tensor in operands)
        likes = {} if packed else {id(tensor): wide_of(tensor) for tensor in operands}
        wide = {number: like for number, like in likes.items() if like is not None}
        if any(is_widened(tensor.dtype) and id(tensor) not in wide for tensor in operands):
            self.core.record.rounded[self.name] += 1
        return FullPrecision(plan, tuple(wide.get(id(each), each) for each in operands), wide, operands)

    @property
    def call_form(self) -> str:
        """The signature, as a remedy shows it."""
        return self.check.call_form()


def call_form(function: Callable[..., object]) -> str:
    """Return ``The call form is nki.collectives.all_reduce(srcs, dsts, …).``"""
    signature = inspect.signature(function)
    bare = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
    shown = signature.replace(parameters=bare, return_annotation=signature.empty)
    return f"The call form is nki.collectives.{function.__name__}{shown}."


def reduced(operator: Operator, sources: Sequence[Array]) -> Array:
    """Return the sources reduced in float32, in their order."""
    total = np.array(to_float32(sources[0]), working(*sources))
    for each in sources[1:]:
        operator.compute(total, to_float32(each), out=total)
    return total


def _moved_already(*arrays: Array) -> None:
    """Compute nothing: the call itself has moved the data."""


def _forms(dsts: list[NkiTensor], srcs: list[NkiTensor]) -> dict[str, Any]:
    """Return the properties in which the ranks' operands must agree."""
    operands = [*srcs, *dsts]
    return {
        "the memory": "SBUF" if any(each.buffer is SBUF for each in operands) else "HBM",
        "dtypes": ", ".join(dict.fromkeys(str(each.dtype) for each in operands)),
        "shapes": f"srcs {[list(each.shape) for each in srcs]}, dsts {[list(each.shape) for each in dsts]}",
    }


def _nbytes(tensors: list[NkiTensor]) -> int:
    return sum(tensor.size * tensor.dtype.itemsize for tensor in tensors)


def _told(value: Any) -> str:
    return describe(value) if isinstance(value, NkiTensor) else f"of class {type(value).__name__}"
