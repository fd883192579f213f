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
MAX_FORKS = 256
MAX_PROCESSES = 64  # that a call may have at a time: a device has none; of Python alone
TEXT_BYTES = 160
PRINT_BYTES = 4 * 131072
MAX_MOVES = 32768
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


def _fields(kind: type, names: str) -> list[tuple[str, type]]:
    """Return neighbouring fields of one type."""
    return [(name, kind) for name in names.split()]


class TensorRecord(ctypes.Structure):
    """A tensor's place in the call's memory, its shape and its type."""

    _fields_ = [
        *_fields(ctypes.c_int64, "offset numel"),
        ("sizes", ctypes.c_int64 * MAX_DIMS),
        *_fields(ctypes.c_int32, "dim dtype"),
    ]

    def shape(self) -> tuple[int, ...]:
        """Return the sizes of the dimensions that there are."""
        return tuple(self.sizes[: self.dim])


class Argument(ctypes.Structure):
    """One argument: a tensor, or a number."""

    _fields_ = [
        *_fields(ctypes.c_int32, "kind unused"),
        ("tensor", TensorRecord),
        ("number", ctypes.c_double),
        ("integer", ctypes.c_int64),
    ]


class CoreRecord(ctypes.Structure):
    """The actions of one core."""

    _fields_ = [
        *_fields(ctypes.c_uint64, "element_reads element_writes stream_reads stream_writes tcm_reads tcm_writes"),
        *_fields(ctypes.c_uint64, "tcm_bytes_read tcm_bytes_written tcm_peak tcm_leaked stack_bytes"),
        *_fields(ctypes.c_int32, "status dst_taken"),
    ]


class Event(ctypes.Structure):
    """An event that a rule is about."""

    _fields_ = [
        *_fields(ctypes.c_int32, "kind core tensor frames"),
        ("site", ctypes.c_uint64),
        ("pcs", ctypes.c_uint64 * MAX_FRAMES),
        *_fields(ctypes.c_int64, "count repeats a b c d"),
        ("text", ctypes.c_char * TEXT_BYTES),
    ]


class PrintRecord(ctypes.Structure):
    """The head of a print; its text follows, then its values (`PrintedValue`)."""

    _fields_ = [
        *_fields(ctypes.c_int32, "core bytes"),
        ("site", ctypes.c_uint64),
        *_fields(ctypes.c_int32, "text values"),
    ]


class PrintedValue(ctypes.Structure):
    """A number that was printed: where in the text it stands (in bytes), and its bits as int64, uint64 or double."""

    _fields_ = [*_fields(ctypes.c_int32, "begin end kind bits"), ("payload", ctypes.c_uint64)]


class Move(ctypes.Structure):
    """One thing that a core did, of a traced call."""

    _fields_ = [
        *_fields(ctypes.c_int32, "kind core tensor block"),
        *_fields(ctypes.c_int64, "first count byte"),
        ("site", ctypes.c_uint64),
        *_fields(ctypes.c_int32, "item serial"),
    ]


class Call(ctypes.Structure):
    """One call of an operator: what is asked for, and what came of it."""

    _fields_ = [
        ("size", ctypes.c_int64),
        *_fields(ctypes.c_int32, "op cores multicore threads arguments canary trap kernel"),
        *_fields(ctypes.c_int64, "timeout_ms memory stack_limit"),
        *_fields(ctypes.c_int32, "at_once guard traced unused"),
        ("order", ctypes.c_int32 * MAX_CORES),
        ("args", Argument * MAX_ARGUMENTS),
        *_fields(TensorRecord, "out returned"),
        *_fields(ctypes.c_int64, "shadow end"),
        ("base", ctypes.c_uint64),
        *_fields(ctypes.c_int64, "unwritten overlapping"),
        *_fields(ctypes.c_int32, "by_reference stage events_used events_dropped"),
        ("output_site", ctypes.c_uint64),
        ("print_bytes", ctypes.c_int64),
        *_fields(ctypes.c_int32, "prints_used went_on"),
        ("forks", ctypes.c_int64),
        ("moves_used", ctypes.c_int64),
        *_fields(ctypes.c_int32, "output_serial unused_too"),
        ("core", CoreRecord * MAX_CORES),
        ("events", Event * MAX_EVENTS),
        ("prints", ctypes.c_char * PRINT_BYTES),
        ("moves", Move * MAX_MOVES),
    ]


CALL_BYTES = ctypes.sizeof(Call)
NO_GUARD = 0
GUARDS = (1, 2)  # blocks and tensors begin behind a guard page; they end before one


def aligned(offset: int, unit: int = PAGE) -> int:
    """Return ``offset`` rounded up to a multiple of ``unit``."""
    return -(-offset // unit) * unit


def give_room(call: Call) -> int:
    """Place the output, whose shape is known by now, and its shadow behind the arguments; the end of it all."""
    call.out.offset, call.shadow, call.end = room_of(call.end, call.out)
    return int(call.end)


def room_of(end: int, out: TensorRecord) -> tuple[int, int, int]:
    """Return the offsets of an output and its shadow after arguments that end at ``end``, and the end of the shadow."""
    offset = aligned(end)
    shadow = aligned(offset + out.numel * SCALAR_TYPES[out.dtype][1] + 1)
    return offset, shadow, aligned(shadow + out.numel + 1)


def open_library(path: str) -> ctypes.CDLL:
    """Load the shape or compute half of a library. OSError if its structures have another version."""
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
    """Return the entries that a library has registered, each as a list of fields."""
    buffer = ctypes.create_string_buffer(1 << 16)
    used = getattr(library, function)(buffer, len(buffer))
    if used < 0:
        raise OSError("the library registers more than can be listed")
    return [line.split("\t") for line in buffer.value.decode(errors="replace").splitlines()]
