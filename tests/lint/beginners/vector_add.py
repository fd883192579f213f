"""The sum of two vectors, as a beginner writes it."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def vector_add(x, y, total):
    first = nl.load(x[0:512])  # NK101
    if len(first) == 0:  # NK601
        return
    second = nl.load(y[0:512])  # NK101
    both = first + second
    if both < 0:  # NK602
        both = both * 0
    nl.store(total[0:512], both)  # NK406
