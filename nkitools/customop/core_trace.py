"""The trace of an operator's call, for the page of its run: bursts, TCM blocks and accessors of each core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.customop.abi import MAX_MOVES, OUTPUT, Call, Move
from nkitools.customop.arguments import numpy_dtype
from nkitools.customop.errors import DamagedCall
from nkitools.customop.event_context import Context
from nkitools.record.trace import Event, Touch, Trace, TracedBuffer
from nkitools.record.watch.watching import watched_bytes

MALLOC, FREE, TO_TCM, TO_TENSOR, ELEMENTS_READ, ELEMENTS_WRITTEN, STREAM_READ, STREAM_WRITTEN, STREAM_ENDED = range(
    1, 10
)
_NAMES = {
    MALLOC: ("tcm_malloc", "tcm"),
    FREE: ("tcm_free", "tcm"),
    TO_TCM: ("tensor_to_tcm", "read"),
    TO_TENSOR: ("tcm_to_tensor", "write"),
    ELEMENTS_READ: ("accessor (read)", "element"),
    ELEMENTS_WRITTEN: ("accessor (write)", "element"),
    STREAM_READ: ("read stream", "stream"),
    STREAM_WRITTEN: ("write stream", "stream"),
    STREAM_ENDED: ("stream closed", "stream"),
}
_POOL = 16384


class CoreTrace:
    """Makes the trace of a call; ``arrays``: its arguments by their numbers, ``output``: what it left, if it ended."""

    def __init__(
        self, call: Call, context: Context, arrays: Mapping[int, tuple[str, Array]], output: Array | None
    ) -> None:
        used = int(call.moves_used)
        self._moves = [call.moves[at] for at in range(min(used, MAX_MOVES))]
        self._context = context
        self._arrays = dict(arrays)
        self._call, self._output = call, output
        self._trace = Trace(
            "cores",
            context.operator,
            context.home.file,
            context.home.line,
            left_out=max(0, used - MAX_MOVES),
            budget=watched_bytes(),
        )
        self._numbers: dict[Any, int] = {}  # of buffers

    def made(self) -> Trace:
        """Return the trace."""
        trace = self._trace
        for number, (name, array) in self._arrays.items():
            self._tensor(number, name, array.dtype.name, array.shape, "input")
            trace.give(self._numbers[number], np.asarray(array).reshape(-1))
        if self._call.stage >= 2:
            out = self._call.out
            self._tensor(OUTPUT, "output", np.dtype(numpy_dtype(out.dtype)).name, out.shape(), "output")
        self._context.symbols.warm(move.site for move in self._moves)
        values = self._values()
        for at, move in enumerate(self._moves):
            trace.add(self._event(move, values.get(at)))
        return trace

    def _tensor(self, number: int, name: str, dtype: str, shape: tuple[int, ...], kind: str) -> None:
        size = int(np.prod(shape, dtype=np.int64))
        self._numbers[number] = len(self._trace.buffers)
        self._trace.buffers.append(TracedBuffer(name, kind, "HBM", dtype, (size,), tuple(shape)))

    def _block(self, move: Move) -> int:
        """Return the buffer of a TCM block, of bytes."""
        key = ("tcm", move.core, move.block)
        if key not in self._numbers:
            if move.kind != MALLOC or not 0 < move.count <= _POOL:
                raise DamagedCall("a move is in a block that no tcm_malloc has made")
            self._numbers[key] = len(self._trace.buffers)
            name = f"tcm {move.block}"
            self._trace.buffers.append(TracedBuffer(name, "block", "TCM", "uint8", (int(move.count),), unit=move.core))
        return self._numbers[key]

    def _event(self, move: Move, value: Array | None) -> Event:
        if move.kind not in _NAMES or not 0 <= move.core < 8:
            raise DamagedCall(f"a move of kind {move.kind} on core {move.core}")
        name, engine = _NAMES[move.kind]
        place = self._context.symbols.author_place([move.site]) or self._context.home
        reads: tuple[Touch, ...] = ()
        writes: tuple[Touch, ...] = ()
        note = ""
        if move.kind in (MALLOC, FREE) and move.block >= 0:
            touch = self._part(self._block(move), 0, 0)
            note = f"{self._trace.buffers[touch.buffer].name}: {move.count} bytes"
        elif move.kind in (TO_TCM, TO_TENSOR):
            reads, writes = self._burst(move)
        else:
            tensor = self._number(move)
            note = "a tensor of its own" if tensor is None else self._trace.buffers[tensor].name
            note += f", {move.count} elements" if move.kind == STREAM_ENDED else ""
        return Event(name, engine, -1, 0, move.core, place.file, place.line, reads, writes, value, note=note)

    def _number(self, move: Move) -> int | None:
        """Return the buffer of a tensor; None of one that the kernel made and did not return."""
        return self._numbers.get(OUTPUT if self._is_output(move) else move.tensor)

    def _is_output(self, move: Move) -> bool:
        return bool(move.tensor == OUTPUT or (move.serial and move.serial == self._call.output_serial))

    def _burst(self, move: Move) -> tuple[tuple[Touch, ...], tuple[Touch, ...]]:
        tensor, itemsize = self._number(move), int(move.item)
        if itemsize not in (1, 2, 4):
            raise DamagedCall(f"a move of elements of {itemsize} bytes")
        there = () if tensor is None else (self._part(tensor, move.first, move.count),)
        tcm: tuple[Touch, ...] = ()
        if move.block >= 0:
            tcm = (self._part(self._block(move), move.byte, move.count * itemsize),)
        return (there, tcm) if move.kind == TO_TCM else (tcm, there)

    def _part(self, buffer: int, first: int, count: int) -> Touch:
        size = self._trace.buffers[buffer].shape[0]
        if not (first >= 0 and count >= 0 and first + count <= size):
            raise DamagedCall(f"a move of {count} elements at {first} of {size}")
        return Touch(buffer, (int(first),), (int(first + count),), (1,))

    def _values(self) -> dict[int, Array]:
        """Return of bursts into the output what they wrote: of each, unless a later one wrote there too."""
        writers = {move.kind for move in self._moves if self._is_output(move)}
        if self._output is None or self._call.by_reference or {ELEMENTS_WRITTEN, STREAM_WRITTEN} & writers:
            return {}
        flat, later = self._output.reshape(-1), np.zeros(self._output.size, bool)
        found: dict[int, Array] = {}
        for at in range(len(self._moves) - 1, -1, -1):
            move = self._moves[at]
            if move.kind != TO_TENSOR or not self._is_output(move):
                continue
            part = slice(int(move.first), int(move.first + move.count))
            if not later[part].any():
                found[at] = flat[part]
            later[part] = True
        return found
