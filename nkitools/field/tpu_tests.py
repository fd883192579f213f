"""Tests of Pallas kernels, run where the CPU passes for a TPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from nkitools.field.outcomes import Seen


def passing_for(chip: str) -> Callable[[Seen], AbstractContextManager[None]]:
    """Let the CPU pass for the TPU ``chip``; return what watches a test. ValueError for an unknown chip."""
    from nkitools.pallas.interpreter_limits import limit
    from nkitools.pallas.whole_tests import pass_for, watched_test

    pass_for(chip)

    @contextmanager
    def watched(seen: Seen) -> Iterator[None]:
        with watched_test(chip, seen.found):
            yield
        seen.limits = [reason for error in seen.exceptions if (reason := limit(error))]

    return watched
