"""A transposition by nisa.nc_transpose."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray((x.shape[1], x.shape[0]), dtype=x.dtype, buffer=nl.shared_hbm)
    i_p = nl.arange(x.shape[0])[:, None]
    i_f = nl.arange(x.shape[1])[None, :]
    t = nl.load(x[i_p, i_f])
    turned = nisa.nc_transpose(t)
    done = nisa.tensor_copy(turned, dtype=x.dtype)
    nl.store(out, done)
    return out


inputs = (np.arange(64 * 96, dtype=np.float32).reshape(64, 96),)
