"""Random instructions whose form or result is another one since NKI 0.7."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from tests.record.random_programs import TILES, C, Instruction, P, Touched, a_slice, length_of

CORE = 16  # partitions of a problem of topk


class ChangedInstructions:
    """The changed instructions of a program of the modern dialect, which has these two."""

    random: Random
    bytes: dict[str, Any]
    sums = 0.7  # how many of the fused instructions reduce
    engines: tuple[dict[str, Any], ...] = ({"engine": nisa.engine.scalar}, {"engine": nisa.engine.gpsimd}, {})

    def changed_kinds(self) -> list[Callable[[], Any]]:
        """Return what makes an instruction each."""
        return [
            self.fused,
            self.activated,
            self.activated_twice,
            self.reduced_partitions,
            self.greatest,
            self.greatest_of_cores,
        ]

    def _columns(self, length: int | None = None) -> tuple[slice, slice]:
        return slice(0, P), a_slice(self.random, C, length=length)

    def fused(self) -> Instruction:
        """Two operators, and a column that takes the sum of their results."""
        dst, first, second = (self.random.choice(TILES[:2]) for _ in range(3))
        to, total = self._columns(), self.random.choice(TILES[2:])
        of, other = (self._columns(length_of(to[1])) for _ in range(2))
        column, reduces = (slice(0, P), slice(3, 4)), self.random.random() < self.sums

        def issue(t: dict[str, Any]) -> None:
            result = {"reduce_res": t[total][column]} if reduces else {}
            nisa.scalar_tensor_tensor(t[dst][to], t[first][of], nl.multiply, 2.0, nl.add, t[second][other], **result)

        written = [self.bytes[dst][to], *([self.bytes[total][column]] if reduces else [])]
        return Instruction(issue, Touched([self.bytes[first][of], self.bytes[second][other]], written, tensor=dst))

    def activated(self) -> Instruction:
        """An activation on one of the two engines that have it."""
        dst, src, to = self.random.choice(TILES), self.random.choice(TILES), self._columns()
        of, engine = self._columns(length_of(to[1])), self.random.choice(self.engines)

        def issue(t: dict[str, Any]) -> None:
            nisa.activation(t[dst][to], nl.relu, t[src][of], **engine)

        return Instruction(issue, Touched([self.bytes[src][of]], [self.bytes[dst][to]], tensor=dst))

    def activated_twice(self) -> Instruction:
        """The same of activate2, whose first operand may be a column."""
        dst, src, to = self.random.choice(TILES), self.random.choice(TILES), self._columns()
        of, engine = self._columns(length_of(to[1])), self.random.choice(self.engines)
        factor, column = self.random.choice(TILES), (slice(0, P), slice(5, 6))

        def issue(t: dict[str, Any]) -> None:
            operands = t[factor][column], 1.0, nl.multiply, nl.add
            nisa.activate2(t[dst][to], nl.relu, t[src][of], *operands, **engine)

        reads = [self.bytes[src][of], self.bytes[factor][column]]
        return Instruction(issue, Touched(reads, [self.bytes[dst][to]], tensor=dst))

    def reduced_partitions(self) -> Instruction:
        """A row that takes the mean of all partitions, or their bits combined exclusively."""
        dst, src, to = self.random.choice(TILES), self.random.choice(TILES), self._columns()
        of, by_bits = self._columns(length_of(to[1])), self.random.choice((False, True))
        row = slice(0, 1), to[1]

        def issue(t: dict[str, Any]) -> None:
            if by_bits:
                seen = t[dst].view(nl.int32)[row], nl.bitwise_xor, t[src].view(nl.int32)[of]
            else:
                seen = t[dst][row], nl.mean, t[src][of]
            nisa.tensor_partition_reduce(*seen)

        return Instruction(issue, Touched([self.bytes[src][of]], [self.bytes[dst][row]], tensor=dst))

    def greatest(self) -> Instruction:
        """The 8 largest of 5 dimensions into 3."""
        dst, src, first = self.random.choice(TILES), self.random.choice(TILES), self.random.randrange(9)

        def issue(t: dict[str, Any]) -> None:
            result = t[dst][:, first : first + 8].reshape((P, 2, 4))
            nisa.max8(result, t[src].reshape((P, 2, 2, 2, 2)))

        written = [self.bytes[dst][:, first : first + 8]]
        return Instruction(issue, Touched([self.bytes[src]], written, tensor=dst))

    def greatest_of_cores(self) -> Instruction:
        """The K largest of the snakes of 16 partitions: whole positions of values and places."""
        values, places, src = "a", self.random.choice(TILES[2:]), "b"
        n = self.random.randrange(CORE, 2 * C * CORE)
        k = self.random.randrange(1, CORE + 1)

        def issue(t: dict[str, Any]) -> None:
            tensors = (t[values].view(nl.bfloat16)[:, 0:k], t[places].view(nl.uint32)[:, 0:k], t[src].view(nl.bfloat16))
            nisa.topk(*tensors, n, sorted=False)

        halves = {name: self.bytes[name].reshape(P, 2 * C, 2) for name in (values, src)}
        partition, place = np.indices((P, 2 * C))
        snake = place * CORE + partition % CORE < n
        filled = math.ceil(k / CORE)
        written = [halves[values][:, :filled], self.bytes[places][:, :filled]]
        return Instruction(issue, Touched([halves[src][snake]], written, tensor=values))
