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
import select
import signal
import sys
import time
from typing import Any

GRACE_SECONDS = 2.0  # an operator that ignores its alarm is killed after its timeout and this
MOST_TEXT = 1 << 20  # bytes of stdout and stderr that are kept
_TICK_SECONDS = 0.05  # between two looks at them
_PIPE_READS = 64
NO_ROOM = 77  # exit status: the output is larger than the limit


def _module(*path: str) -> Any:
    """Load a module of nkitools by its path, without nkitools itself."""
    place = os.path.join(os.path.dirname(os.path.abspath(__file__)), *path)
    spec = importlib.util.spec_from_file_location("nkitools_" + path[-1].removesuffix(".py"), place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_abi = _module("abi.py")
_platforms = _module(os.pardir, "platforms.py")


def _answer(fd: int, **answer: Any) -> None:
    with contextlib.suppress(BrokenPipeError):  # the client has gone, and the next read of a request says so
        os.write(fd, json.dumps(answer).encode() + b"\n")


class _Text:
    """The text that a child writes to stdout and stderr: the first bytes are kept, the others are counted."""

    def __init__(self) -> None:
        self.fd, self.end = os.pipe()
        os.set_blocking(self.fd, False)
        self.kept = bytearray()
        self.left_out = 0

    def take(self) -> bool:
        """Read what is there now; False at its end."""
        try:
            found = os.read(self.fd, 1 << 16)
        except BlockingIOError:
            return False
        self.kept += found[: MOST_TEXT - len(self.kept)]
        self.left_out += len(found)
        return bool(found)

    def close(self, text_fd: int) -> int:
        """Write what is kept into a file; how many bytes are left out."""
        for _ in range(_PIPE_READS):  # more is that of a process which the operator has left behind
            if not self.take():
                break
        os.close(self.fd)
        os.write(text_fd, self.kept)
        return self.left_out - len(self.kept)


def _call(shape: Any, compute: Any, memory_fd: int, text_fd: int) -> None:
    """In the child: the shape function, room for the output, and the kernel where there is a ``compute`` library."""
    os.dup2(text_fd, 1)
    os.dup2(text_fd, 2)
    os.close(text_fd)
    _platforms.write_no_core()
    memory = mmap.mmap(memory_fd, _abi.CALL_BYTES)
    call = _abi.Call.from_buffer(memory)
    # Where the system cannot limit it, the limit is that of the output alone.
    _platforms.limit_address_space(call.memory)
    shape.nkt_shape(ctypes.addressof(call))
    _platforms.limit_address_space(0)
    if call.stage != 2 or compute is None:
        return
    total = _abi.give_room(call)
    if call.memory and total > call.memory:
        os._exit(NO_ROOM)
    if total > os.fstat(memory_fd).st_size:
        os.ftruncate(memory_fd, total)
    memory = _platforms.shared_map(memory_fd, total)  # page by page takes longer than most kernels
    call = _abi.Call.from_buffer(memory)
    _platforms.limit_address_space(call.memory)
    compute.nkt_run(ctypes.addressof(call), ctypes.addressof(call))


def _descendants(of: int) -> list[int]:
    """Return the processes that have come of one, its own children and theirs; none where the system does not say."""
    found: list[int] = []
    pending = [of]
    while pending and len(found) <= _abi.MAX_PROCESSES:
        children = _platforms.children_of(pending.pop())
        pending += children
        found += children
    return found


def _excess(memory: int) -> str:
    """Return the excess of a call: in ``processes``, in their ``memory``, or none (an empty text).

    The memory of one process is limited by the system.
    """
    processes = _descendants(os.getpid())
    if len(processes) > _abi.MAX_PROCESSES:
        return "processes"
    if memory and len(processes) > 1 and sum(map(_platforms.own_memory, processes)) > memory:
        return "memory"
    return ""


def _wait(child: int, ended: int, text: _Text, timeout: float, memory: int) -> str:
    """Wait for the child to end; why it had to be killed, '' where it was not: ``time`` or as of `_excess`."""
    sources = [ended, 0, text.fd]
    began = time.monotonic()
    deadline = began + timeout + GRACE_SECONDS if timeout else None
    look = began + _TICK_SECONDS
    while True:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready, _, _ = select.select(sources, [], [], _TICK_SECONDS if left is None else min(left, _TICK_SECONDS))
        if ended in ready:
            return ""
        if text.fd in ready and not text.take():
            sources.remove(text.fd)  # closed by the child
        now = time.monotonic()
        why = "time" if 0 in ready or left == 0 else ""  # its time is over, or the client has gone
        if not why and now >= look:
            why, look = _excess(memory), now + _TICK_SECONDS
        if why:
            _platforms.end_group(child)
            return why


def _serve(shape_path: str, compute_path: str, memory_fd: int, text_fd: int) -> None:
    _platforms.adopt_orphans()
    answers = os.dup(1)
    os.dup2(2, 1)
    try:
        shape, compute = _abi.open_library(shape_path), _abi.open_library(compute_path)
    except OSError as error:
        _answer(answers, error=str(error))
        return
    operators, kernels = _abi.listing(shape, "nkt_operators"), _abi.listing(compute, "nkt_kernels")
    _answer(answers, operators=operators, kernels=kernels)
    gc.freeze()  # a collection in a child would copy every page that it looks at
    requests = os.fdopen(0, "rb", buffering=0, closefd=False)
    while line := requests.readline():
        request = json.loads(line)
        ended, held = os.pipe()
        text = _Text()
        child = _platforms.fork_group()
        if child == 0:
            status = 70
            try:
                for each in (ended, answers, text.fd, text_fd):
                    os.close(each)
                _call(shape, None if request["only_shape"] else compute, memory_fd, text.end)
                status = 0
            finally:
                os._exit(status)
        os.close(held)
        os.close(text.end)
        end = _platforms.readable_at_end(child, ended)
        why = _wait(child, end, text, request["timeout"], request["memory"])
        os.close(ended)
        os.close(end)
        status = _platforms.exit_status(child)
        _platforms.end_children()
        left_out = text.close(text_fd)
        _answer(answers, status=status, killed=why, left_out=left_out)


def _watch(memory: int, program: str, *arguments: str) -> None:
    """Run a program with the limits of a call but that of time, and end all that it leaves behind.

    It is ended where stdin ends: the client's time for it is over, or the client has gone.
    """
    import subprocess

    _platforms.adopt_orphans()
    child = subprocess.Popen([program, *arguments], stdin=subprocess.DEVNULL, close_fds=False)
    while child.poll() is None and not select.select([0], [], [], _TICK_SECONDS)[0] and not _excess(memory):
        pass
    child.kill()
    child.wait()
    _platforms.end_children()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the client gets it, and ends this process
    if sys.argv[1] == "--watch":
        _watch(int(sys.argv[2]), *sys.argv[3:])
        sys.exit()
    _serve(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
