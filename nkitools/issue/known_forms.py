"""Forms of code that a chip is reported to compute otherwise (NK623): rows of the table of known faults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nkitools.chip.core import current_core
from nkitools.chip.tensor import NkiTensor
from nkitools.issue.plan import Check
from nkitools.rules.finding import report

if TYPE_CHECKING:
    from nkitools.facts.known_faults import Fault


def known_fault(check: Check, name: str, form: str, *about: NkiTensor) -> None:
    """Report that an instruction has the form of the row ``name``, where chip and version are concerned."""
    fault = _fault(name)
    if fault.concerns(check.chip.chips, check.language.name):
        check.goes_beyond(f"{form}: {_said(fault)}", *about, remedy=fault.write, rule="NK623")


def report_known(what: str, name: str, form: str) -> None:
    """Report the same of a function ``what``, at each call."""
    core, fault = current_core(what), _fault(name)
    if fault.concerns(core.generation.chips, core.language.name):
        report("NK623", f"{what}: {form}: {_said(fault)}", remedy=fault.write)


def _fault(name: str) -> Fault:
    from nkitools.facts.known_faults import fault_of_form  # few kernels have such a form

    return fault_of_form(name)


def _said(fault: Fault) -> str:
    of = ", ".join(filter(None, (fault.address, " ".join(fault.chips), fault.versions)))
    who = "AWS's notes say" if fault.address.endswith(".html") else "a public report says"
    return f"{who} that {fault.meaning} ({of})"
