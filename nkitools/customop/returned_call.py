"""A call as its process has left it, checked before any of its counts, offsets and sizes is used.

An operator may write anywhere in its process, also into the memory that both sides share.
"""

from __future__ import annotations

import ctypes
import math

from nkitools.customop.abi import (
    MAX_DIMS,
    MAX_EVENTS,
    PRINT_BYTES,
    SCALAR_TYPES,
    TIMED_OUT,
    Call,
    TensorRecord,
    aligned,
    room_of,
)
from nkitools.customop.errors import DamagedCall

ASKED = Call.out.offset  # bytes of a call that describe what is asked for: no operator has a reason to write there
_FLAGS = ("by_reference", "went_on")
_COUNTS = ("forks", "events_dropped", "moves_used", "print_bytes", "unwritten", "overlapping")


def ask(call: Call, timeout: float, memory_limit: int) -> tuple[bytes, int]:
    """Set the limits of a call for a worker, and return what is asked for and the end of the arguments, to be checked.

    ``timeout`` and ``memory_limit``: as of `Operator.run`.
    """
    call.trap, call.timeout_ms, call.memory = 1, int(timeout * 1000), memory_limit
    return ctypes.string_at(ctypes.addressof(call), ASKED), call.end


def check_returned(call: Call, asked: bytes, end: int, size: int) -> None:
    """Raise `DamagedCall` where a call holds what no operator leaves.

    ``asked``: the first bytes of the call before the operator ran. ``end``: of the arguments in the memory. ``size``:
    of the memory now.
    """
    if ctypes.string_at(ctypes.addressof(call), ASKED) != asked:
        raise DamagedCall("its arguments are others than before the call")
    _within("stage", call.stage, 0, 3)
    _within("events_used", call.events_used, 0, MAX_EVENTS)
    _within("prints_used", call.prints_used, 0, PRINT_BYTES)
    for name in _FLAGS:
        _within(name, getattr(call, name), 0, 1)
    for name in _COUNTS:
        _within(name, getattr(call, name), 0, 1 << 62)
    for core in call.core:
        _within("the status of a core", core.status, 0, TIMED_OUT)
    if call.stage < 2:
        return
    _check_tensor("the output", call.out)
    if call.returned.dim or call.returned.numel:
        _check_tensor("the returned tensor", call.returned)
    _within("unwritten", call.unwritten, 0, call.out.numel)
    _within("overlapping", call.overlapping, 0, call.out.numel)
    placed = (call.out.offset, call.shadow, call.end)
    if placed != room_of(end, call.out) and (call.stage == 3 or placed != (0, 0, end)):
        raise DamagedCall("its output is in another place than before the call")
    if call.stage == 3 and call.end > size:
        raise DamagedCall("its memory is shorter than before the call")


def _within(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise DamagedCall(f"{name} is {value}")


def _check_tensor(name: str, record: TensorRecord) -> None:
    _within(f"the number of dimensions of {name}", record.dim, 0, MAX_DIMS)
    sizes = record.shape()
    if record.dtype not in SCALAR_TYPES:
        raise DamagedCall(f"the dtype of {name} is {record.dtype}")
    if min(sizes, default=0) < 0 or math.prod(sizes) != record.numel:
        raise DamagedCall(f"{name} has sizes {list(sizes)} and {record.numel} elements")
    if aligned(record.numel) > 1 << 60:
        raise DamagedCall(f"{name} has {record.numel} elements")
