import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    return nl.multiply(nl.load(x), 2.0)  # NK209


inputs = (np.ones((128, 64), np.float32),)
