"""A parameter updated in place, in the legacy dialect."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt
import numpy as np


@nki.jit
def kernel(x, state: nt.mutable_tensor):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    old = nl.load(state)
    nl.store(out, nl.subtract(tile, old))
    nl.store(state, nl.multiply(tile, 0.5))
    return out, state


def reference(x, state):
    return x - state, 0.5 * x


_random = np.random.default_rng(11)
inputs = (_random.random((128, 48), np.float32), _random.random((128, 48), np.float32))
tolerance = (1e-5, 1e-6)
