"""What several kernels need: blocks of rows, and a row in all partitions."""

import nki.isa as nisa
import nki.language as nl


def row_blocks(rows):
    """Return first row and height of each block of rows that fits the partitions."""
    height = nl.tile_size.pmax
    return [(start, min(height, rows - start)) for start in range(0, rows, height)]


def in_all_partitions(row, height):
    """Return a row [1, columns] of HBM in ``height`` partitions of SBUF, float32."""
    columns = row.shape[1]
    ones = nl.ndarray((1, height), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=ones, value=1.0)
    product = nl.ndarray((height, columns), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=product, stationary=ones, moving=nl.load(row))
    held = nl.ndarray((height, columns), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=held, src=product)
    return held
