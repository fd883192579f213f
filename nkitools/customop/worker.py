"""The process in which operators run: a script that the client starts, of the standard library alone.

It loads the two halves of one library and waits. For each call it forks: what an operator breaks is its child's, and
the next call finds everything as it was. Requests and answers are lines of JSON; the call itself (abi.Call, arguments,
results) lies in memory that both sides share.
"""

from __future__ import annotations

import ctypes
import gc
import json
import mmap
import os
import signal
import sys
from typing import Any

GRACE_SECONDS = 2.0  # an operator that ignores its alarm is killed after its timeout and this
MOST_TEXT = 1 << 20  # bytes of stdout and stderr that are kept
NO_ROOM = 77  # exit status: the output is larger than the limit


sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "processes"))
import guard as _guard  # type: ignore[import-not-found] # noqa: E402 - nkitools itself is not imported

_abi, _platforms = _guard.by_path("customop", "abi.py"), _guard.platforms


def _call(shape: Any, compute: Any, memory_fd: int, text_fd: int) -> None:
    """In the child: the shape function, room for the output, and the kernel where there is a ``compute`` library."""
    os.dup2(text_fd, 1)
    os.dup2(text_fd, 2)
    os.close(text_fd)
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


def _serve(shape_path: str, compute_path: str, memory_fd: int, text_fd: int) -> None:
    answers = os.dup(1)
    os.dup2(2, 1)
    try:
        shape, compute = _abi.open_library(shape_path), _abi.open_library(compute_path)
    except OSError as error:
        _guard.report(answers, {"error": str(error)})
        return
    operators, kernels = _abi.listing(shape, "nkt_operators"), _abi.listing(compute, "nkt_kernels")
    _guard.report(answers, {"operators": operators, "kernels": kernels})
    gc.freeze()  # a collection in a child would copy every page that it looks at
    requests = os.fdopen(0, "rb", buffering=0, closefd=False)
    guard = _guard.Guard(0)
    while line := requests.readline():
        request = json.loads(line)
        text = _guard.Text(MOST_TEXT)
        kernels_half = None if request["only_shape"] else compute

        def run(text: Any = text, kernels_half: Any = kernels_half) -> None:
            for each in (answers, text.fd, text_fd):
                os.close(each)
            os.open(os.devnull, os.O_RDONLY)  # as stdin, which the requests come from
            _call(shape, kernels_half, memory_fd, text.end)

        seconds = request["timeout"] and request["timeout"] + GRACE_SECONDS
        limits = _guard.Limits(seconds, together=request["memory"], processes=_abi.MAX_PROCESSES)
        status, why = guard.run(limits, run, (text,))
        os.close(text.fd)
        os.write(text_fd, text.kept)
        _guard.report(answers, {"status": status, "killed": why, "left_out": text.left_out})


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the client gets it, and ends this process
    _serve(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
