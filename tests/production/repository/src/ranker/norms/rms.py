"""The root-mean-square norm of rows."""

import nki
import nki.isa as nisa
import nki.language as nl

from ..tiles import in_all_partitions, row_blocks


@nki.jit
def rms_norm(x, weight, epsilon=1e-6):
    """Return ``x / sqrt(mean(x**2) + epsilon) * weight`` of x [rows, columns] and weight [1, columns]."""
    rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for start, height in row_blocks(rows):
        tile = nl.load(x[start : start + height, :])
        squares = nl.ndarray(tile.shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=squares, op=nl.square, data=tile)
        mean = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=mean, op=nl.add, data=squares, axis=1)
        nisa.tensor_scalar(dst=mean, data=mean, op0=nl.multiply, operand0=1 / columns, op1=nl.add, operand1=epsilon)
        nisa.activation(dst=mean, op=nl.rsqrt, data=mean)
        scaled = nl.ndarray(tile.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=scaled, data=tile, op0=nl.multiply, operand0=mean)
        nisa.tensor_tensor(dst=scaled, data1=scaled, data2=in_all_partitions(weight, height), op=nl.multiply)
        nisa.dma_copy(dst=out[start : start + height, :], src=scaled)
    return out
