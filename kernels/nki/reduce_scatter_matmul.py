"""A matrix product whose contraction is spread over ranks; each rank gets the sum of a part of the rows; modern NKI."""

import nki
import nki.collectives as ncc
import nki.isa as nisa
import nki.language as nl


def _tiles(size, length):
    """(start, length) of each tile of a dimension; the last one may be shorter."""
    return [(start, min(length, size - start)) for start in range(0, size, length)]


@nki.jit
def reduce_scatter_matmul(left_transposed, right, ranks):
    """Rows ``[rank * M / ranks, ...)`` of the sum over ranks of ``left_transposed.T @ right``, float32 [M / ranks, N].

    left_transposed: [K, M], right: [K, N], the rank's own parts of the contraction; ``ranks`` divides M.
    """
    contraction, rows = left_transposed.shape
    columns = right.shape[1]
    assert rows % ranks == 0, "the ranks share the rows evenly"
    partial = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    result = nl.ndarray((rows // ranks, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    for m, height in _tiles(rows, nl.tile_size.gemm_stationary_fmax):
        for n, width in _tiles(columns, nl.tile_size.psum_bank_fmax):
            total = nl.ndarray((height, width), dtype=nl.float32, buffer=nl.psum)
            for k, size in _tiles(contraction, nl.tile_size.pmax):
                nisa.nc_matmul(
                    dst=total,
                    stationary=nl.load(left_transposed[k : k + size, m : m + height]),
                    moving=nl.load(right[k : k + size, n : n + width]),
                )
            nisa.dma_copy(dst=partial[m : m + height, n : n + width], src=nl.copy(total))
    ncc.reduce_scatter([partial], [result], ncc.ReplicaGroup([list(range(ranks))]), 0, nl.add)
    return result
