"""The softmax of scores, in the legacy dialect."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def old_softmax(scores):
    """Return the softmax of each row."""
    rows, columns = scores.shape
    out = nl.ndarray(scores.shape, dtype=scores.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.mgrid[0:128, 0:columns]
    for block in nl.affine_range((rows + 127) // 128):
        mask = block * 128 + i_p < rows
        tile = nl.load(scores[block * 128 + i_p, i_f], mask=mask)
        powers = nl.exp(tile - nl.max(tile, axis=1, keepdims=True, mask=mask), mask=mask)
        shares = powers / nl.sum(powers, axis=1, keepdims=True, mask=mask)
        nl.store(out[block * 128 + i_p, i_f], shares, mask=mask)
    return out
