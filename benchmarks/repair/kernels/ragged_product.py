"""A matrix product of any shape, tile by tile: the left operand is turned by a DMA."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(a, b):
    M, K = a.shape
    N = b.shape[1]
    TM, TK, TN = 128, 128, 512
    c = nl.ndarray((M, N), dtype=a.dtype, buffer=nl.shared_hbm)
    for m in range((M + TM - 1) // TM):
        for n in range((N + TN - 1) // TN):
            mh = min(TM, M - m * TM)
            nw = min(TN, N - n * TN)
            acc = nl.ndarray((mh, nw), dtype=nl.float32, buffer=nl.psum)
            for k in range(K // TK):
                at = nl.ndarray((TK, mh), dtype=a.dtype, buffer=nl.sbuf)
                nisa.dma_transpose(dst=at, src=a[m * TM : m * TM + mh, k * TK : (k + 1) * TK])
                bt = nl.ndarray((TK, nw), dtype=b.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=bt, src=b[k * TK : (k + 1) * TK, n * TN : n * TN + nw])
                nisa.nc_matmul(dst=acc, stationary=at, moving=bt)
            res = nl.ndarray((mh, nw), dtype=a.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=res, src=acc)
            nisa.dma_copy(dst=c[m * TM : m * TM + mh, n * TN : n * TN + nw], src=res)
    return c


def reference(a, b):
    return a @ b


_random = np.random.default_rng(20)
inputs = (_random.random((200, 256), np.float32), _random.random((256, 700), np.float32))
tolerance = (1e-4, 1e-4)
