"""ReLU of a matrix with a bias for each column, as a beginner writes it."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def relu(x, bias):
    rows, columns = x.shape
    result = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.shared_hbm)  # NK408
    shift = nl.load(bias[0:256])  # NK101
    for m in nl.affine_range(2):
        tile = nl.load(x[m * 128 : (m + 1) * 128, :])
        for n in range(len(tile)):  # NK601
            print(n)
        tile = tile + shift
        if tile > 0:  # NK602
            nl.store(result[m * 128 : (m + 1) * 128, :], tile)
