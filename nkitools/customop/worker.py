"""The process in which operators run: a script that the client starts, of the standard library alone.

It loads the two halves of one library and waits. For each call it forks: what an operator breaks is its child's, and
the next call finds everything as it was. Requests and answers are lines of JSON; the call itself (abi.Call, arguments,
results) lies in memory that both sides share.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib.util
import json
import mmap
import os
import resource
import select
import signal
import sys
import time
from types import ModuleType
from typing import Any

GRACE_SECONDS = 2.0  # an operator that ignores its alarm is killed after its timeout and this
NO_ROOM = 77  # exit status: the output is larger than the limit


def _abi() -> ModuleType:
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "abi.py")
    spec = importlib.util.spec_from_file_location("nkitools_customop_abi", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _answer(fd: int, **answer: Any) -> None:
    os.write(fd, json.dumps(answer).encode() + b"\n")


def _virtual_bytes() -> int:
    try:
        with open("/proc/self/statm") as status:
            return int(status.read().split()[0]) * mmap.PAGESIZE
    except OSError:
        return 0


def _limit_memory(extra: int) -> None:
    """Not where the system cannot say how much is in use (macOS): there the limit is that of the output alone."""
    used = _virtual_bytes()
    if extra and used:
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        wanted = used + extra
        resource.setrlimit(resource.RLIMIT_AS, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def _mapped(fd: int, size: int) -> mmap.mmap:
    """Return the shared memory, at once where the system can: page by page takes longer than most kernels."""
    flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
    return mmap.mmap(fd, size, flags=flags)


def _call(abi: Any, shape: Any, compute: Any, memory_fd: int, text_fd: int) -> None:
    """In the child: the shape function, room for the output, the kernel."""
    os.dup2(text_fd, 1)
    os.dup2(text_fd, 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    memory = mmap.mmap(memory_fd, abi.CALL_BYTES)
    call = abi.Call.from_buffer(memory)
    shape.nkt_shape(ctypes.addressof(call))
    if call.stage != 2:
        return
    total = abi.give_room(call)
    if call.memory and total > call.memory:
        os._exit(NO_ROOM)
    if total > os.fstat(memory_fd).st_size:
        os.ftruncate(memory_fd, total)
    memory = _mapped(memory_fd, total)
    call = abi.Call.from_buffer(memory)
    _limit_memory(call.memory)
    compute.nkt_run(ctypes.addressof(call), ctypes.addressof(call))


def _wait(child: int, ended: int, timeout: float) -> bool:
    """Wait for the child's end of the pipe to close; True where it had to be killed."""
    deadline = time.monotonic() + timeout + GRACE_SECONDS if timeout else None
    while True:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready, _, _ = select.select([ended, 0], [], [], left)
        if ended in ready:
            return False
        if not ready or 0 in ready:  # its time is over, or the client has gone
            os.killpg(child, signal.SIGKILL)
            return True


def _serve(shape_path: str, compute_path: str, memory_fd: int, text_fd: int) -> None:
    answers = os.dup(1)
    os.dup2(2, 1)
    abi = _abi()
    try:
        shape, compute = abi.open_library(shape_path), abi.open_library(compute_path)
    except OSError as error:
        _answer(answers, error=str(error))
        return
    operators, kernels = abi.listing(shape, "nkt_operators"), abi.listing(compute, "nkt_kernels")
    _answer(answers, operators=operators, kernels=kernels)
    gc.freeze()  # a collection in a child would copy every page that it looks at
    requests = os.fdopen(0, "rb", buffering=0, closefd=False)
    while line := requests.readline():
        timeout = json.loads(line)["timeout"]
        ended, held = os.pipe()
        child = os.fork()
        if child == 0:
            status = 70
            try:
                os.setpgid(0, 0)
                os.close(ended)
                _call(abi, shape, compute, memory_fd, text_fd)
                status = 0
            finally:
                os._exit(status)
        os.close(held)
        with contextlib.suppress(OSError):  # it has done so itself
            os.setpgid(child, child)
        killed = _wait(child, ended, timeout)
        os.close(ended)
        _, status = os.waitpid(child, 0)
        _answer(answers, status=os.waitstatus_to_exitcode(status), killed=killed)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the client gets it, and ends this process
    _serve(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
