"""Tests of Pallas kernels, run where the CPU passes for a TPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager

from nkitools.field.outcomes import Seen
from nkitools.rules.finding import Finding


def passing_for(chip: str) -> Callable[[Seen], AbstractContextManager[None]]:
    """Let the CPU pass for the TPU ``chip``; return what watches a test. ValueError for an unknown chip."""
    from nkitools.pallas.interpreter_limits import limit
    from nkitools.pallas.whole_tests import pass_for, watched_test

    pass_for(chip)

    @contextmanager
    def watched(seen: Seen) -> Iterator[None]:
        found: list[tuple[Iterable[Finding], int]] = []
        with watched_test(chip, lambda *those: found.append(those)):
            yield
        seen.limits = [reason for error in seen.chain() if (reason := limit(error))]
        for findings, calls in found:
            seen.found(() if seen.limits else findings, calls)  # a kernel that was broken off leaves copies unwaited

    return watched
