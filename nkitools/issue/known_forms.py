"""Forms of code that a chip is reported to compute otherwise (NK623): rows of the table of known faults."""

from __future__ import annotations

from nkitools.chip.core import current_core
from nkitools.chip.tensor import NkiTensor
from nkitools.engines.operators import Operator
from nkitools.facts.known_faults import fault_of_form
from nkitools.issue.plan import Check


def known_fault(check: Check, name: str, form: str, *about: NkiTensor) -> None:
    """Report (NK623) that a call has the form that the row ``name`` is about, where it concerns chip and version."""
    fault = fault_of_form(name)
    if fault.concerns(check.chip.chips, check.language.name):
        of = ", ".join(filter(None, (*fault.chips, fault.versions)))
        where = f"{fault.address}; {of}" if of else fault.address
        message = f"{form}: a public report says that {fault.meaning} ({where})"
        check.goes_beyond(message, *about, remedy=fault.write, rule="NK623")


def legacy_product(check: Check, operator: Operator, *factors: NkiTensor) -> None:
    """NK623: a factor of a product of the legacy dialect is broadcast beside one of three dimensions or more."""
    if operator.name == "multiply" and not current_core(check.instruction).dialect.has_known_issues:
        for factor in filter(_is_broadcast, factors):
            known_fault(check, "legacy-broadcast-product", "one factor is broadcast along a free dimension", factor)


def _is_broadcast(tile: NkiTensor) -> bool:
    pairs = list(zip(tile.layout.shape, tile.layout.strides, strict=True))[1:]
    return len(pairs) > 1 and any(size > 1 and stride == 0 for size, stride in pairs)
