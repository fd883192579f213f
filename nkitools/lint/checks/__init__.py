"""The checks, one theme a module. A check is a function of the context, the node and the node's abstract values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cache

from nkitools.lint.checks import classes, counters, loop_bodies, state, subset
from nkitools.lint.context import Check, Checks

# Of these a run would show nothing: the simulator runs such Python. `simulate` applies them too.
UNSEEN_BY_RUNS = (subset, classes, state, loop_bodies, counters)

# The rules that source checks can report, those of nkitools.lint.legacy_scopes and of files included.
RULES = frozenset({
    "NK101", "NK103", "NK104", "NK110", "NK112", "NK201", "NK202", "NK203", "NK208", "NK301", "NK306", "NK406",
    "NK408", "NK601", "NK602", "NK603", "NK604", "NK605", "NK607", "NK608", "NK609", "NK615", "NK616", "NK617",
    "NK618", "NK619", "NK620", "NK621", "NK622"
})  # fmt: skip


def gathered(modules: Iterable[object]) -> Checks:
    """Return the checks of some modules, grouped by the event that starts each one."""
    found: dict[str, list[Check]] = defaultdict(list)
    for module in modules:
        listens: dict[str, tuple[Check, ...]] = module.LISTENS  # type: ignore[attr-defined]
        for event, checks in listens.items():
            found[event] += checks
    return {event: tuple(checks) for event, checks in found.items()}


@cache
def all_checks() -> Checks:
    """Return the checks of lint: those that `simulate` applies too, and those that a run makes itself."""
    from nkitools.lint.checks import (
        arithmetic,
        interface,
        masks,
        objects,
        operands,
        registers,
        results,
        scalars,
        shapes,
        truth,
    )

    seen_by_runs = (arithmetic, objects, interface, masks, operands, registers, results, scalars, shapes, truth)
    return gathered((*UNSEEN_BY_RUNS, *seen_by_runs))
