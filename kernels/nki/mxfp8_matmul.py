"""Tiled matrix multiplication in MXFP8 and MXFP4 on NeuronCore-v4, quantised on the device or the host; modern NKI."""

import nki
import nki.isa as nisa
import nki.language as nl

QUAD = 4  # elements of the contraction that one packed element holds
QUADRANT = 32  # partitions, of which quantize_mx and nc_matmul_mx take whole ones


def _tiles(total, size):
    """(start, length) of tiles of up to ``size``."""
    return [(start, min(size, total - start)) for start in range(0, total, size)]


def _quantized(matrix, rows, columns, dtype):
    """A part of a matrix [K, F] in HBM as packed elements and scales in SBUF, both [rows / 4, columns].

    Rows a quarter of the part's height apart are packed together.
    """
    (row, height), (column, width) = rows, columns
    partitions = height // QUAD
    part = matrix[row : row + height, column : column + width].reshape_dim(0, (QUAD, partitions))
    loaded = nl.ndarray((partitions, QUAD, width), dtype=matrix.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=loaded, src=part.permute((1, 0, 2)))
    interleaved = nl.ndarray((partitions, width, QUAD), dtype=matrix.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=interleaved, src=loaded.permute((0, 2, 1)))
    packed = nl.ndarray((partitions, width), dtype=dtype, buffer=nl.sbuf)
    scales = nl.ndarray((partitions, width), dtype=nl.float8_e8m0fnu, buffer=nl.sbuf)
    nisa.quantize_mx(dst=packed, src=interleaved, dst_scale=scales)
    return packed, scales


def _sum_of_products(tiles, right, height, width):
    """The products of quantised parts of the contraction, added up in PSUM: float32 [height, width]."""
    total = nl.ndarray((height, width), dtype=nl.float32, buffer=nl.psum)
    for (stationary, stationary_scale), (moving, moving_scale) in zip(tiles, right):
        nisa.nc_matmul_mx(
            dst=total,
            stationary=stationary,
            moving=moving,
            stationary_scale=stationary_scale,
            moving_scale=moving_scale,
        )
    return total


@nki.jit
def mxfp8_matmul(lhs_transposed, rhs, dtype=nl.float8_e4m3fn_x4):
    """``lhs_transposed.T @ rhs`` of bfloat16 or float16 [K, M] and [K, N] as float32 [M, N], multiplied in MXFP8.

    K: a multiple of 128, which the four packed elements of 32 partitions contract; M: even; N: any. The quantised left
    operand must fit into SBUF: K * M / 102 bytes of each partition. Launched as ``mxfp8_matmul[2]``, each core computes
    half of the columns.
    """
    contraction, rows = lhs_transposed.shape
    columns = rhs.shape[1]
    assert rhs.shape[0] == contraction, "both operands must have one contraction size"
    assert contraction % (QUAD * QUADRANT) == 0, "the contraction size must be a multiple of 128"
    assert rows % 2 == 0, "the number of rows of the result must be even"
    result = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.shared_hbm)

    parts = _tiles(contraction, QUAD * nl.tile_size.pmax)
    heights = _tiles(rows, nl.tile_size.gemm_stationary_fmax)
    left = [[_quantized(lhs_transposed, part, height, dtype) for part in parts] for height in heights]

    share = -(-columns // nl.num_programs(0))
    first = share * nl.program_id(0)
    for start, width in _tiles(min(share, columns - first), nl.tile_size.psum_bank_fmax):
        column = first + start
        right = [_quantized(rhs, part, (column, width), dtype) for part in parts]
        for (row, height), tiles in zip(heights, left):
            evicted = nl.copy(_sum_of_products(tiles, right, height, width))
            nisa.dma_copy(dst=result[row : row + height, column : column + width], src=evicted)
    return result


def _packed_weights(weights, scales, rows, columns):
    """A part of packed weights [K / 4, N] with its scales [K / 32, N]: 4 of them in each quadrant of SBUF."""
    (row, height), (column, width) = rows, columns
    partitions = height // QUAD
    packed = nl.ndarray((partitions, width), dtype=weights.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=packed, src=weights[row // QUAD : (row + height) // QUAD, column : column + width])
    spread = nl.ndarray((partitions, width), dtype=scales.dtype, buffer=nl.sbuf)
    first = row // QUADRANT
    for quadrant in range(partitions // QUADRANT):
        four = scales[first + 4 * quadrant : first + 4 * quadrant + 4, column : column + width]
        nisa.dma_copy(dst=spread[QUADRANT * quadrant : QUADRANT * quadrant + 4, :], src=four)
    return packed, spread


@nki.jit
def mxfp4_matmul(lhs_transposed, weights, scales):
    """``lhs_transposed.T @ w`` as float32 [M, N], where the weights w [K, N] were quantised to MXFP4 on the host.

    lhs_transposed: bfloat16 or float16 [K, M], which is quantised to MXFP8 on the device; weights: float4_e2m1fn_x4
    [K / 4, N] and scales: float8_e8m0fnu [K / 32, N], as ``mx.quantize(mx.interleave(w), nl.float4_e2m1fn_x4)`` of
    nkitools makes them. K: a multiple of 128; M: even; N: any.
    """
    contraction, rows = lhs_transposed.shape
    columns = weights.shape[1]
    assert weights.shape[0] * QUAD == contraction, "both operands must have one contraction size"
    assert contraction % (QUAD * QUADRANT) == 0, "the contraction size must be a multiple of 128"
    assert rows % 2 == 0, "the number of rows of the result must be even"
    result = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    parts = _tiles(contraction, QUAD * nl.tile_size.pmax)
    heights = _tiles(rows, nl.tile_size.gemm_stationary_fmax)
    left = [[_quantized(lhs_transposed, part, height, nl.float8_e4m3fn_x4) for part in parts] for height in heights]
    for column, width in _tiles(columns, nl.tile_size.psum_bank_fmax):
        right = [_packed_weights(weights, scales, part, (column, width)) for part in parts]
        for (row, height), tiles in zip(heights, left):
            part = nl.copy(_sum_of_products(tiles, right, height, width))
            nl.device_print("part", part)
            nisa.dma_copy(dst=result[row : row + height, column : column + width], src=part)
    return result
