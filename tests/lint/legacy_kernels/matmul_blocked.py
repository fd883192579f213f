"""A product over tiles of K, by nl.mgrid."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(lhsT, rhs):
    K, M = lhsT.shape
    N = rhs.shape[1]
    out = nl.ndarray((M, N), dtype=nl.float32, buffer=nl.shared_hbm)
    i_l = nl.mgrid[0:128, 0:128]
    i_r = nl.mgrid[0:128, 0:512]
    for m in nl.affine_range(M // 128):
        for n in nl.affine_range(N // 512):
            res = nl.zeros((nl.par_dim(128), 512), nl.float32, buffer=nl.psum)
            for k in nl.affine_range(K // 128):
                a = nl.load(lhsT[k * 128 + i_l.p, m * 128 + i_l.x])
                b = nl.load(rhs[k * 128 + i_r.p, n * 512 + i_r.x])
                res[...] += nisa.nc_matmul(a, b)
            sb = nl.copy(res, dtype=out.dtype)
            nl.store(out[m * 128 + i_r.p, n * 512 + i_r.x], value=sb)
    return out


inputs = (
    np.linspace(-1, 1, 256 * 128, dtype=np.float32).reshape(256, 128),
    np.linspace(0, 1, 256 * 512, dtype=np.float32).reshape(256, 512),
)
