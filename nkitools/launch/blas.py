"""One BLAS thread while a kernel runs.

The products of a tile are too small for threads: if another process uses one of the cores, the threads of OpenBLAS wait
for each other at every product, and a run takes ten times as long.
"""

from __future__ import annotations

import sys
import threading
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

_WITH_BLAS = ("scipy.linalg", "scipy.special", "torch")  # modules that load a BLAS library of their own
_lock = threading.Lock()
_running = 0
_before: list[tuple[Any, int]] = []  # each BLAS library and how many threads it had when the first run began


@cache
def _libraries(loaded: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the BLAS libraries of the process; ``loaded``: the modules that bring some, as a key of the cache."""
    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


class one_thread:  # noqa: N801 - it is used as a function; a generator's block takes longer
    """``with one_thread():`` BLAS uses one thread inside, and afterwards as many as before, once no run is left."""

    def __enter__(self) -> None:
        global _running
        # Three look-ups: frozenset.intersection would go through all modules of the process.
        loaded = tuple([name for name in _WITH_BLAS if name in sys.modules])
        with _lock:
            if not _running:
                _before[:] = [(library, library.get_num_threads()) for library in _libraries(loaded)]
            _running += 1
            for library, count in _before:
                if count != 1 or _is_of_thread(library):
                    _limit(library, 1)

    def __exit__(self, *error: object) -> None:
        global _running
        with _lock:
            _running -= 1
            for library, count in _before:
                if _is_of_thread(library) or (count != 1 and not _running):
                    _limit(library, count)


def _is_of_thread(library: Any) -> bool:
    """Return whether a limit of a BLAS library is one of the thread that sets it."""
    return getattr(library, "threading_layer", "") == "openmp"


def _limit(library: Any, count: int) -> None:
    """Let a BLAS library use so many threads, whichever thread of Python asks.

    ``set_num_threads`` of threadpoolctl 3.8 does nothing for OpenBLAS in any thread but the first that has called it.
    """
    getattr(library, "_real_set_num_threads", library.set_num_threads)(count)
