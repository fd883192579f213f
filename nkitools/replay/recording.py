"""The recording of a run: the steps of its instructions, or the reason why they cannot be executed without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from nkitools.chip.core import Core
from nkitools.chip.device_numbers import DeviceNumber
from nkitools.chip.masked_tensor import MaskedTensor
from nkitools.chip.memory import Storage
from nkitools.chip.memory_region import MemoryRegion
from nkitools.chip.numerics import Array, copy_in_order
from nkitools.chip.runtime_views import VectorTensor
from nkitools.chip.tensor import NkiTensor
from nkitools.issue.careful_call import CarefulCall
from nkitools.issue.plan import WRITTEN, Plan
from nkitools.record.prints.device_print import Print
from nkitools.replay.gathers import Chosen, CopiedRows, Gather
from nkitools.replay.steps import Engines, Root, Step, View, bytes_of

MOST_STEPS = 50_000  # to record more takes seconds, and what a replay saves of each is about a microsecond
TOO_MANY = f"it issues more than {MOST_STEPS:,} instructions"
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
        self.is_out_of_bounds = False  # an index was, so that later instructions may see unwritten elements
        self.is_computing = False
        self.steps: list[Step] = []
        self.roots: dict[int, Root] = {}
        self.engines: dict[tuple[Any, ...], Engines] = {}  # by rank and program
        self.before: list[Array] = []  # the arguments' bytes, copied where the kernel writes to them
        self._kinds: dict[tuple[Any, ...], str] = {}
        self._steady: list[
            Root
        ] = []  # no program may write to these, as the rows that are read are looked at for races
        self._views: dict[tuple[int, int, int], View] = {}  # by storage, layout and byte offset
        self._performed = False

    def refuse(self, reason: str) -> None:
        """Keep the first reason why no replay can follow."""
        self.reason = self.reason or reason

    def fill_unwritten(self, call: CarefulCall) -> None:
        """Put ones into the elements that a call reads and no instruction has written; a step of the list does so, too.

        What such memory holds is another thing in each run. Numbers whose sum overflows would be evidence. The sentinel
        of a storage that has it stays.
        """
        if self.reason or self.is_out_of_bounds:
            return
        for tensor, role in call.tensors:
            missing = None if role in WRITTEN else _unwritten_numbers(tensor)
            if missing is not None and self._has_step(tensor):
                window = tensor.storage.window(tensor.shape, tensor.dtype, tensor.byte_offset, tensor.array.strides)
                values = np.array(window) if tensor.storage.poisoned else np.ones((), window.dtype)
                fill = partial(_put, missing, values)
                fill(window)
                engines = self._engines_of(call.core)
                self.steps.append(Step("unwritten", fill, [self.view(tensor, call.core)], (0,), engines))

    def _has_step(self, tensor: NkiTensor) -> bool:
        """Return whether an instruction has written to the memory of a tensor; no list is made where none has."""
        root = self.roots.get(tensor.storage.id)
        return root is not None and root.is_written

    def performing(self, call: CarefulCall, keywords: dict[str, Any]) -> None:
        """Keep the step of a call that is about to be computed on its careful way."""
        if not self.reason and not self.is_out_of_bounds:
            self._check(call)
        values = [value for value, _, _ in call.data]
        self._keep(call.core, call.plan, call.meaning.compute, values, keywords)

    def computing(self, core: Core, plan: Plan, values: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        """Keep the step of a call that is about to be computed: its operands are plain, and written as far as read."""
        if plan.chooses is not None and plan.touches and not self.reason:
            self._check_chosen(core, plan, values)
        self._keep(core, plan, plan.compute, values, keywords)

    def _keep(
        self, core: Core, plan: Plan, compute: Callable[..., Any], values: Sequence[Any], keywords: dict[str, Any]
    ) -> None:
        self.is_computing = self._performed = True
        if self.reason or self.is_out_of_bounds:  # whose list is not used
            return
        step = self._step(core, plan, compute, values, keywords)
        self._check_given(step)
        self.steps.append(step)
        if len(self.steps) > MOST_STEPS:
            self.refuse(TOO_MANY)

    def computed(self, core: Core) -> None:
        """End the computation of a call with plain operands; note whether its values have called for a look at them."""
        self.is_computing = self._performed = False
        self.has_evidence = self.has_evidence or bool(core.evidence)

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
        """Return the part of a root that a tensor is; the same object for tensors at the same place."""
        key = tensor.storage.id, tensor.layout.id, tensor.byte_offset
        found = self._views.get(key)
        if found is None:
            found = self._views[key] = self._new_view(tensor, core)
        return found

    def _new_view(self, tensor: NkiTensor, core: Core) -> View:
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

    def end(self) -> None:
        """Refuse what only the whole run shows."""
        if any(root.argument < 0 or root.is_written for root in self._steady):
            self.refuse("programs gather rows of a tensor that one of them writes")

    def enter(self, storages: list[Storage]) -> None:
        """Take the storages of the arguments, in their order."""
        for storage in storages:
            self.roots[storage.id] = Root(storage.nbytes, argument=len(self.before))
            self.before.append(bytes_of(storage.array))

    def _check(self, call: CarefulCall) -> None:
        """Refuse a call whose data decide where it reads and writes."""
        plan = call.plan
        if plan.lanes == "exchange":
            self.refuse(f"{plan.name} waits for another program")
        kinds = {type(tensor) for tensor, _ in call.tensors}
        if VectorTensor in kinds:
            self._check_rows(call, has_masks=MaskedTensor in kinds)
        if kinds - {NkiTensor, MaskedTensor, VectorTensor} or call.full is not None:
            self.refuse(f"{plan.name} works on elements that data choose")
        self._check_chosen(call.core, plan, [value for value, _, _ in call.data])
        for tensor, role in call.tensors:
            partly = role not in WRITTEN and tensor.storage.lacks(tensor.layout, tensor.byte_offset)
            if partly and (plan.lanes == "leave" or plan.chooses is not None or plan.addresses):
                self.refuse(f"{plan.name} reads elements that were never written")

    def _check_rows(self, call: CarefulCall, *, has_masks: bool) -> None:
        """Refuse a gather whose record or results depend on more than the numbers of the rows; note one out of bounds.

        Programs that are looked at for races may choose among the rows of arguments that none of them writes.
        """
        record, plan = call.core.record, call.plan
        for tensor, role in call.tensors:
            if not isinstance(tensor, VectorTensor):
                continue
            if role in WRITTEN or has_masks or plan.chooses is not None or not tensor.storage.full:
                self.refuse(f"{plan.name} works on elements that data choose")
            elif record.keeps_parts or record.keeps_all_parts:
                self._steady.append(self._root(tensor.storage, call.core))
        self.is_out_of_bounds = self.is_out_of_bounds or call.lanes is not None or call.beyond is not None
        self.has_evidence = self.has_evidence or self.is_out_of_bounds

    def _check_chosen(self, core: Core, plan: Plan, values: Sequence[Any]) -> None:
        """Refuse outputs whose written elements data choose, where the record or a later step depends on them."""
        if plan.chooses is None or not plan.touches:
            return
        record, tensors = core.record, [value for value in values if isinstance(value, NkiTensor)]
        for tensor, is_written in zip(tensors, plan.written, strict=True):
            is_kept = record.keeps_all_parts or (record.keeps_parts and tensor.buffer is MemoryRegion.shared_hbm)
            if is_written and (is_kept or tensor.storage.lacks(tensor.layout, tensor.byte_offset)):
                self.refuse(f"{plan.name} writes elements that data choose")

    def _step(
        self, core: Core, plan: Plan, compute: Callable[..., Any], values: Sequence[Any], keywords: dict[str, Any]
    ) -> Step:
        arguments: list[Any] = []
        masked: dict[int, View] = {}  # of masked tensors, which are computed into copies: one for each object
        masks: dict[int, Array] = {}
        outputs, layouts, indices = [], [], []
        written = iter(plan.written)
        for number, value in enumerate(values):
            if not isinstance(value, NkiTensor):
                if isinstance(value, DeviceNumber):
                    self.refuse(f"{plan.name} works on a register or scalar")
                arguments.append(value)
                continue
            if value.__class__ is VectorTensor:
                view = self.view(value.rows, core)
                indices.append((number, value))
            elif value.__class__ is MaskedTensor:
                view = masked.get(id(value)) or masked.setdefault(id(value), self._new_view(value, core))
            else:
                view = self.view(value, core)
            arguments.append(view)
            layouts.append(value.layout.id)
            if next(written):
                outputs.append(number)
                self._begin_writing(view.root, value)
                if value.__class__ is MaskedTensor:
                    masks[number] = value.where
        if compute is copy_in_order and not masks and _is_column_of(*arguments):
            target, source = arguments
            strides = (*source.strides, source.dtype.itemsize)
            compute, arguments[1] = np.copyto, View(source.root, source.offset, target.shape, strides, source.dtype)
        step = Step(plan.name, compute, arguments, tuple(outputs), self._engines_of(core), keywords, masks)
        if indices:
            self._let_gather(step, indices, core)
        elif not masks:
            step.kind = self._kind(plan, step, layouts)
        step.overwrites = keywords.get("fresh") is True or plan.overwrites
        return step

    def _let_gather(self, step: Step, indices: list[tuple[int, VectorTensor]], core: Core) -> None:
        """Let a step look up the rows of some of its arguments."""
        chosen = []
        for number, tensor in indices:
            chosen.append(Chosen(number, len(step.arguments), tensor.shape[0]))
            step.arguments.append(self.view(tensor.index, core))
        if step.compute is np.copyto and not step.keywords and _copies_rows(step, indices[0][1]):
            step.compute, step.kind = CopiedRows((chosen[0].rows,)), "gather"
        else:
            step.compute, step.kind = Gather(step.compute, tuple(chosen), step.keywords), "chosen"
            step.keywords = {}

    def _engines_of(self, core: Core) -> Engines:
        """Return the engines of the program that runs on a core."""
        engines = self.engines.get((core.rank, core.program))
        if engines is None:
            engines = self.engines[core.rank, core.program] = Engines.of(core)
        return engines

    def _begin_writing(self, root: Root, tensor: NkiTensor) -> None:
        """Note that a root is written, and keep the bytes that an argument has had until then."""
        if not root.is_written:
            root.is_written = True
            if root.argument >= 0:
                self.before[root.argument] = bytes_of(tensor.storage.array).copy()

    def _kind(self, plan: Plan, step: Step, layouts: Sequence[int]) -> str:
        """Return what passes may know of a step, found once for each plan and the layouts of its operands."""
        key = plan.id, step.keywords.get("fresh").__class__ is bool, *layouts
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = _kind_of(plan, step)
        return kind

    def _check_given(self, step: Step) -> None:
        """Refuse what reads memory that no step has written, and what writes to a constant."""
        for number, view in step.views():
            root = view.root
            if number in step.outputs:
                if root.constant is not None:
                    self.refuse(f"{step.name} writes to a constant")
            elif root.constant is None and root.argument < 0 and not root.is_written:
                self.refuse(f"{step.name} reads memory that no instruction has written")


def _kind_of(plan: Plan, step: Step) -> str:
    """Return what passes may know of a step: that it copies, transposes or multiplies, all of it without a mask."""
    views = [view for _, view in step.views()]
    if plan.name == "memset" and len(views) == 1 and len(views[0].shape) == 2:
        return "fill"
    if len(views) != len(step.arguments) or any(len(view.shape) != 2 for view in views):
        return ""
    same = len({view.dtype for view in views}) == 1
    if step.compute is np.copyto and same and views[0].shape == views[1].shape:
        return "copy"
    words = {getattr(rule, "word", "") for name in plan.elements.results for _, rule in plan.elements.of(name)}
    if plan.name == "nc_transpose" and same and words == {"transpose"}:
        return "transpose"
    fresh = step.keywords.get("fresh")
    is_product = plan.name == "nc_matmul" and words <= {"row x column", "same"} and not plan.touches
    if is_product and views[0].dtype == np.float32 and isinstance(fresh, bool):
        return "matmul" if same else "narrow matmul" if all(_is_narrow(view.dtype) for view in views[1:]) else ""
    return ""


def _is_column_of(target: View, source: View) -> bool:
    """Return whether one view is a column that another one is a row of."""
    return len(source.shape) == 1 and target.shape == (*source.shape, 1)


def _copies_rows(step: Step, tensor: VectorTensor) -> bool:
    """Return whether a copy is one of whole rows, each named by one number of an index."""
    views = [view for _, view in step.views()]
    if len(views) != 3 or len(step.arguments) != 3 or views[0].dtype != views[1].dtype:
        return False
    shapes = [view.shape for view in views]
    return all(len(shape) == 2 for shape in shapes) and shapes[0] == tensor.shape and shapes[2][0] >= tensor.shape[0]


def _is_narrow(dtype: np.dtype[Any]) -> bool:
    """Return whether elements are floats of less than 32 bits; in NumPy's eyes most of them are of no kind."""
    return dtype.itemsize < 4 and dtype.names is None and dtype.kind not in "iub"


def _unwritten_numbers(tensor: NkiTensor) -> Array | None:
    """Return the elements of a tensor that no instruction has written, where they are numbers in memory of its own."""
    storage = tensor.storage
    is_own = type(tensor) in (NkiTensor, MaskedTensor) and storage.physical is None
    return storage.unwritten(tensor.layout, tensor.byte_offset) if is_own and tensor.dtype.kind != "packed" else None


def _put(missing: Array, values: Array, array: Array) -> None:
    """Put values into the elements of an array that no instruction has written."""
    np.copyto(array, values, where=missing)


def _place(array: Array) -> tuple[Any, ...]:
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype
