"""The sums of a matrix along either axis, in the legacy NKI dialect."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl

TILE_COLUMNS = 2048


@nki.jit
def row_sums(x):
    """The sum of each row of a matrix [rows, columns] of any sizes, as float32 [rows, 1].

    A row lies along the free dimension: the Vector Engine adds up a tile's columns, and the tiles' sums are added.
    """
    rows, columns = x.shape
    pmax = nl.tile_size.pmax
    sums = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.shared_hbm)

    row = nl.arange(pmax)[:, None]
    column = nl.arange(TILE_COLUMNS)[None, :]
    one = nl.arange(1)[None, :]
    for m in nl.affine_range((rows + pmax - 1) // pmax):
        at_row = m * pmax + row
        total = nl.zeros((nl.par_dim(pmax), 1), dtype=nl.float32, buffer=nl.sbuf)
        for n in nl.sequential_range((columns + TILE_COLUMNS - 1) // TILE_COLUMNS):
            at_column = n * TILE_COLUMNS + column
            inside = (at_row < rows) & (at_column < columns)
            tile = nl.load(x[at_row, at_column], mask=inside)
            total[row, one] += nl.sum(tile, axis=1, dtype=nl.float32, keepdims=True, mask=inside)
        nl.store(sums[at_row, one], total, mask=at_row < rows)
    return sums


@nki.jit
def column_sums(x):
    """The sum of each column of a matrix [rows, columns] of any sizes, as float32 [1, columns].

    A column lies across the partitions, which only the Tensor Engine adds up: a matmul with ones, accumulated in PSUM.
    """
    rows, columns = x.shape
    pmax, width = nl.tile_size.pmax, nl.tile_size.gemm_moving_fmax
    sums = nl.ndarray((1, columns), dtype=nl.float32, buffer=nl.shared_hbm)

    ones = nl.ones((nl.par_dim(pmax), 1), dtype=x.dtype, buffer=nl.sbuf)
    row = nl.arange(pmax)[:, None]
    column = nl.arange(width)[None, :]
    one = nl.arange(1)[:, None]
    for n in nl.affine_range((columns + width - 1) // width):
        at_column = n * width + column
        total = nl.zeros((nl.par_dim(1), width), dtype=nl.float32, buffer=nl.psum)
        for m in nl.affine_range((rows + pmax - 1) // pmax):
            tile = nl.zeros((nl.par_dim(pmax), width), dtype=x.dtype, buffer=nl.sbuf)
            inside = (m * pmax + row < rows) & (at_column < columns)
            tile[row, column] = nl.load(x[m * pmax + row, at_column], mask=inside)
            total[one, column] += nisa.nc_matmul(ones, tile)
        nl.store(sums[one, at_column], total[one, column], mask=at_column < columns)
    return sums
