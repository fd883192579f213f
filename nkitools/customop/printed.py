"""The prints of an operator as records of the same form as those of other kernels."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.customop.abi import Call, PrintedValue, PrintRecord
from nkitools.customop.errors import DamagedCall
from nkitools.customop.event_context import Context
from nkitools.record.prints.device_print import Print

_KINDS = tuple(map(ord, "iud"))


@dataclass
class _Line:
    """A line so far: where it began, its text, and the numbers in it with the bytes that they take."""

    core: int
    site: int
    text: bytes = b""
    values: list[tuple[int, int, Array]] = field(default_factory=list)

    def add(self, text: bytes, values: list[tuple[int, int, Array]]) -> None:
        """Add text and numbers to the line."""
        self.values += [(begin + len(self.text), end + len(self.text), value) for begin, end, value in values]
        self.text += text


def printed(call: Call, context: Context, text: str) -> list[Print]:
    """Return a record for each printed number, with the text before it; for a line without numbers one of its text.

    In order; ``text``, the output by other ways than printf, is last. printf promotes float to double: a double that is
    a float is recorded as float32.
    """
    lines = list(_lines(call))
    context.symbols.warm(line.site for line in lines if line.site)
    prints = [one for line in lines for one in _records(context, line)]
    prints += [Print(line.rstrip(), np.empty(0), program=(0,)) for line in text.splitlines()]
    return [replace(one, order=order) for order, one in enumerate(prints)]


def _lines(call: Call) -> Iterator[_Line]:
    begun: dict[int, _Line] = {}
    for record, text, values in _pieces(call):
        line = begun.pop(record.core, None) or _Line(record.core, record.site)
        at = 0
        while (end := text.find(b"\n", at)) >= 0:
            line.add(text[at:end], _between(values, at, end))
            yield line
            line, at = _Line(record.core, record.site), end + 1
        line.add(text[at:], _between(values, at, len(text)))
        if line.text:
            begun[record.core] = line
    yield from begun.values()


def _between(values: list[tuple[int, int, Array]], start: int, end: int) -> list[tuple[int, int, Array]]:
    return [(a - start, b - start, value) for a, b, value in values if start <= a and b <= end]


def _pieces(call: Call) -> Iterator[tuple[PrintRecord, bytes, list[tuple[int, int, Array]]]]:
    """Yield the head, text and values of each call of printf that the device's buffer would still have."""
    used = call.prints_used
    data = ctypes.string_at(ctypes.addressof(call) + Call.prints.offset, used)
    at, head, each = 0, ctypes.sizeof(PrintRecord), ctypes.sizeof(PrintedValue)
    while at + head <= used:
        record = PrintRecord.from_buffer_copy(data, at)
        start = at + head
        behind = start + record.text
        fits = record.text >= 0 and record.values >= 0 and record.text + record.values * each <= record.bytes
        if not fits or start + record.bytes > used:
            raise DamagedCall("a print is longer than its place")
        values = [PrintedValue.from_buffer_copy(data, behind + number * each) for number in range(record.values)]
        yield record, data[start:behind], [(one.begin, one.end, _number(one)) for one in values]
        at = start + record.bytes


def _number(one: PrintedValue) -> Array:
    if one.kind not in _KINDS or one.bits not in (8, 16, 32, 64):
        raise DamagedCall(f"a printed number is of kind {one.kind} and has {one.bits} bits")
    payload = np.array(one.payload, np.uint64)
    if chr(one.kind) == "d":
        value = payload.view(np.float64)
        with np.errstate(over="ignore"):
            narrow = value.astype(np.float32)
        return np.asarray(narrow if narrow == value or np.isnan(value) else value)
    kind = np.dtype(f"{chr(one.kind)}{one.bits // 8}")
    return np.asarray(payload.astype(kind) if kind.kind == "u" else payload.view(np.int64).astype(kind))


def _records(context: Context, line: _Line) -> Iterator[Print]:
    place = context.symbols.author_place([line.site]) if line.site else None
    file, number = (place.file, place.line) if place is not None else ("", 0)
    at = 0
    for begin, end, value in line.values:
        yield Print(_label(line.text[at:begin]), value, program=(line.core,), file=file, line=number)
        at = end
    rest = _label(line.text[at:])
    if not line.values or any(character.isalnum() for character in rest):
        yield Print(rest, np.empty(0), program=(line.core,), file=file, line=number)


def _label(text: bytes) -> str:
    """Return the text before a value, without what only separates it from the value before, as for JAX's prints."""
    return text.decode(errors="replace").strip().lstrip(",;").lstrip()
