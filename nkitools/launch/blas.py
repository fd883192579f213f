"""One BLAS thread while a kernel runs.

The products of a tile are too small to share: where another process takes one of the cores, the threads of OpenBLAS
wait for each other at every one of them, and a run takes ten times as long.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_running: list[Any] = []  # an entry for each run; the limit of the first one holds until the last one ends
_limits: list[Any] = []


@cache
def _controller() -> Any:
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS uses one thread inside; afterwards as many as before."""
    run = object()
    with _lock:
        if not _running:
            _limits.append(_controller().limit(limits=1, user_api="blas"))
        _running.append(run)
    try:
        yield
    finally:
        with _lock:
            _running.remove(run)
            if not _running:
                _limits.pop().restore_original_limits()
