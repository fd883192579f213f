"""Legacy gelu(x w + b) in tiles of 128 x 128 x 512.

``product`` and ``gelu`` are two kernels that follow each other; ``pwl`` and ``taylor`` do both in one.
"""

import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
from neuronxcc import nki

M, K, N = 128, 128, 512


def _sum(lt, w, b, m, n, kk, dtype):
    s = nl.zeros((M, N), nl.float32, buffer=nl.psum)
    for k in nl.affine_range(kk // K):
        a = nl.load(lt[k * K : (k + 1) * K, m * M : (m + 1) * M])
        s += nl.matmul(a, nl.load(w[k * K : (k + 1) * K, n * N : (n + 1) * N]), transpose_x=True)
    y = nl.copy(s, dtype=dtype)
    return y + nl.load(b[0:1, n * N : (n + 1) * N]).broadcast_to((M, N))


def _approximate(x):
    cube = (x * x) * x
    z = nl.multiply(x + 0.044715 * cube, 0.7978845608028654)
    t = nisa.activation(op=nl.sigmoid, data=z, scale=2.0) * 2.0 - 1.0
    return 0.5 * x * (1.0 + t)


def _made(then):
    @nki.jit
    def kernel(lt, w, b):
        (kk, mm), nn = lt.shape, w.shape[1]
        out = nl.ndarray((mm, nn), dtype=lt.dtype, buffer=nl.shared_hbm)
        for m in nl.affine_range(mm // M):
            for n in nl.affine_range(nn // N):
                y = _sum(lt, w, b, m, n, kk, out.dtype)
                nl.store(out[m * M : (m + 1) * M, n * N : (n + 1) * N], value=then(y))
        return out

    return kernel


product, pwl, taylor = _made(lambda y: y), _made(lambda y: nl.gelu(y)), _made(_approximate)


@nki.jit
def gelu(y):
    mm, nn = y.shape
    out = nl.ndarray((mm, nn), dtype=y.dtype, buffer=nl.shared_hbm)
    for m in nl.affine_range(mm // M):
        for n in nl.affine_range(nn // N):
            nl.store(
                out[m * M : (m + 1) * M, n * N : (n + 1) * N],
                value=nl.gelu(nl.load(y[m * M : (m + 1) * M, n * N : (n + 1) * N])),
            )
    return out
