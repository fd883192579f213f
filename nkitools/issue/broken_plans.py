"""Plans of calls that break a rule and are computed all the same: the next call like one is reported without guards.

What is reported names tensors, and guards may have looked at numbers: a plan is kept for the same tensors and numbers,
until the run ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nkitools.chip.core import Core
from nkitools.chip.tensor import NkiTensor
from nkitools.facts.light_classes import NamedTuple
from nkitools.issue.form import InstructionForm
from nkitools.issue.plan import ABOUT_STORAGE, DATA, LABEL, Check, Plan, Reported

_MOST = 4096  # of a kernel that makes a tile for each of its calls
_NUMBERS = (int, float, np.generic, type(None))


class BrokenPlan(NamedTuple):
    """A plan, and what was reported when it was made: with the numbers of the arguments that each report is about."""

    plan: Plan
    reports: tuple[tuple[Reported, tuple[int, ...]], ...]

    def report(self, values: tuple[Any, ...]) -> None:
        """Report the same about the arguments of another call."""
        for said, numbers in self.reports:
            about = tuple(values[number] for number in numbers)
            if not any(said.rule in tensor.storage.excused for tensor in about):
                said.about(*about)


def known(form: InstructionForm, core: Core, values: tuple[Any, ...], plan: tuple[Any, ...]) -> BrokenPlan | None:
    """Return the plan of an earlier call like this one, whose plan would have the key ``plan``."""
    key = _key(form, values, plan)
    try:
        return None if key is None else core.broken_plans.get(key)
    except TypeError:  # an argument that no key has
        return None


def keep(form: InstructionForm, core: Core, values: tuple[Any, ...], plan: Plan, check: Check) -> None:
    """Keep the plan of a call, unless a report was about anything but its arguments, or comes once for a tensor."""
    key, places = _key(form, values, form.key(values)), {id(value): number for number, value in enumerate(values)}
    asks = plan.wants_fresh or plan.names_only or plan.chooses is not None or plan.unique_rows
    if key is None or asks or len(core.broken_plans) >= _MOST:
        return
    reports = list[tuple[Reported, tuple[int, ...]]]()
    for said, about in check.reports:
        numbers = tuple(places[id(each)] for each in about if id(each) in places)
        if said.rule in ABOUT_STORAGE or len(numbers) < len(about):
            return
        reports.append((said, numbers))
    core.broken_plans[key] = BrokenPlan(plan, tuple(reports))


def _key(form: InstructionForm, values: tuple[Any, ...], plan: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return all that reports about a call depend on; None where that may be more, as the place within a tensor."""
    key: list[Any] = [*plan]
    for value, role in zip(values, form.roles, strict=True):
        if value.__class__ is NkiTensor:
            storage = value.storage
            if len(value.shape) < len(storage.shape) or hasattr(value, "grid"):
                return None
            key.append(storage.id)
        elif role == LABEL:
            if value is not None:
                return None
        elif role in DATA:
            if not isinstance(value, _NUMBERS):
                return None
            key.append(repr(value))
    return tuple(key)
