"""One BLAS thread while a kernel runs.

The products of a tile are too small for threads: if another process uses one of the cores, the threads of OpenBLAS wait
for each other at every product, and a run takes ten times as long.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

_WITH_BLAS = frozenset(("scipy.linalg", "scipy.special", "torch"))  # modules that load a BLAS library of their own
_lock = threading.Lock()
_running = 0
_before: list[tuple[Any, int]] = []  # each BLAS library and how many threads it had when the first run began


@cache
def _libraries(loaded: frozenset[str]) -> tuple[Any, ...]:
    """Return the BLAS libraries of the process; ``loaded``: the modules that bring some, as a key of the cache."""
    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS uses one thread inside, and afterwards as many as before, once no run is left."""
    global _running
    # Three look-ups: frozenset.intersection would go through all modules of the process.
    loaded = frozenset(name for name in _WITH_BLAS if name in sys.modules)
    with _lock:
        if not _running:
            _before[:] = [(library, library.get_num_threads()) for library in _libraries(loaded)]
        _running += 1
        for library, _ in _before:
            _limit(library, 1)
    try:
        yield
    finally:
        with _lock:
            _running -= 1
            for library, count in _before:
                if not _running or getattr(library, "threading_layer", "") == "openmp":  # a limit of this thread alone
                    _limit(library, count)


def _limit(library: Any, count: int) -> None:
    """Let a BLAS library use so many threads, whichever thread of Python asks.

    ``set_num_threads`` of threadpoolctl 3.8 does nothing for OpenBLAS in any thread but the first that has called it.
    """
    getattr(library, "_real_set_num_threads", library.set_num_threads)(count)
