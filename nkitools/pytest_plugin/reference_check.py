"""The comparison of a kernel's outputs with its reference, as ``run_kernel(..., reference=)`` makes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nkitools.comparison.compared_arrays import compared
from nkitools.record.saved.encoding import leaves

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Argument
    from nkitools.record.expected_outputs import Reference


def assert_as_expected(outputs: Argument, reference: Reference) -> None:
    """Compare the outputs of a kernel with its reference, by the rule of the reference. AssertionError."""
    __tracebackhide__ = True
    found, wanted = dict(leaves(outputs)), dict(leaves(reference.values))
    if found.keys() != wanted.keys():
        raise AssertionError(f"the kernel returns {', '.join(found)}; the reference has {', '.join(wanted)}")
    rule = reference.rule
    for place, actual in found.items():
        expected = wanted[place]
        elements = compared(actual, expected, rule)
        if not elements.agree:
            raise AssertionError(elements.text(place))
