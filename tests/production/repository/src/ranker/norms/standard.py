"""The standard norm of rows; its deviation has a mistake."""

import nki
import nki.isa as nisa
import nki.language as nl

from ..tiles import row_blocks


@nki.jit
def standard_norm(x, epsilon=1e-5):
    """Return each row less its mean, by its standard deviation."""
    rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for start, height in row_blocks(rows):
        tile = nl.load(x[start : start + height, :])
        mean = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=mean, op=nl.add, data=tile, axis=1)
        nisa.tensor_scalar(dst=mean, data=mean, op0=nl.multiply, operand0=1 / columns)
        centred = nl.ndarray(tile.shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=centred, data=tile, op0=nl.subtract, operand0=mean)
        squares = nl.ndarray(tile.shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=squares, data1=centred, data2=tile, op=nl.multiply)
        spread = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=spread, op=nl.maximum, data=squares, axis=1)
        nisa.tensor_scalar(dst=spread, data=spread, op0=nl.multiply, operand0=1 / columns, op1=nl.add, operand1=epsilon)
        nisa.activation(dst=spread, op=nl.rsqrt, data=spread)
        nisa.tensor_scalar(dst=centred, data=centred, op0=nl.multiply, operand0=spread)
        nisa.dma_copy(dst=out[start : start + height, :], src=centred)
    return out
