"""PL211 of a test's own comparison: the blocks of a Pallas kernel's output that differ, and the index map to mend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from nkitools.comparison.compared_arrays import compared
from nkitools.facts import options
from nkitools.pytest_plugin.compared_arguments import Pair, compared_pairs, is_same
from nkitools.record.saved.encoding import leaves

if TYPE_CHECKING:
    from nkitools.comparison.rule import Rule
    from nkitools.record.run import Run


def add_wrong_blocks(run: Run, expected: Any, rule: Rule) -> None:
    """Add to the findings of a checked JAX function the blocks that differ, and the index map that mends them."""
    unlike = getattr(run, "unlike", None)
    if unlike is None or run.outputs is None:
        return
    with suppress(ValueError):  # of other shapes, which the test's own error is about
        run.findings += [each for each in unlike(expected, rule) if each not in run.findings]


def follow_assertion(failure: BaseException, runs: Sequence[Run]) -> None:
    """Do so for the run whose output a failed assertion has compared, unless a finding says already what is wrong."""
    checked = [run for run in reversed(runs) if getattr(run, "unlike", None) is not None]
    if not checked or options.value("why") == "off" or not isinstance(failure, AssertionError):
        return
    for pair in compared_pairs(failure.__traceback__):
        for run, expected in _expectations(checked, pair):
            if not any(each.severity == "error" for each in run.findings):
                add_wrong_blocks(run, expected, pair.rule)
            return


def _expectations(runs: Sequence[Run], pair: Pair) -> Iterator[tuple[Run, list[Any]]]:
    """Yield the runs that have an output which differs in a comparison, with all of the outputs that they should have.

    Outputs that the comparison is not about are as they should be.
    """
    for run in runs:
        outputs = [output for _, output in leaves(run.outputs)]
        for place, output in enumerate(outputs):
            is_compared = hasattr(output, "dtype") and is_same(output, pair.actual)
            if is_compared and compared(output, pair.expected, pair.rule).count:
                yield run, [*outputs[:place], pair.expected, *outputs[place + 1 :]]
