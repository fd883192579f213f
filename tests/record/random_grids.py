"""Random instructions on the tiles and blocks of grids."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from tests.record.random_programs import HBM, TILES, C, Instruction, Key, P, Touched, a_slice, like

TILE = (16, 6)  # of the grid `held`, whose tiles of the last column are partial


class GridInstructions:
    """The instructions on grids of a program of the modern dialect, which has these two."""

    random: Random
    bytes: dict[str, Any]

    def grid_kinds(self) -> list[Callable[[], Any]]:
        """Return what makes an instruction each."""
        return [
            self.tiles_in,
            self.tiles_out,
            self.between_tiles,
            self.blocks,
            self.tiles_of_a_block,
            self.rows_with_steps,
            self.tiles_in_psum,
        ]

    def tiles_of_a_row(self) -> tuple[Key, Key]:
        """Return neighbouring tiles of a row as coordinates and as slices of the elements."""
        row, first = self.random.randrange(P // TILE[0]), self.random.randrange(3)
        stop = self.random.randrange(first + 1, 4)
        elements = slice(row * TILE[0], (row + 1) * TILE[0]), slice(first * TILE[1], min(stop * TILE[1], C))
        return (row, slice(first, stop)), elements

    def tiles_in(self) -> Instruction:
        """A DMA into tiles that lie side by side, from the same tiles of a tensor."""
        src, (key, of) = self.random.choice((*TILES, *HBM)), self.tiles_of_a_row()

        def issue(t: dict[str, Any]) -> None:
            nisa.dma_copy(dst=t["held"][key].data, src=nl.tiles(t[src], tile_shape=TILE)[key].data)

        return Instruction(issue, Touched([self.bytes[src][of]], [self.bytes["held"][of]], tensor="held"))

    def tiles_out(self) -> Instruction:
        """The other way round."""
        dst, (key, to) = self.random.choice((*TILES, "scratch")), self.tiles_of_a_row()

        def issue(t: dict[str, Any]) -> None:
            nisa.dma_copy(dst=nl.tiles(t[dst], tile_shape=TILE)[key].data, src=t["held"][key].data)

        return Instruction(issue, Touched([self.bytes["held"][to]], [self.bytes[dst][to]], tensor=dst))

    def between_tiles(self) -> Instruction:
        """A copy from a whole tile to another one of the same grid, both in the same partitions."""
        (to_row, to), (of_row, of) = (divmod(self.random.randrange(4), 2) for _ in range(2))

        def part(row: int, column: int) -> Key:
            return slice(row * TILE[0], (row + 1) * TILE[0]), slice(column * TILE[1], (column + 1) * TILE[1])

        def issue(t: dict[str, Any]) -> None:
            held = t["held"]
            nisa.tensor_copy(dst=held[to_row, to].data, src=held[of_row][of].data)

        held = self.bytes["held"]
        return Instruction(issue, Touched([held[part(of_row, of)]], [held[part(to_row, to)]], tensor="held"))

    def blocks(self) -> Instruction:
        """A DMA between blocks of 2 x 2 tiles."""
        dst, src = self.random.choice((*TILES, "scratch")), self.random.choice((*TILES, *HBM))
        (row, column), (of_row, of_column) = (divmod(self.random.randrange(4), 2) for _ in range(2))

        def grid(tensor: Any) -> Any:
            return nl.blocks(tensor, tile_shape=(8, 4), block_shape=(2, 2))

        def issue(t: dict[str, Any]) -> None:
            nisa.dma_copy(dst=grid(t[dst])[row, column].data, src=grid(t[src])[of_row, of_column].data)

        to = slice(16 * row, 16 * row + 16), slice(8 * column, 8 * column + 8)
        of = slice(16 * of_row, 16 * of_row + 16), slice(8 * of_column, 8 * of_column + 8)
        return Instruction(issue, Touched([self.bytes[src][of]], [self.bytes[dst][to]], tensor=dst))

    def tiles_of_a_block(self) -> Instruction:
        """A DMA from one of the tiles that a block of a grid over HBM has."""
        dst, src = self.random.choice(TILES), self.random.choice(HBM)
        (row, column), (inner, across) = (divmod(self.random.randrange(4), 2) for _ in range(2))

        def issue(t: dict[str, Any]) -> None:
            block = nl.blocks(t[src], tile_shape=(8, 4), block_shape=(2, 2))[row, column]
            nisa.dma_copy(dst=t[dst][0:8, 0:4], src=nl.tiles(block)[inner, across].data)

        top, left = 16 * row + 8 * inner, 8 * column + 4 * across
        reads = [self.bytes[src][top : top + 8, left : left + 4]]
        return Instruction(issue, Touched(reads, [self.bytes[dst][0:8, 0:4]], tensor=dst))

    def tiles_in_psum(self) -> Instruction:
        """A copy into a block of PSUM, or out of it."""
        other, out = self.random.choice(TILES), self.random.choice((False, True))
        (row, column), of = divmod(self.random.randrange(4), 2), self.random.randrange(9)
        part = slice(0, 16), slice(of, of + 8)
        block = slice(16 * row, 16 * row + 16), slice(8 * column, 8 * column + 8)

        def issue(t: dict[str, Any]) -> None:
            held, plain = t["held in PSUM"][row, column].data, t[other][part]
            nisa.tensor_copy(dst=plain if out else held, src=held if out else plain)

        dst, src = self.bytes[other][part], self.bytes["held in PSUM"][block]
        if not out:
            dst, src = src, dst
        return Instruction(issue, Touched([src], [dst], tensor=other if out else "held in PSUM"))

    def rows_with_steps(self) -> Instruction:
        """A DMA between tiles of one row each, chosen by slices with steps."""
        dst, src = self.random.choice((*TILES, "scratch")), self.random.choice((*TILES, *HBM))
        to = (a_slice(self.random, P), slice(0, C))
        of = like(self.random, to, (P, C))[:1] + to[1:]

        def issue(t: dict[str, Any]) -> None:
            rows = (nl.tiles(t[name], tile_shape=(1, C)) for name in (dst, src))
            nisa.dma_copy(dst=next(rows)[to[0]].data, src=next(rows)[of[0]].data)

        return Instruction(issue, Touched([self.bytes[src][of]], [self.bytes[dst][to]], tensor=dst))
