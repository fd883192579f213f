"""The limits of a worker process: its memory, one BLAS thread, and silence at Ctrl-C, which its driver handles."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

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
    limit_memory(memory)


def limit_memory(memory: int) -> None:
    """Let this process take so many bytes more of address space than it has."""
    if sys.platform != "linux":
        return
    import resource

    now = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGESIZE")
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = now + memory if hard == resource.RLIM_INFINITY else min(now + memory, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
