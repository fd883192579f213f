"""Device prints as people are shown them: the first ones, each cut to a readable length."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nkitools.record.run import Run


def first_prints(runs: Sequence[Run], limit: int, lines: int) -> list[str]:
    """The texts of the first ``limit`` prints of ``runs``, each cut to ``lines`` lines.

    A last text says how many more prints there are.
    """
    texts = [_cut(one.text(), lines) for one in islice(chain.from_iterable(run.prints for run in runs), limit)]
    more = sum(len(run.prints) for run in runs) - len(texts)
    return [*texts, f"... and {more} more"] if more else texts


def _cut(text: str, limit: int) -> str:
    lines = text.splitlines()
    if len(lines) <= limit:
        return text
    return "\n".join([*lines[:limit], f"... ({len(lines) - limit} more lines)"])
