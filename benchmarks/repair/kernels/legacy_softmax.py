"""The softmax of each row, the last tile masked, in the legacy dialect."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    rows, width = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i_p = nl.arange(128)[:, None]
    i_f = nl.arange(width)[None, :]
    for t in nl.affine_range((rows + 127) // 128):
        inside = t * 128 + i_p < rows
        tile = nl.load(x[t * 128 + i_p, i_f], mask=inside)
        largest = nl.max(tile, axis=1, keepdims=True, mask=inside)
        powers = nl.exp(nl.subtract(tile, largest, mask=inside), mask=inside)
        total = nl.sum(powers, axis=1, keepdims=True, mask=inside)
        share = nl.divide(powers, total, mask=inside)
        nl.store(out[t * 128 + i_p, i_f], share, mask=inside)
    return out


def reference(x):
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


inputs = (np.random.default_rng(24).random((300, 64), np.float32) * 9,)
tolerance = (1e-3, 1e-5)
