"""A linear layer with an activation, whose tiling is a class with a generator; NKI 0.7 and later.

A kernel of NKI 0.7 is traced: Python runs it, so that classes, inheritance and generators of its own may say which
tile comes next. What they do happens once, while the kernel is traced, and costs the chip nothing.
"""

import nki
import nki.isa as nisa
import nki.language as nl


class Tiling:
    """A matrix by tiles, row after row, each from the left."""

    def __init__(self, rows, columns, *, tile_rows, tile_columns):
        self.rows = [(first, min(tile_rows, rows - first)) for first in range(0, rows, tile_rows)]
        self.columns = [(first, min(tile_columns, columns - first)) for first in range(0, columns, tile_columns)]

    def order(self):
        """Yield the number of each tile, down and across."""
        for m in range(len(self.rows)):
            yield from ((m, n) for n in range(len(self.columns)))

    def tiles(self):
        """Yield first row, first column, height and width of each tile."""
        for m, n in self.order():
            (top, height), (left, width) = self.rows[m], self.columns[n]
            yield top, left, height, width


class Serpentine(Tiling):
    """The same tiles, but every other row from the right: a tile has its row or its columns in common with the last."""

    def order(self):
        for m, n in super().order():
            yield m, n if m % 2 == 0 else len(self.columns) - 1 - n


class Strips:
    """The strips [K, size] of an operand in SBUF, of which the latest is kept: a list of tiles along K."""

    def __init__(self, operand):
        self.operand, self.latest = operand, {}

    def at(self, first, size):
        """Return the tiles of columns ``first`` to ``first + size``, loaded unless they are the latest."""
        if (first, size) not in self.latest:
            self.latest = {(first, size): list(self._loaded(first, size))}
        return self.latest[first, size]

    def _loaded(self, first, size):
        contraction = self.operand.shape[0]
        for k in range(0, contraction, nl.tile_size.pmax):
            yield nl.load(self.operand[k : min(k + nl.tile_size.pmax, contraction), first : first + size])


@nki.jit
def linear(inputs_transposed, weights, bias, *, tiling=Serpentine, activation=nl.relu):
    """``activation(inputs @ weights + bias)``: float32 [K, M], [K, N] and [1, N] give float32 [M, N]; any sizes.

    ``tiling`` is the class that orders the tiles of the result.
    """
    contraction, rows = inputs_transposed.shape
    columns = weights.shape[1]
    assert weights.shape[0] == contraction, "inputs and weights must have one contraction size"
    assert tuple(bias.shape) == (1, columns), "the bias must be [1, N]"
    result = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    ones = nl.ndarray((1, nl.tile_size.gemm_stationary_fmax), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=ones, value=1.0)
    left, right, biases = Strips(inputs_transposed), Strips(weights), Strips(bias)

    grid = tiling(rows, columns, tile_rows=nl.tile_size.gemm_stationary_fmax, tile_columns=nl.tile_size.psum_bank_fmax)
    for top, first, height, width in grid.tiles():
        total = nl.ndarray((height, width), dtype=nl.float32, buffer=nl.psum)
        for stationary, moving in zip(left.at(top, height), right.at(first, width), strict=True):
            nisa.nc_matmul(dst=total, stationary=stationary, moving=moving)
        # A row of ones times the bias adds it to every row.
        nisa.nc_matmul(dst=total, stationary=ones[:, :height], moving=biases.at(first, width)[0])
        tile = nl.ndarray((height, width), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=tile, op=activation, data=total)
        nisa.dma_copy(dst=result[top : top + height, first : first + width], src=tile)
    return result
