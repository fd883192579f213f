"""The result of an operator's call."""

from __future__ import annotations

from dataclasses import dataclass, field

from nkitools.record.run import Run
from nkitools.record.trace import Trace


@dataclass(frozen=True)
class CoreCounters:
    """The counters of one GpSimd core in a call.

    ``status``: ``finished``, ``stopped`` (nothing further could be computed), ``crashed``, ``timed out`` or ``not
    run``. Elements are counted through element accessors: ``element_reads`` through read-only ones, ``element_writes``
    through writable ones, which hand out references, so that reads through these count there too. ``stream_reads``
    and ``stream_writes``: elements through streams. ``tcm_reads``: calls of ``tensor_to_tcm``; ``tcm_writes``: of
    ``tcm_to_tensor``; ``tcm_bytes_read`` and ``tcm_bytes_written``: the bytes that these calls asked for. ``tcm_peak``
    is the most bytes that the core had of the pool of 16384, open streams (4096 each) included; ``tcm_leaked`` the
    bytes that it never freed. ``stack_bytes``: the deepest stack seen where the operator called the tensor library; a
    host's, not the device's.
    """

    core: int
    status: str
    element_reads: int
    element_writes: int
    stream_reads: int
    stream_writes: int
    tcm_reads: int
    tcm_writes: int
    tcm_bytes_read: int
    tcm_bytes_written: int
    tcm_peak: int
    tcm_leaked: int
    stack_bytes: int


@dataclass(eq=False, repr=False)
class OperatorRun(Run):
    """The run of a custom operator: ``outputs`` is its result, None if there is none; ``cores`` has the `CoreCounters`
    of each core, one in a library without ``multicore``, else eight; () if its signature cannot be called (CO112).

    ``seconds``: the time of the call on this host, with its worker process; it says nothing of a device. ``traces``:
    what each core did, one after the other, if the call was made inside of `nkitools.watching()`.
    """

    cores: tuple[CoreCounters, ...] = field(default=())
    seconds: float = 0.0
    traces: list[Trace] = field(default_factory=list, repr=False)
