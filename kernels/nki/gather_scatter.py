"""Rows of a table chosen by indices: reading them (an embedding) and adding to them (its gradient); modern NKI."""

import nki
import nki.isa as nisa
import nki.language as nl

COLUMNS = 512  # of a tile: one PSUM bank of float32
MOST_ROWS = 2**24  # up to here float32, in which indices are compared, holds every integer


def _chosen(table, index, columns):
    """The rows of ``table`` [rows, width] that ``index`` [count, 1] in SBUF names, one a partition; some columns."""
    start, width = columns
    return table.ap(
        pattern=[[table.shape[1], index.shape[0]], [1, width]], offset=start, vector_offset=index, indirect_dim=0
    )


def _rows_of(table, index, columns):
    """Those rows in SBUF; zeros for an index that is out of range."""
    tile = nl.zeros((index.shape[0], columns[1]), dtype=table.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=_chosen(table, index, columns), oob_mode=nisa.oob_mode.skip)
    return tile


def _column_tiles(width):
    """(start, width) of each tile of columns; the last one may be narrower."""
    return [(start, min(COLUMNS, width - start)) for start in range(0, width, COLUMNS)]


@nki.jit
def gather_rows(table, indices):
    """``table[indices]``, with zeros where an index is out of range.

    table: [rows, width] of any dtype; indices: int32 or uint32 [count]. Returns [count, width] of table's dtype.
    """
    (count,), width = indices.shape, table.shape[1]
    pmax = nl.tile_size.pmax
    result = nl.ndarray((count, width), dtype=table.dtype, buffer=nl.shared_hbm)
    for start in range(0, count, pmax):
        height = min(pmax, count - start)
        index = nl.load(indices[start : start + height])
        for columns in _column_tiles(width):
            nisa.dma_copy(
                dst=result[start : start + height, nl.ds(columns[0], columns[1])], src=_rows_of(table, index, columns)
            )
    return result


def _equalities(indices, start, height):
    """A float32 matrix of ones where two indices of a tile are equal: it is its own transpose."""
    # Every partition reads the same row of indices: a stride of 0 across partitions.
    row = nl.load(indices.ap(pattern=[[0, height], [1, height]], offset=start), dtype=nl.float32)
    column = nl.load(indices[start : start + height], dtype=nl.float32)
    equal = nl.ndarray((height, height), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=equal, data=row, op0=nl.equal, operand0=column)
    return equal


@nki.jit
def scatter_add(table, indices, updates):
    """``table`` with row ``i`` of ``updates`` added to its row ``indices[i]``; repeated indices add up.

    table: float32 [rows, width], up to 2**24 rows; indices: int32 or uint32 [count], those out of range are left out;
    updates: float32 [count, width], finite. Returns float32 [rows, width].

    Within a tile of 128 updates a product with the matrix of equal indices gives every update the sum of all that share
    its row; what several partitions then write to that row is the same. The tiles come one after the other.
    """
    (count,), width = indices.shape, table.shape[1]
    assert updates.shape == (count, width), "updates must have one row for each index, as wide as the table's"
    assert table.shape[0] <= MOST_ROWS, f"a table may have up to {MOST_ROWS} rows"
    pmax = nl.tile_size.pmax
    result = nl.ndarray(table.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=result, src=table)
    for start in range(0, count, pmax):
        height = min(pmax, count - start)
        index = nl.load(indices[start : start + height])
        equal = _equalities(indices, start, height)
        for columns in _column_tiles(width):
            added = nl.ndarray((height, columns[1]), dtype=nl.float32, buffer=nl.psum)
            moving = nl.load(updates[start : start + height, nl.ds(columns[0], columns[1])])
            nisa.nc_matmul(dst=added, stationary=equal, moving=moving, is_stationary_onezero=True)
            total = _rows_of(result, index, columns)
            nisa.tensor_tensor(dst=total, data1=total, data2=added, op=nl.add)
            nisa.dma_copy(dst=_chosen(result, index, columns), src=total, oob_mode=nisa.oob_mode.skip)
    return result
