"""The engine of this process: one task after the other, without limits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from nkitools.sweeps.local_engine import Ended

Task = TypeVar("Task")


class InProcess:
    """Runs a function on tasks, here."""

    def run(self, function: Callable[[Task], Any], tasks: Iterable[Task]) -> Iterator[Ended[Task]]:
        """Yield the tasks as they end, in their order."""
        for task in tasks:
            began = time.monotonic()
            yield Ended(task, function(task), seconds=time.monotonic() - began)
