"""Plans of calls that break a rule and are computed all the same: the next call like one is reported without guards.

What is reported names tensors, and guards may have looked at numbers: a plan is kept for the same tensors and numbers,
until the run ends.
"""

from __future__ import annotations

from types import FrameType
from typing import Any

import numpy as np

from nkitools.chip.core import Core
from nkitools.chip.tensor import NkiTensor
from nkitools.facts.light_classes import NamedTuple
from nkitools.issue.accumulation import note_accesses
from nkitools.issue.form import InstructionForm
from nkitools.issue.plan import ABOUT_STORAGE, DATA, LABEL, WRITTEN, Check, Plan, Reported
from nkitools.issue.value_rules import judge_call
from nkitools.record.record import Record
from nkitools.record.reporter import Reporter
from nkitools.record.rows import words_of
from nkitools.record.source_sites import author_frame
from nkitools.rules.finding import REPORTER

_MOST = 4096  # of a kernel that makes a tile for each of its calls
_NUMBERS = (int, float, np.generic, type(None))


class BrokenPlan(NamedTuple):
    """A plan, and what was reported when it was made: with the numbers of the arguments that each report is about.

    ``data``: the numbers of the arguments that are data; ``tensors``: of those that are tensors, with whether the role
    and whether the plan says that they are written.
    """

    plan: Plan
    reports: tuple[tuple[Reported, tuple[int, ...]], ...]
    data: tuple[int, ...]
    tensors: tuple[tuple[int, bool, bool], ...]

    def issue(self, form: InstructionForm, core: Core, values: tuple[Any, ...]) -> None:
        """Report the same about the arguments of another call, and carry out the call."""
        plan, record = self.plan, core.record
        frame = author_frame(2) if core.counted is None else core.counted[0]
        for said, numbers in self.reports:
            _report(said, [values[number] for number in numbers], frame)
        data, tensors = [], []
        for number in self.data:
            value = values[number]
            data.append(value.array if value.__class__ is NkiTensor else value)
        plan.compute(*data)
        if core.evidence:
            judge_call(core, plan, form.roles, values)
        for number, _, is_written in self.tensors:
            tensor = values[number]
            if is_written and not tensor.storage.full:
                tensor.storage.mark_written(tensor.layout, tensor.byte_offset)
            tensors.append(tensor)
        if plan.in_psum:
            note_accesses(plan, [values[number] for number in self.data])
        record.commit(plan, _site(record, frame), words_of(tensors))


def _site(record: Record, frame: FrameType | None) -> int:
    """Return the author's current site, whose frame is known."""
    known = None if frame is None else record.sites.known.get((id(frame.f_code), frame.f_lasti))
    return record.site() if known is None else known


def _report(said: Reported, about: list[NkiTensor], frame: FrameType | None) -> None:
    """Report it once more: a message that the place has made about the same tensor is only counted."""
    for tensor in about:
        if said.rule in tensor.storage.excused:
            return
    reporter, only = REPORTER.get(), about[0].storage.id if len(about) == 1 else -1
    if not isinstance(reporter, Reporter) or frame is None or only < 0:
        said.about(*about)
    elif not reporter.counts(frame, only, said.message):
        said.about(*about)
        reporter.note(frame, only, said.message)


def issue_broken(form: InstructionForm, core: Core, values: tuple[Any, ...]) -> bool:
    """Carry out a call like an earlier one that broke a rule; False, with nothing done, if there is none."""
    if core.careful or core.undone or core.full_plans is not None:
        return False
    key = _key(form, values)
    try:
        known: BrokenPlan | None = None if key is None else core.broken_plans.get(key)
    except TypeError:  # an argument that no key has
        return False
    if known is None:
        return False
    for number, is_output, _ in known.tensors:
        value = values[number]
        storage = value.storage
        if storage.guard is not None if is_output else storage.lacks(value._layout or value.layout, value.byte_offset):
            return False
    known.issue(form, core, values)
    return True


def keep(form: InstructionForm, core: Core, values: tuple[Any, ...], plan: Plan, check: Check) -> None:
    """Keep the plan of a call, unless a report was about anything but its arguments, or comes once for a tensor."""
    key, places = _key(form, values), {id(value): number for number, value in enumerate(values)}
    asks = plan.touches or plan.wants_fresh or plan.names_only or plan.chooses is not None or plan.unique_rows
    parts = (value for value in values if isinstance(value, NkiTensor) and value.ndim < len(value.storage.shape))
    if key is None or asks or any(True for _ in parts) or len(core.broken_plans) >= _MOST:
        return
    reports = list[tuple[Reported, tuple[int, ...]]]()
    for said, about in check.reports:
        numbers = tuple(places[id(each)] for each in about if id(each) in places)
        if said.rule in ABOUT_STORAGE or len(numbers) < len(about):
            return
        reports.append((said, numbers))
    data = tuple(number for number, role in enumerate(form.roles) if role in DATA)
    tensors = [number for number, value in enumerate(values) if isinstance(value, NkiTensor)]
    if not set(tensors) <= set(data):
        return
    written = zip(tensors, plan.written, strict=True)
    outputs = tuple((number, form.roles[number] in WRITTEN, is_written) for number, is_written in written)
    core.broken_plans[key] = BrokenPlan(plan, tuple(reports), data, outputs)


def _key(form: InstructionForm, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return all that reports about a call depend on; None where that may be more, as a name or a sequence."""
    key: list[Any] = [form]
    for value, role in zip(values, form.roles, strict=True):
        if value.__class__ is NkiTensor:
            if hasattr(value, "grid"):
                return None
            key += (value._layout or value.layout, value.storage.id)
        elif value is None:
            key.append(None)
        elif isinstance(value, _NUMBERS):
            key += (value.__class__, repr(value))
        elif role == LABEL or role in DATA or isinstance(value, (list, tuple)):
            return None
        else:
            key.append(value)
    return tuple(key)
