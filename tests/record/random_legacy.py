"""Random programs of the legacy dialect: affine masks, indices on the device, values that are assigned."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np

from tests.record.random_programs import Instruction, Memory, Touched

P, C = 16, 12  # partitions and columns of every tensor
ROWS = (9, 3, 3, 14)
TILES = ("a", "b", "c")


class LegacyProgram:
    """A program of one instance: `kernel`, its `arguments`, and the `steps` that it takes."""

    def __init__(self, seed: int, length: int = 14) -> None:
        self.random = Random(seed)
        self.memory = Memory()
        take = self.memory.take
        self.bytes = {"x": take(P, C, 4, given=True), "rows": take(len(ROWS), 1, 4, given=True)}
        self.bytes |= {"out": take(P, C, 4), "index": take(len(ROWS), 1, 4)}
        self.bytes |= {name: take(P, C, 4) for name in TILES}
        self.program: list[Instruction] = []
        self._begin()
        for _ in range(length):
            self.program.append(self.random.choice(self._kinds())())
        self.steps = [each.touched for each in self.program]

    def arguments(self) -> tuple[Any, ...]:
        """Return what the kernel is called with."""
        return np.zeros((P, C), np.float32), np.array(ROWS, np.int32)[:, None]

    def kernel(self, x: Any, rows: Any) -> Any:
        """Issue the program."""
        tensors = {"x": x, "rows": rows, "out": nl.ndarray((P, C), dtype=x.dtype, buffer=nl.shared_hbm)}
        tensors |= {name: nl.ndarray((P, C), dtype=x.dtype, buffer=nl.sbuf) for name in TILES}
        for each in self.program:
            each.issue(tensors)
        return tensors["out"]

    def _begin(self) -> None:
        """Load the index."""

        def issue(t: dict[str, Any]) -> None:
            t["index"] = nl.load(t["rows"])

        self.program.append(Instruction(issue, Touched([self.bytes["rows"]], [self.bytes["index"]])))

    # --- instructions -----------------------------------------------------------------------------------------------

    def _kinds(self) -> list[Callable[[], Instruction]]:
        return [self.load, self.load, self.store, self.store, self.add, self.add, self.gather, self.scatter]

    def where(self, height: int = P) -> tuple[Any, Any, Any]:
        """Return rows and columns of an access, and the affine mask over them or None; the mask is not empty."""
        random = self.random
        width, step = random.randrange(1, C + 1), 1
        if random.random() < 0.3:
            width, step = random.randrange(1, C // 2 + 1), 2
        first = random.randrange(C - (width - 1) * step)
        rows, columns = np.arange(height), first + step * np.arange(width)
        p, f = np.arange(height)[:, None], np.arange(width)[None, :]
        kind, limit = random.choice(("none", "rows", "columns", "both", "slant", "band")), random.randrange(1, 8)
        masks = {
            "rows": p + 0 * f < limit,
            "columns": 0 * p + f < limit,
            "both": (p < limit) & (f < limit),
            "slant": p + f < limit,
            "band": (p - f >= 0) & (p - f < limit),
        }
        return rows, columns, (kind, limit, masks[kind]) if kind != "none" else None

    def symbolic(self, height: int, columns: Any, mask: Any) -> tuple[Any, Any, Any]:
        """Return the same in the dialect's own terms."""
        step = int(columns[1] - columns[0]) if len(columns) > 1 else 1
        p, f = nl.arange(height)[:, None], nl.arange(len(columns))[None, :]
        if mask is None:
            return p, int(columns[0]) + step * f, {}
        kind, limit, _ = mask
        found = {
            "rows": lambda: p < limit,
            "columns": lambda: f < limit,
            "both": lambda: (p < limit) & (f < limit),
            "slant": lambda: p + f < limit,
            "band": lambda: (p - f >= 0) & (p - f < limit),
        }[kind]()
        return p, int(columns[0]) + step * f, {"mask": found}

    def chosen(self, name: str, rows: Any, columns: Any, mask: Any) -> Any:
        """Return the bytes of a tensor at rows and columns, under a mask."""
        found = self.bytes[name][np.asarray(rows)[:, None], columns[None, :]]
        return found if mask is None else found[mask[2]]

    def load(self) -> Instruction:
        """A load, whose value is assigned to a part of a tile."""
        dst, src = self.random.choice(TILES), self.random.choice(("x", "out"))
        rows, columns, mask = self.where()

        def issue(t: dict[str, Any]) -> None:
            p, f, keywords = self.symbolic(P, columns, mask)
            t[dst][p, f] = nl.load(t[src][p, f], **keywords)

        reads, writes = (self.chosen(name, rows, columns, mask) for name in (src, dst))
        return Instruction(issue, Touched([reads], [writes], tensor=dst))

    def store(self) -> Instruction:
        """A store."""
        src = self.random.choice(TILES)
        rows, columns, mask = self.where()

        def issue(t: dict[str, Any]) -> None:
            p, f, keywords = self.symbolic(P, columns, mask)
            nl.store(t["out"][p, f], t[src][p, f], **keywords)

        reads, writes = (self.chosen(name, rows, columns, mask) for name in (src, "out"))
        return Instruction(issue, Touched([reads], [writes], tensor="out"))

    def add(self) -> Instruction:
        """A sum of tiles, assigned to a part of a third one or of one of them."""
        dst, first, second = (self.random.choice(TILES) for _ in range(3))
        rows, columns, mask = self.where()

        def issue(t: dict[str, Any]) -> None:
            p, f, keywords = self.symbolic(P, columns, mask)
            t[dst][p, f] = nisa.tensor_tensor(t[first][p, f], t[second][p, f], op=np.add, **keywords)

        reads = [self.chosen(name, rows, columns, mask) for name in (first, second)]
        return Instruction(issue, Touched(reads, [self.chosen(dst, rows, columns, mask)], tensor=dst))

    def gather(self) -> Instruction:
        """Rows that an index names."""
        dst, (rows, columns, mask) = self.random.choice(TILES), self.where(len(ROWS))
        mask = None

        def issue(t: dict[str, Any]) -> None:
            p, f, _ = self.symbolic(len(ROWS), columns, None)
            t[dst][p, f] = nl.load(t["x"][t["index"][p, 0], f])

        reads = [self.chosen("x", ROWS, columns, mask), self.bytes["index"]]
        return Instruction(issue, Touched(reads, [self.chosen(dst, rows, columns, mask)], tensor=dst))

    def scatter(self) -> Instruction:
        """Rows that an index names, one of them twice."""
        src, (rows, columns, mask) = self.random.choice(TILES), self.where(len(ROWS))
        mask = None

        def issue(t: dict[str, Any]) -> None:
            p, f, _ = self.symbolic(len(ROWS), columns, None)
            nl.store(t["out"][t["index"][p, 0], f], t[src][p, f])

        reads = [self.chosen(src, rows, columns, mask), self.bytes["index"]]
        return Instruction(issue, Touched(reads, [self.chosen("out", ROWS, columns, mask)], tensor="out"))
