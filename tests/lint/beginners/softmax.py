"""Softmax of the rows of a matrix, each with a scale, as a beginner writes it."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def softmax(logits, scales, result):
    scale = nl.load(scales[0:200])  # NK101
    tile = nl.load(logits[0:128, :])
    largest = nl.max(tile, axis=1, keepdims=True)
    while largest > 0:  # NK602
        tile = nl.subtract(tile, largest)
        break
    powers = nl.exp(tile)
    total = nl.sum(powers, axis=1, keepdims=True)
    average = nl.multiply(total, 1 / len(powers))  # NK601
    share = nl.divide(powers, average)
    nl.store(result[0:128, :], share)  # NK406
