"""The product of two matrices, in the legacy NKI dialect."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def matmul(left_t, right):
    """``left_t.T @ right`` of matrices [k, m] and [k, n] of any sizes, as float32 [m, n].

    The Tensor Engine contracts over partitions, so the left matrix comes transposed. Where a tile reaches beyond a
    matrix it holds zeros, which add nothing.
    """
    depth, height = left_t.shape
    width = right.shape[1]
    assert right.shape[0] == depth, "both matrices must have one contraction size"
    tile_k = nl.tile_size.pmax
    tile_m = nl.tile_size.gemm_stationary_fmax
    tile_n = nl.tile_size.gemm_moving_fmax
    product = nl.ndarray((height, width), dtype=nl.float32, buffer=nl.shared_hbm)

    k_row = nl.arange(tile_k)[:, None]
    m_row, m_column = nl.arange(tile_m)[:, None], nl.arange(tile_m)[None, :]
    n_column = nl.arange(tile_n)[None, :]
    for m in nl.affine_range((height + tile_m - 1) // tile_m):
        for n in nl.affine_range((width + tile_n - 1) // tile_n):
            total = nl.zeros((nl.par_dim(tile_m), tile_n), dtype=nl.float32, buffer=nl.psum)
            at_row, at_left, at_right = m * tile_m + m_row, m * tile_m + m_column, n * tile_n + n_column
            for k in nl.affine_range((depth + tile_k - 1) // tile_k):
                at_k = k * tile_k + k_row
                stationary = nl.zeros((nl.par_dim(tile_k), tile_m), dtype=left_t.dtype, buffer=nl.sbuf)
                moving = nl.zeros((nl.par_dim(tile_k), tile_n), dtype=right.dtype, buffer=nl.sbuf)
                stationary[k_row, m_column] = nl.load(left_t[at_k, at_left], mask=(at_k < depth) & (at_left < height))
                moving[k_row, n_column] = nl.load(right[at_k, at_right], mask=(at_k < depth) & (at_right < width))
                total[m_row, n_column] += nisa.nc_matmul(stationary, moving)
            inside = (at_row < height) & (at_right < width)
            nl.store(product[at_row, at_right], total[m_row, n_column], mask=inside)
    return product
