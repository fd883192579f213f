"""The sum of each row of a matrix with weights, as a beginner writes it."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def row_sums(x, weights):
    sums = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)  # NK408
    factors = nl.load(weights[128:512])  # NK101
    tile = nl.load(x[0:128, :])
    assert len(tile) == 128  # NK601
    total = nl.sum(tile, axis=1, keepdims=True)
    positive = total if total > 0 else factors  # NK602
    nl.store(sums, positive)
