import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(x, chosen):
    out = nl.ndarray((128, 8), dtype=x.dtype, buffer=nl.shared_hbm)
    kept = nl.zeros((128, 8), dtype=x.dtype)
    nisa.tensor_copy_predicated(src=nl.load(x), dst=kept, predicate=nl.load(chosen))  # NK621
    nl.store(out, kept)
    return out


inputs = (np.ones((128, 8), np.float32), np.ones((128, 1), np.uint8))
