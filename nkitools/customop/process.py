"""The client's side of the worker: memory that both share, and one process a library."""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import select
import subprocess
import sys
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from nkitools.customop.abi import CALL_BYTES, Call, aligned
from nkitools.customop.errors import BuildError
from nkitools.customop.toolchain import HERE
from nkitools.platforms import anonymous_file, start_group
from nkitools.processes import Lost

MAX_WORKERS = 8  # idle ones beyond that are ended, the longest idle first
_KEPT_BYTES = 256 << 20  # of memory between calls
_START_SECONDS = 60.0
SCRIPT = (sys.executable, "-I", "-S", str(HERE / "worker.py"))
MOST_TEXT = 1 << 20  # bytes of a call's stdout and stderr that are kept
_HEAD = Call.prints.offset  # what is cleared before a call: all but the prints and moves, which are counted


class Memory:
    """Memory of a call: the call itself, the arguments behind it, and room that the worker adds for the output."""

    def __init__(self) -> None:
        self.fd = anonymous_file()
        self._map = mmap.mmap(-1, CALL_BYTES)
        self._take(aligned(CALL_BYTES))

    def _take(self, size: int) -> None:
        os.ftruncate(self.fd, size)
        self._map = mmap.mmap(self.fd, size)

    def begin(self, size: int) -> Call:
        """Return a cleared call with ``size`` bytes in all; what it had before is forgotten."""
        if len(self._map) < size or len(self._map) > max(size, _KEPT_BYTES):
            self._take(size)
        call = Call.from_buffer(self._map)
        ctypes.memset(ctypes.addressof(call), 0, _HEAD)
        call.size = CALL_BYTES
        return call

    def end(self) -> Call:
        """Return the call as it is now, in all the memory that it has come to use."""
        size = os.fstat(self.fd).st_size
        if size < len(self._map):  # an operator has cut it off, and a page that is not there ends this process
            os.ftruncate(self.fd, len(self._map))
        elif size > len(self._map):
            self._map = mmap.mmap(self.fd, size)
        return Call.from_buffer(self._map)

    @property
    def buffer(self) -> mmap.mmap:
        """The bytes of the memory. An array over them keeps the memory alive."""
        return self._map

    def grow(self, size: int) -> Call:
        """Return the same call with more room behind it (for a call in this process)."""
        if size > len(self._map):
            os.ftruncate(self.fd, size)
        return self.end()


class Worker:
    """One process that runs one library's operators."""

    def __init__(self, shape: str, compute: str) -> None:
        self.pid = os.getpid()  # a worker belongs to the process that started it, and not to its forks
        self.lock = threading.Lock()
        self.memory = Memory()
        self._text = anonymous_file()
        command = [*SCRIPT, shape, compute, str(self.memory.fd), str(self._text)]
        files = (self.memory.fd, self._text)
        self._process = start_group(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=files)
        self._finalizer = weakref.finalize(self, _end, self._process, self.memory.fd, self._text)
        try:
            answer = self._read(_START_SECONDS)
        except Lost:
            self.close()
            raise BuildError(
                f"the library {compute} ends its process while it is loaded: look at what its sources define at "
                "namespace scope"
            ) from None
        except BaseException:
            self.close()
            raise
        if "error" in answer:
            self.close()
            raise BuildError(str(answer["error"]))
        self.operators: list[list[str]] = answer["operators"]
        self.kernels: list[list[str]] = answer["kernels"]

    def call(self, timeout: float, memory_limit: int, *, only_shape: bool = False) -> dict[str, Any]:
        """Run the call in the memory, and return how the child ended. Raises Lost if no answer comes.

        ``timeout`` and ``memory_limit``: as of `Operator.run`. ``only_shape``: the shape function alone.
        """
        os.ftruncate(self._text, 0)
        os.lseek(self._text, 0, os.SEEK_SET)
        request = {"timeout": timeout, "memory": memory_limit, "only_shape": only_shape}
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(json.dumps(request).encode() + b"\n")
            stdin.flush()
        except OSError as error:
            raise Lost from error
        return self._read(None if not timeout else timeout + 30.0)

    def text(self) -> str:
        """Return the output of the call on stdout and stderr that does not come from printf."""
        size = os.fstat(self._text).st_size
        return os.pread(self._text, min(size, MOST_TEXT), 0).decode(errors="replace") if size else ""

    def _read(self, seconds: float | None) -> dict[str, Any]:
        stdout = self._process.stdout
        assert stdout is not None
        deadline = None if seconds is None else time.monotonic() + seconds
        line = b""
        while not line.endswith(b"\n"):
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready, _, _ = select.select([stdout], [], [], left)
            chunk = os.read(stdout.fileno(), 4096) if ready else b""
            if not chunk:
                raise Lost
            line += chunk
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process, and whatever it is running."""
        self._finalizer()

    @property
    def alive(self) -> bool:
        """Return whether this process can send calls to the worker."""
        return self._finalizer.alive and self.pid == os.getpid() and self._process.poll() is None


def _end(process: subprocess.Popen[bytes], *fds: int) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):  # what was to be written has no reader any more
                pipe.close()
    try:
        process.wait(timeout=0.5)  # it ends what it is running, and itself, when its stdin does
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for fd in fds:
        os.close(fd)


_here = threading.local()


def memory_here() -> Memory:
    """Return the memory of calls in this process, one a thread."""
    if not hasattr(_here, "memory"):
        _here.memory = Memory()
    memory: Memory = _here.memory
    return memory


_workers: OrderedDict[tuple[str, str], Worker] = OrderedDict()
_workers_lock = threading.RLock()


def worker_for(shape: str, compute: str) -> Worker:
    """Return the worker of a library, started where there is none."""
    with _workers_lock:
        worker = _workers.pop((shape, compute), None)
        if worker is None or not worker.alive:
            if worker is not None and worker.pid == os.getpid():
                worker.close()
            worker = Worker(shape, compute)
        _workers[shape, compute] = worker
        for key, idle in list(_workers.items())[:-MAX_WORKERS]:
            if not idle.lock.locked():
                del _workers[key]
                idle.close()
        return worker


@contextlib.contextmanager
def worker_held(shape: str, compute: str) -> Iterator[Worker]:
    """Hold a library's worker for one call: other threads wait, and the worker is not ended as idle meanwhile."""
    while True:
        worker = worker_for(shape, compute)
        with worker.lock:
            if worker.alive:  # or another thread has ended it since
                yield worker
                return


def forget(worker: Worker) -> None:
    """End a worker that cannot be trusted any more."""
    with _workers_lock:
        for key, each in list(_workers.items()):
            if each is worker:
                del _workers[key]
    worker.close()
