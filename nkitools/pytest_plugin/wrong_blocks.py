"""PL211 of a test's own comparison: the blocks of a Pallas kernel's output that differ, and the index map to mend."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from nkitools.facts import options
from nkitools.pytest_plugin.compared_arguments import compared_outputs
from nkitools.pytest_plugin.mended import mended_pallas
from nkitools.record.saved.encoding import leaves

if TYPE_CHECKING:
    import pytest

    from nkitools.comparison.rule import Rule
    from nkitools.record.run import Run


def add_wrong_blocks(run: Run, expected: Any, rule: Rule) -> None:
    """Add to the findings of a checked JAX function the blocks that differ, and the index map that mends them."""
    unlike = getattr(run, "unlike", None)
    if unlike is None or run.outputs is None:
        return
    with suppress(ValueError):  # of other shapes, which the test's own error is about
        run.findings += [each for each in unlike(expected, rule) if each not in run.findings]


def follow_assertion(config: pytest.Config, failure: BaseException, runs: Sequence[Run]) -> None:
    """Do so for the run whose output a failed assertion has compared, unless a finding says already what is wrong.

    An edit that mends the kernel is looked for then, before the findings are shown.
    """
    checked = [run for run in runs if getattr(run, "unlike", None) is not None]
    if not checked or options.value("why") == "off" or not isinstance(failure, AssertionError):
        return
    for each in compared_outputs(failure, checked):
        if each.elements.count:
            # Outputs that the comparison is not about are as they should be.
            expected = [output for _, output in leaves(each.run.outputs)]
            expected[each.place] = each.expected
            if not any(finding.severity == "error" for finding in each.run.findings):
                add_wrong_blocks(each.run, expected, each.rule)
            mended_pallas(config, failure, runs)
            return
