"""Random instructions with scalars: their bounds, their addresses, and what they load and store."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from tests.record.random_programs import HBM, TILES, C, Instruction, P, Touched


class ScalarInstructions:
    """The instructions with scalars of a program of the modern dialect, which has these."""

    random: Random
    bytes: dict[str, Any]
    value: int  # of the register and of the scalars
    loaded: Touched  # the latest load of the register

    def scalar_kinds(self) -> list[Callable[[], Any]]:
        """Return what makes an instruction each."""
        return [
            self.load_scalar,
            self.load_long_scalar,
            self.store_scalar,
            self.at_computed,
            self.rows_by_offset,
            self.columns_by_offset,
            self.bounded_loop,
        ]

    def load_scalar(self) -> Instruction:
        """A scalar of its own is what a tensor holds."""
        self.computed = Touched([self.bytes["scalar"]], tensor="computed")

        def issue(t: dict[str, Any]) -> None:
            t["computed"] = nisa.scalar_load(t["scalar"])

        return Instruction(issue, self.computed)

    def load_long_scalar(self) -> Instruction:
        """A scalar of 64 bits, from HBM."""
        self.long = Touched([self.bytes["long"]], tensor="long scalar")

        def issue(t: dict[str, Any]) -> None:
            t["long scalar"] = nisa.scalar_load(t["long"])

        return Instruction(issue, self.long)

    def store_scalar(self) -> Instruction:
        """A tensor gets a scalar, or a sum that is as large."""
        more = self.random.choice((0, 7))
        touched = Touched([], [self.bytes["scalar"]], others=[self.computed], tensor="scalar")
        return Instruction(lambda t: nisa.scalar_store(t["scalar"], more + t["computed"] - more), touched)

    def at_computed(self) -> Instruction:
        """A copy of the columns that begin where a scalar says, or a sum of it and a register."""
        dst, src, mixed = self.random.choice(TILES), self.random.choice(TILES), self.random.choice((False, True))
        width = self.random.randrange(1, 9)
        to, first = (slice(0, P), slice(0, width)), (2 if mixed else 1) * self.value

        def issue(t: dict[str, Any]) -> None:
            start = t["computed"] + t["register"] if mixed else t["computed"]
            nisa.tensor_copy(dst=t[dst][to], src=t[src][:, nl.ds(start, width)])

        others = [self.computed, self.loaded] if mixed else [self.computed]
        reads = [self.bytes[src][:, first : first + width]]
        return Instruction(issue, Touched(reads, [self.bytes[dst][to]], others=others, tensor=dst))

    def rows_by_offset(self) -> Instruction:
        """A DMA from rows of HBM that a ``scalar_offset`` moves, of 32 or of 64 bits, or a product of it."""
        dst, src, is_long = self.random.choice(TILES), self.random.choice(HBM), self.random.choice((False, True))
        count, factor = self.random.randrange(1, 9), self.random.choice((1, 3))
        first = self.value * factor + self.random.randrange(4)
        start = first - self.value * factor
        name = "long scalar" if is_long else "computed"

        def issue(t: dict[str, Any]) -> None:
            rows = t[src].ap([[C, count], [1, C]], offset=start * C, scalar_offset=t[name] * factor, indirect_dim=0)
            nisa.dma_copy(dst=t[dst][0:count], src=rows)

        reads, written = [self.bytes[src][first : first + count]], [self.bytes[dst][0:count]]
        others = [self.long if is_long else self.computed]
        return Instruction(issue, Touched(reads, written, others=others, tensor=dst))

    def columns_by_offset(self) -> Instruction:
        """A copy from columns of SBUF that a ``scalar_offset`` moves."""
        dst, src, width = self.random.choice(TILES), self.random.choice(("a", "b")), self.random.randrange(1, 9)

        def issue(t: dict[str, Any]) -> None:
            columns = t[src].ap([[C, P], [1, width]], scalar_offset=t["computed"], indirect_dim=1)
            nisa.tensor_copy(dst=t[dst][:, 0:width], src=columns)

        reads = [self.bytes[src][:, self.value : self.value + width]]
        return Instruction(issue, Touched(reads, [self.bytes[dst][:, 0:width]], others=[self.computed], tensor=dst))

    def bounded_loop(self) -> list[Instruction]:
        """A loop between scalars, numbers and the register, whose turns copy the column of their counter."""
        dst, src, more = self.random.choice(TILES), self.random.choice(TILES), self.random.randrange(1, 4)
        step, ends = self.random.choice((1, 2)), self.random.choice(("scalars", "a number", "a register"))
        others = [self.computed] if ends != "a register" else [self.computed, self.loaded]
        counters = range(0 if ends == "a number" else self.value, self.value + more, step)

        def issue(t: dict[str, Any]) -> None:
            def body(i: Any) -> None:
                nisa.tensor_copy(dst=t[dst][:, nl.ds(i, 1)], src=t[src][:, nl.ds(i + 2, 1)])

            lower = {"scalars": t["computed"], "a number": 0, "a register": t["register"]}[ends]
            nl.fori_loop(lower, t["computed"] + more, body, step=step)

        made = []
        for turn in counters:
            reads, written = [self.bytes[src][:, turn + 2 : turn + 3]], [self.bytes[dst][:, turn : turn + 1]]
            made.append(Instruction(lambda t: None, Touched(reads, written, others=others, tensor=dst)))
        made[0].issue = issue  # all turns
        return made
