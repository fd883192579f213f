"""The blocked matmul of the tutorials, with the blocks as settings."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def blocked(a, b, bm, bn, bk):
    """a [K, M], b [K, N]: blocks of bm x bn x bk tiles of 128 x 512 x 128."""
    K, M = a.shape
    _, N = b.shape
    out = nl.ndarray((M, N), dtype=a.dtype, buffer=nl.shared_hbm)
    for n in range(N // (512 * bn)):
        sums = []
        for _ in range(M // 128):
            s = nl.ndarray((128, bn, 512), dtype=a.dtype, buffer=nl.sbuf)
            nisa.memset(dst=s, value=0.0)
            sums.append(s)
        for k in range(K // (128 * bk)):
            right = nl.ndarray((128, bk, 512 * bn), dtype=b.dtype, buffer=nl.sbuf)
            for i in range(bk):
                r = (k * bk + i) * 128
                nisa.dma_copy(dst=right[:, i, :], src=b[r : r + 128, n * 512 * bn : (n + 1) * 512 * bn])
            for m in range(M // (128 * bm)):
                left = nl.ndarray((128, bk, 128 * bm), dtype=a.dtype, buffer=nl.sbuf)
                for i in range(bk):
                    r = (k * bk + i) * 128
                    nisa.dma_copy(dst=left[:, i, :], src=a[r : r + 128, m * 128 * bm : (m + 1) * 128 * bm])
                for j in range(bn):
                    for l in range(bm):
                        p = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
                        for i in range(bk):
                            nisa.nc_matmul(
                                dst=p,
                                stationary=left[:, i, l * 128 : (l + 1) * 128],
                                moving=right[:, i, j * 512 : (j + 1) * 512],
                            )
                        s = sums[m * bm + l]
                        nisa.tensor_tensor(dst=s[:, j, :], data1=s[:, j, :], data2=p, op=nl.add)
        for m in range(M // 128):
            nisa.dma_copy(
                dst=out[m * 128 : (m + 1) * 128, n * 512 * bn : (n + 1) * 512 * bn],
                src=sums[m].reshape((128, 512 * bn)),
            )
    return out
