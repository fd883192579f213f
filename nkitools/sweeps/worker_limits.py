"""The limits of a worker process: its memory, one BLAS thread, and silence at Ctrl-C, which its driver handles."""

from __future__ import annotations

import os
import signal

from nkitools.platforms import limit_address_space

GIB = 1 << 30
MEMORY = 4 * GIB  # that a worker may take beside what it has when it starts
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def limit_worker(memory: int = MEMORY) -> None:
    """Give this process its limits. The limit of memory is kept where the system has one (Linux)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for variable in THREADS:
        os.environ[variable] = "1"
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    limit_address_space(memory)
