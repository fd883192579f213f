"""ReLU of a matrix, in the legacy NKI dialect."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl

TILE_COLUMNS = 2048


@nki.jit
def relu(x):
    """``max(x, 0)`` of each element of a matrix [rows, columns] of any sizes, on the Scalar Engine."""
    rows, columns = x.shape
    pmax = nl.tile_size.pmax
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)

    row = nl.arange(pmax)[:, None]
    column = nl.arange(TILE_COLUMNS)[None, :]
    for m in nl.affine_range((rows + pmax - 1) // pmax):
        for n in nl.affine_range((columns + TILE_COLUMNS - 1) // TILE_COLUMNS):
            at_row, at_column = m * pmax + row, n * TILE_COLUMNS + column
            inside = (at_row < rows) & (at_column < columns)
            tile = nl.load(x[at_row, at_column], mask=inside)
            tile = nisa.activation(op=nl.relu, data=tile, mask=inside)
            nl.store(result[at_row, at_column], tile, mask=inside)
    return result
