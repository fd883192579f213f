"""The binary interface between Python and a compiled operator: mirrors ``include/nkitools/abi.h`` field by field.

Standard library only: the worker process imports this file by its path.
"""

from __future__ import annotations

import ctypes

MAX_ARGUMENTS = 16
MAX_DIMS = 8
MAX_CORES = 8
MAX_EVENTS = 256
MAX_FRAMES = 16
TEXT_BYTES = 160
PRINT_BYTES = 4 * 131072
PAGE = 65536  # of the largest pages in use; what the operator touches begins on one

OUTPUT = 1000
LOCAL = 1001

TENSOR, SCALAR_DOUBLE, SCALAR_INTEGER = range(3)
NOT_RUN, RUNNING, FINISHED, STOPPED, CRASHED, TIMED_OUT = range(6)

# c10::ScalarType: its number, name and bytes.
SCALAR_TYPES = {
    0: ("uint8", 1),
    1: ("int8", 1),
    2: ("int16", 2),
    3: ("int32", 4),
    5: ("float16", 2),
    6: ("float32", 4),
    15: ("bfloat16", 2),
}


class TensorRecord(ctypes.Structure):
    """A tensor's place in the call's memory, its shape and its type."""

    _fields_ = [
        ("offset", ctypes.c_int64),
        ("numel", ctypes.c_int64),
        ("sizes", ctypes.c_int64 * MAX_DIMS),
        ("dim", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
    ]

    def shape(self) -> tuple[int, ...]:
        """Return the sizes of the dimensions that there are."""
        return tuple(self.sizes[: self.dim])


class Argument(ctypes.Structure):
    """One argument: a tensor, or a number."""

    _fields_ = [
        ("kind", ctypes.c_int32),
        ("unused", ctypes.c_int32),
        ("tensor", TensorRecord),
        ("number", ctypes.c_double),
        ("integer", ctypes.c_int64),
    ]


class CoreRecord(ctypes.Structure):
    """The actions of one core."""

    _fields_ = [
        ("element_reads", ctypes.c_uint64),
        ("element_writes", ctypes.c_uint64),
        ("stream_reads", ctypes.c_uint64),
        ("stream_writes", ctypes.c_uint64),
        ("tcm_reads", ctypes.c_uint64),
        ("tcm_writes", ctypes.c_uint64),
        ("tcm_bytes_read", ctypes.c_uint64),
        ("tcm_bytes_written", ctypes.c_uint64),
        ("tcm_peak", ctypes.c_uint64),
        ("tcm_leaked", ctypes.c_uint64),
        ("stack_bytes", ctypes.c_uint64),
        ("status", ctypes.c_int32),
        ("dst_taken", ctypes.c_int32),
    ]


class Event(ctypes.Structure):
    """An event that a rule is about."""

    _fields_ = [
        ("kind", ctypes.c_int32),
        ("core", ctypes.c_int32),
        ("tensor", ctypes.c_int32),
        ("frames", ctypes.c_int32),
        ("site", ctypes.c_uint64),
        ("pcs", ctypes.c_uint64 * MAX_FRAMES),
        ("count", ctypes.c_int64),
        ("repeats", ctypes.c_int64),
        ("a", ctypes.c_int64),
        ("b", ctypes.c_int64),
        ("c", ctypes.c_int64),
        ("d", ctypes.c_int64),
        ("text", ctypes.c_char * TEXT_BYTES),
    ]


class PrintRecord(ctypes.Structure):
    """The head of a print; its text follows, then its values (`PrintedValue`)."""

    _fields_ = [
        ("core", ctypes.c_int32),
        ("bytes", ctypes.c_int32),
        ("site", ctypes.c_uint64),
        ("text", ctypes.c_int32),
        ("values", ctypes.c_int32),
    ]


class PrintedValue(ctypes.Structure):
    """A number that was printed: where in the text it stands (in bytes), and its bits as int64, uint64 or double."""

    _fields_ = [
        ("begin", ctypes.c_int32),
        ("end", ctypes.c_int32),
        ("kind", ctypes.c_int32),
        ("bits", ctypes.c_int32),
        ("payload", ctypes.c_uint64),
    ]


class Call(ctypes.Structure):
    """One call of an operator: what is asked for, and what came of it."""

    _fields_ = [
        ("size", ctypes.c_int64),
        ("op", ctypes.c_int32),
        ("cores", ctypes.c_int32),
        ("multicore", ctypes.c_int32),
        ("threads", ctypes.c_int32),
        ("arguments", ctypes.c_int32),
        ("canary", ctypes.c_int32),
        ("trap", ctypes.c_int32),
        ("kernel", ctypes.c_int32),
        ("timeout_ms", ctypes.c_int64),
        ("memory", ctypes.c_int64),
        ("stack_limit", ctypes.c_int64),
        ("at_once", ctypes.c_int32),
        ("unused_word", ctypes.c_int32),
        ("order", ctypes.c_int32 * MAX_CORES),
        ("args", Argument * MAX_ARGUMENTS),
        ("out", TensorRecord),
        ("returned", TensorRecord),
        ("shadow", ctypes.c_int64),
        ("end", ctypes.c_int64),
        ("base", ctypes.c_uint64),
        ("unwritten", ctypes.c_int64),
        ("overlapping", ctypes.c_int64),
        ("by_reference", ctypes.c_int32),
        ("stage", ctypes.c_int32),
        ("events_used", ctypes.c_int32),
        ("events_dropped", ctypes.c_int32),
        ("output_site", ctypes.c_uint64),
        ("print_bytes", ctypes.c_int64),
        ("prints_used", ctypes.c_int32),
        ("went_on", ctypes.c_int32),
        ("core", CoreRecord * MAX_CORES),
        ("events", Event * MAX_EVENTS),
        ("prints", ctypes.c_char * PRINT_BYTES),
    ]


CALL_BYTES = ctypes.sizeof(Call)


def aligned(offset: int, unit: int = PAGE) -> int:
    """Return the next offset at which something of ``unit`` may begin."""
    return -(-offset // unit) * unit


def give_room(call: Call) -> int:
    """Place the output, whose shape is known by now, and its shadow behind the arguments; the end of it all."""
    call.out.offset = aligned(call.end)
    call.shadow = aligned(call.out.offset + call.out.numel * SCALAR_TYPES[call.out.dtype][1] + 1)
    call.end = aligned(call.shadow + call.out.numel + 1)
    return int(call.end)


def open_library(path: str) -> ctypes.CDLL:
    """Load the shape or compute half of a library; OSError where its structures are of another version."""
    library = ctypes.CDLL(path)
    library.nkt_abi_size.restype = ctypes.c_int64
    if library.nkt_abi_size() != CALL_BYTES:
        raise OSError(f"{path} was built by another version of nkitools")
    library.nkt_prepare()
    for name in ("nkt_operators", "nkt_kernels"):
        function = getattr(library, name)
        function.restype = ctypes.c_int64
        function.argtypes = (ctypes.c_char_p, ctypes.c_int64)
    library.nkt_shape.argtypes = (ctypes.c_void_p,)
    library.nkt_run.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    return library


def listing(library: ctypes.CDLL, function: str) -> list[list[str]]:
    """Return what a library has registered, the fields of each line."""
    buffer = ctypes.create_string_buffer(1 << 16)
    used = getattr(library, function)(buffer, len(buffer))
    if used < 0:
        raise OSError("the library registers more than can be listed")
    return [line.split("\t") for line in buffer.value.decode(errors="replace").splitlines()]
