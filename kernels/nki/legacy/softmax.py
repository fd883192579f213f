"""Softmax of the rows of a matrix, in the legacy NKI dialect."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def softmax(logits):
    """Softmax of each row of a matrix [rows, columns]; a row must fit into a partition of SBUF."""
    rows, columns = logits.shape
    pmax = nl.tile_size.pmax
    result = nl.ndarray(logits.shape, dtype=logits.dtype, buffer=nl.shared_hbm)

    row = nl.arange(pmax)[:, None]
    column = nl.arange(columns)[None, :]
    for m in nl.affine_range((rows + pmax - 1) // pmax):
        inside = m * pmax + row < rows
        tile = nl.load(logits[m * pmax + row, column], mask=inside)
        # Subtracting the largest of a row keeps exp in range, and cancels in the quotient.
        lowest = nisa.tensor_reduce(nl.max, tile, axis=1, keepdims=True, negate=True, mask=inside)
        powers = nisa.activation(op=nl.exp, data=tile, bias=lowest, dtype=nl.float32, mask=inside)
        total = nl.sum(powers, axis=1, keepdims=True, mask=inside)
        share = nl.multiply(powers, nl.reciprocal(total, mask=inside), dtype=logits.dtype, mask=inside)
        nl.store(result[m * pmax + row, column], share, mask=inside)
    return result
