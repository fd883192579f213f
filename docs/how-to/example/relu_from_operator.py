import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def relu(x):
    """ReLU of float32 [rows, columns]: any number of rows; a row fits into a partition of SBUF."""
    rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, rows, nl.tile_size.pmax):
        height = min(nl.tile_size.pmax, rows - start)
        tile = nl.ndarray((height, columns), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[start : start + height, :])
        nisa.activation(dst=tile, op=nl.relu, data=tile)
        nisa.dma_copy(dst=out[start : start + height, :], src=tile)
    return out
