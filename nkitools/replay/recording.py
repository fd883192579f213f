"""The recording of a run: the steps of its instructions, or the reason why they cannot be executed without it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nkitools.chip.core import Core
from nkitools.chip.device_numbers import DeviceNumber
from nkitools.chip.masked_tensor import MaskedTensor
from nkitools.chip.memory import Storage
from nkitools.chip.memory_region import MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.issue.careful_call import CarefulCall
from nkitools.issue.plan import WRITTEN, Plan
from nkitools.record.prints.device_print import Print
from nkitools.replay.steps import Engines, Root, Step, View

MOST_STEPS = 200_000
_MOST_BYTES = 1 << 28  # of one tensor of the kernel's own, or of a memory in which tensors have addresses


class UncachedPlans:
    """The kept plans as `resolve` finds them, and none for what looks there for a shorter way."""

    def __init__(self, plans: dict[tuple[Any, ...], Any]) -> None:
        self.plans = plans

    def get(self, key: tuple[Any, ...]) -> Any:
        """Return None: every instruction is resolved and performed."""
        return None

    def __contains__(self, key: tuple[Any, ...]) -> bool:
        return key in self.plans

    def __getitem__(self, key: tuple[Any, ...]) -> Any:
        return self.plans[key]

    def __setitem__(self, key: tuple[Any, ...], plan: Any) -> None:
        self.plans[key] = plan


class Recording:
    """The computations of a run's instructions.

    ``reason``: why no replay can follow, '' for none. ``has_evidence``: the values called for a look at them, so that
    findings of this run may be those of its values.
    """

    def __init__(self) -> None:
        self.reason = ""
        self.has_evidence = False
        self.is_computing = False
        self.steps: list[Step] = []
        self.roots: dict[int, Root] = {}
        self.engines: dict[tuple[Any, ...], Engines] = {}  # by rank and program
        self.before: list[Array] = []  # the arguments' bytes
        self._performed = False

    def refuse(self, reason: str) -> None:
        """Keep the first reason why no replay can follow."""
        self.reason = self.reason or reason

    def performing(self, call: CarefulCall, keywords: dict[str, Any]) -> None:
        """Keep the step of a call that is about to be computed."""
        self.is_computing = self._performed = True
        if self.reason:
            return
        self._check(call)
        if not self.reason:
            step = self._step(call, keywords)
            self._check_given(step, call.core)
            self.steps.append(step)
        if len(self.steps) > MOST_STEPS:
            self.refuse(f"it issues more than {MOST_STEPS:,} instructions")

    def performed(self) -> None:
        """End the computation of a call."""
        self.is_computing = False

    def reported(self) -> None:
        """Note a finding: what is found while an instruction computes is found in its values."""
        self.has_evidence = self.has_evidence or self.is_computing

    def committed(self, plan: Plan) -> None:
        """Refuse an instruction that was not performed as others are: one that waits for other programs."""
        if not self._performed:
            self.refuse(f"{plan.name} is more than a computation on tensors")
        self._performed = False

    def printed(self, core: Core, tensor: NkiTensor, one: Print) -> None:
        """Keep a device print, whose value is the tensor's own memory."""
        plain = type(tensor) is NkiTensor and one.unwritten is None and one.mask is None
        if not plain or _place(one.value) != _place(tensor.array):
            self.refuse("it prints a tensor with elements that are masked, gathered or never written")
        elif not self.reason:
            template = replace(one, value=np.empty(0, one.value.dtype))
            self.steps.append(Step("device_print", print, [self.view(tensor, core)], (), printed=template))

    def view(self, tensor: NkiTensor, core: Core) -> View:
        """Return the part of a root that a tensor is."""
        storage = tensor.storage
        start = 0
        if storage.physical is not None:
            start = storage.start_partition * storage.partition_bytes + storage.start_byte
        array = tensor.array
        return View(self._root(storage, core), start + tensor.byte_offset, array.shape, array.strides, array.dtype)

    def _root(self, storage: Storage, core: Core) -> Root:
        """Return the memory of a storage: its own, or that in which its address lies."""
        owner = storage if storage.physical is None else storage.physical
        root = self.roots.get(owner.id)
        if root is None:
            nbytes = storage.nbytes if storage.physical is None else storage.physical.bytes.nbytes
            root = self.roots[owner.id] = Root(nbytes)
            if storage.full and any(storage is each for each in core.shared.constants.values()):
                root.constant = bytes_of(storage.array)
            if nbytes > _MOST_BYTES and storage.physical is not None:
                self.refuse("its tensors have addresses in a memory that is too large to keep")
        return root

    def enter(self, storages: list[Storage]) -> None:
        """Take the storages of the arguments, in their order."""
        for storage in storages:
            self.roots[storage.id] = Root(storage.nbytes, argument=len(self.before))
            self.before.append(bytes_of(storage.array).copy())

    def _check(self, call: CarefulCall) -> None:
        """Refuse a call whose data decide where it reads and writes."""
        plan, record = call.plan, call.core.record
        if plan.lanes == "exchange":
            self.refuse(f"{plan.name} waits for another program")
        for value, _, role in call.data:
            if isinstance(value, DeviceNumber):
                self.refuse(f"{plan.name} works on a register or scalar")
            elif isinstance(value, NkiTensor) and type(value) not in (NkiTensor, MaskedTensor):
                self.refuse(f"{plan.name} works on elements that data choose")
            elif role in WRITTEN and isinstance(value, NkiTensor) and plan.chooses is not None and plan.touches:
                is_kept = record.keeps_all_parts or (record.keeps_parts and value.buffer is MemoryRegion.shared_hbm)
                if is_kept or value.storage.lacks(value.layout, value.byte_offset):
                    self.refuse(f"{plan.name} writes elements that data choose")
        if call.lanes is not None or call.beyond is not None or call.full is not None:
            self.refuse(f"{plan.name} works on elements that data choose")
        for tensor, role in call.tensors:
            partly = role not in WRITTEN and tensor.storage.lacks(tensor.layout, tensor.byte_offset)
            if partly and (plan.lanes == "leave" or plan.chooses is not None or plan.addresses):
                self.refuse(f"{plan.name} reads elements that were never written")

    def _step(self, call: CarefulCall, keywords: dict[str, Any]) -> Step:
        arguments: list[Any] = []
        views: dict[int, View] = {}  # one for a tensor that is two operands
        masks: dict[int, Array] = {}
        outputs = []
        for number, (value, _, role) in enumerate(call.data):
            if not isinstance(value, NkiTensor):
                arguments.append(value)
                continue
            arguments.append(views.setdefault(id(value), self.view(value, call.core)))
            if role in WRITTEN:
                outputs.append(number)
                arguments[-1].root.is_written = True
                if isinstance(value, MaskedTensor):
                    masks[number] = value.where
        core = call.core
        engines = self.engines.setdefault((core.rank, core.program), Engines.of(core))
        step = Step(call.plan.name, call.meaning.compute, arguments, tuple(outputs), engines, keywords, masks)
        step.kind = _kind_of(call.plan, step)
        step.overwrites = keywords.get("fresh") is True or call.plan.overwrites
        return step

    def _check_given(self, step: Step, core: Core) -> None:
        """Refuse what reads memory that no step has written, and what writes to a constant."""
        for view in step.writes():
            if view.root.constant is not None:
                self.refuse(f"{step.name} writes to a constant")
        for view in step.sources():
            root = view.root
            if root.constant is None and root.argument < 0 and not root.is_written:
                self.refuse(f"{step.name} reads memory that no instruction has written")


def _kind_of(plan: Plan, step: Step) -> str:
    """Return what passes may know of a step: that it copies, transposes or multiplies, all of it without a mask."""
    views = [view for _, view in step.views()]
    if step.masks or len(views) != len(step.arguments) or any(len(view.shape) != 2 for view in views):
        return ""
    same = len({view.dtype for view in views}) == 1
    if step.compute is np.copyto and same and views[0].shape == views[1].shape:
        return "copy"
    words = {getattr(rule, "word", "") for name in plan.elements.results for _, rule in plan.elements.of(name)}
    if plan.name == "nc_transpose" and same and words == {"transpose"}:
        return "transpose"
    fresh = step.keywords.get("fresh")
    is_product = plan.name == "nc_matmul" and words <= {"row x column", "same"} and not plan.touches
    if is_product and same and views[0].dtype == np.float32 and isinstance(fresh, bool):
        return "matmul"
    return ""


def bytes_of(array: Array) -> Array:
    """Return the bytes of a contiguous array, as a view."""
    return array.reshape(-1).view(np.uint8)


def _place(array: Array) -> tuple[Any, ...]:
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype
