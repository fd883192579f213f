"""Cross-entropy with smoothed labels, in the legacy dialect."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np

SMOOTHING = 0.1


@nki.jit
def kernel(logits, labels):
    rows, classes = logits.shape
    out = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    i_p = nl.arange(128)[:, None]
    i_f = nl.arange(classes)[None, :]
    i_one = nl.arange(1)[None, :]
    for i in nl.affine_range((rows + 127) // 128):
        inside = i * 128 + i_p < rows
        tile = nl.load(logits[i * 128 + i_p, i_f], mask=inside)
        hot = nl.load(labels[i * 128 + i_p, i_f], mask=inside)
        largest = nl.max(tile, axis=1, keepdims=True, mask=inside)
        shifted = nl.subtract(tile, largest, mask=inside)
        total = nl.sum(nl.exp(shifted, mask=inside), axis=1, keepdims=True, mask=inside)
        logs = nl.subtract(shifted, nl.log(total, mask=inside), mask=inside)
        chosen = nl.sum(nl.multiply(logs, hot, mask=inside), axis=1, keepdims=True, mask=inside)
        every = nl.sum(logs, axis=1, keepdims=True, mask=inside)
        spread = nl.multiply(every, (1 - SMOOTHING) / classes, mask=inside)
        wanted = nl.multiply(chosen, 1 - SMOOTHING, mask=inside)
        loss = nl.multiply(nl.add(wanted, spread, mask=inside), -1.0, mask=inside)
        nl.store(out[i * 128 + i_p, i_one], loss, mask=inside)
    return out


def reference(logits, labels):
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    wanted = 0.9 * labels + 0.1 / labels.shape[1]
    return -(wanted * np.log(shares)).sum(axis=1, keepdims=True)


def inputs(rows, classes, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((rows, classes)).astype(np.float32)
    return logits, np.eye(classes, dtype=np.float32)[rng.integers(0, classes, rows)]


space = {"rows": [140, 128], "classes": [30, 50]}
tolerance = (1e-3, 1e-4)
