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
MOST_TEXT = 1 << 20  # bytes of stdout and stderr that are kept
_TICK_SECONDS = 0.05  # between two looks at them
_PIPE_READS = 64
NO_ROOM = 77  # exit status: the output is larger than the limit


def _abi() -> ModuleType:
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "abi.py")
    spec = importlib.util.spec_from_file_location("nkitools_customop_abi", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_MAX_PROCESSES: int = _abi().MAX_PROCESSES


def _answer(fd: int, **answer: Any) -> None:
    with contextlib.suppress(BrokenPipeError):  # the client has gone, and the next read of a request says so
        os.write(fd, json.dumps(answer).encode() + b"\n")


def _virtual_bytes() -> int:
    try:
        with open("/proc/self/statm") as status:
            return int(status.read().split()[0]) * mmap.PAGESIZE
    except OSError:
        return 0


def _limit_memory(extra: int) -> None:
    """Limit the memory beyond what is in use now; 0: no limit.

    Not where the system cannot say how much is in use (macOS): there the limit is that of the output alone.
    """
    used = _virtual_bytes()
    if used:
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        wanted = used + extra if extra else hard
        resource.setrlimit(resource.RLIMIT_AS, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def _mapped(fd: int, size: int) -> mmap.mmap:
    """Return the shared memory, at once where the system can: page by page takes longer than most kernels."""
    flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
    return mmap.mmap(fd, size, flags=flags)


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


def _call(abi: Any, shape: Any, compute: Any, memory_fd: int, text_fd: int) -> None:
    """In the child: the shape function, room for the output, and the kernel where there is a ``compute`` library."""
    os.dup2(text_fd, 1)
    os.dup2(text_fd, 2)
    os.close(text_fd)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    memory = mmap.mmap(memory_fd, abi.CALL_BYTES)
    call = abi.Call.from_buffer(memory)
    _limit_memory(call.memory)
    shape.nkt_shape(ctypes.addressof(call))
    _limit_memory(0)
    if call.stage != 2 or compute is None:
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


_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of Linux's prctl


def _adopt() -> None:
    """Become the parent of all processes that an operator leaves behind, in other sessions too (Linux)."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def _end_what_is_left() -> None:
    """End the processes that a call has left behind, and what these leave behind in turn."""
    for _ in range(_PIPE_READS):
        try:
            with open(f"/proc/self/task/{os.getpid()}/children") as file:
                left = [int(each) for each in file.read().split()]
        except (OSError, ValueError):  # another system, which has its own way to end a session's processes
            return
        for each in left:
            with contextlib.suppress(OSError):
                os.kill(each, signal.SIGKILL)
                os.waitpid(each, 0)
        if not left:
            return


def _descendants(of: int) -> list[int]:
    """Return the processes that have come of one, its own children and theirs; none where the system does not say."""
    found: list[int] = []
    pending = [of]
    while pending and len(found) <= _MAX_PROCESSES:
        parent = pending.pop()
        with contextlib.suppress(OSError, ValueError):  # it has ended meanwhile
            for thread in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{thread}/children") as file:
                    pending += (children := [int(each) for each in file.read().split()])
                    found += children
    return found


def _own_bytes(process: int) -> int:
    """Return the memory of a process, with its share of pages that several have."""
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{process}/smaps_rollup") as file:
        return sum(int(line.split()[1]) << 10 for line in file if line.startswith(("Pss_Anon:", "Pss_Shmem:")))
    return 0


def _excess(memory: int) -> str:
    """Return the excess of a call: in ``processes``, in their ``memory``, or none (an empty text).

    The memory of one process is limited by the system (`_limit_memory`).
    """
    processes = _descendants(os.getpid())
    if len(processes) > _MAX_PROCESSES:
        return "processes"
    if memory and len(processes) > 1 and sum(map(_own_bytes, processes)) > memory:
        return "memory"
    return ""


def _end_of(child: int, pipe: int) -> int:
    """Return what can be read once the child has ended: itself, or its end of a pipe, which its own children keep."""
    try:
        return os.pidfd_open(child)
    except (AttributeError, OSError):
        return os.dup(pipe)


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
            os.killpg(child, signal.SIGKILL)
            return why


def _serve(shape_path: str, compute_path: str, memory_fd: int, text_fd: int) -> None:
    _adopt()
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
        request = json.loads(line)
        ended, held = os.pipe()
        text = _Text()
        child = os.fork()
        if child == 0:
            status = 70
            try:
                os.setpgid(0, 0)
                for each in (ended, answers, text.fd, text_fd):
                    os.close(each)
                _call(abi, shape, None if request["only_shape"] else compute, memory_fd, text.end)
                status = 0
            finally:
                os._exit(status)
        os.close(held)
        os.close(text.end)
        with contextlib.suppress(OSError):  # it has done so itself
            os.setpgid(child, child)
        end = _end_of(child, ended)
        why = _wait(child, end, text, request["timeout"], request["memory"])
        os.close(ended)
        os.close(end)
        _, status = os.waitpid(child, 0)
        _end_what_is_left()
        left_out = text.close(text_fd)
        _answer(answers, status=os.waitstatus_to_exitcode(status), killed=why, left_out=left_out)


def _watch(memory: int, program: str, *arguments: str) -> None:
    """Run a program with the limits of a call but that of time, and end all that it leaves behind.

    It is ended where stdin ends: the client's time for it is over, or the client has gone.
    """
    _adopt()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.execv(program, [program, *arguments])
    ended = False
    while not ended and not select.select([0], [], [], _TICK_SECONDS)[0] and not _excess(memory):
        ended = os.waitpid(child, os.WNOHANG)[0] != 0
    if not ended:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    _end_what_is_left()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the client gets it, and ends this process
    if sys.argv[1] == "--watch":
        _watch(int(sys.argv[2]), *sys.argv[3:])
        sys.exit()
    _serve(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
