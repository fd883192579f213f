"""One BLAS thread while a kernel runs.

The products of a tile are too small for threads: if another process uses one of the cores, the threads of OpenBLAS wait
for each other at every product, and a run takes ten times as long.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

from nkitools.facts.light_classes import NamedTuple

_WITH_BLAS = ("scipy.linalg", "scipy.special", "torch")  # modules that load a BLAS library of their own
_lock = threading.Lock()
_running = 0
_before: list[tuple[_Library, int]] = []  # each BLAS library and how many threads it had when the first run began


class _Library(NamedTuple):
    """A BLAS library: functions that return and set its number of threads.

    ``is_of_thread``: a limit is one of the thread that sets it.
    """

    get: Callable[[], int]
    limit: Callable[[int], None]
    is_of_thread: bool


@cache
def _libraries(loaded: tuple[str, ...]) -> tuple[_Library, ...]:
    """Return the BLAS libraries of the process; ``loaded``: the modules that bring some, as a key of the cache."""
    own = None if loaded else _own_library()
    if own is not None:
        return (own,)
    from threadpoolctl import ThreadpoolController  # looks through all libraries of the process, for 3 milliseconds

    return tuple(map(_library, ThreadpoolController().select(user_api="blas").lib_controllers))


def _own_library() -> _Library | None:
    """Return the OpenBLAS of NumPy's wheels, which NumPy's own module finds; None if NumPy has another BLAS."""
    symbols = ctypes.CDLL(_multiarray_umath.__file__)
    get_parallel = getattr(symbols, "scipy_openblas_get_parallel64_", None)
    if get_parallel is None or get_parallel() == 2:  # OpenMP has a number for each thread of Python
        return None
    return _Library(symbols.scipy_openblas_get_num_threads64_, symbols.scipy_openblas_set_num_threads64_, False)


def _library(found: Any) -> _Library:
    """Return a library that threadpoolctl has found.

    OpenBLAS is asked itself: ``set_num_threads`` of threadpoolctl 3.8 does nothing for it in any thread but the first
    that has called it, and looks up the name of the library's function each time.
    """
    is_of_thread = getattr(found, "threading_layer", "") == "openmp"
    asks_itself = found.internal_api == "openblas" and not is_of_thread and hasattr(found, "_get_symbol")
    get, limit = (found._get_symbol(f"openblas_{what}_num_threads") if asks_itself else None for what in ("get", "set"))
    return _Library(get or found.get_num_threads, limit or found.set_num_threads, is_of_thread)


class one_thread:  # noqa: N801 - it is used as a function; a generator's block takes longer
    """``with one_thread():`` BLAS uses one thread inside, and afterwards as many as before, once no run is left."""

    def __enter__(self) -> None:
        global _running
        # Three look-ups: frozenset.intersection would go through all modules of the process.
        loaded = tuple([name for name in _WITH_BLAS if name in sys.modules])
        with _lock:
            if not _running:
                _before.clear()
                for library in _libraries(loaded):
                    _before.append((library, library.get()))
            _running += 1
            for library, count in _before:
                if count != 1 or library.is_of_thread:
                    library.limit(1)

    def __exit__(self, *error: object) -> None:
        global _running
        with _lock:
            _running -= 1
            for library, count in _before:
                if library.is_of_thread or (count != 1 and not _running):
                    library.limit(count)
