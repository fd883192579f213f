"""Softmax of the rows of a matrix, in the modern NKI dialect."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def softmax(logits):
    """Softmax of each row of a float32 matrix [rows, columns]; a row must fit into a partition of SBUF."""
    rows, columns = logits.shape
    pmax = nl.tile_size.pmax
    result = nl.ndarray((rows, columns), dtype=logits.dtype, buffer=nl.shared_hbm)

    for start in range(0, rows, pmax):
        height = min(pmax, rows - start)
        tile = nl.load(logits[start : start + height, :])
        lowest = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=lowest, op=nl.maximum, data=tile, axis=1, negate=True)
        total = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(
            dst=tile,
            op=nl.exp,
            data=tile,
            bias=lowest,
            reduce_op=nl.add,
            reduce_res=total,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )
        nisa.reciprocal(dst=total, data=total)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=total)
        nisa.dma_copy(dst=result[start : start + height, :], src=tile)
    return result
