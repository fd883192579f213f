"""Plain legacy matmuls in tiles."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


def of(tm, tk, tn, stays):
    """``stays``: the stationary tiles of a row are loaded before its columns, else again for each column."""

    @nki.jit
    def tiled(lt, r):
        (kk, mm), nn = lt.shape, r.shape[1]
        out = nl.ndarray((mm, nn), dtype=lt.dtype, buffer=nl.shared_hbm)
        for m in nl.affine_range(mm // tm):
            if stays:
                held = nl.ndarray((kk // tk, nl.par_dim(tk), tm), dtype=lt.dtype, buffer=nl.sbuf)
                for k in nl.affine_range(kk // tk):
                    held[k] = nl.load(lt[k * tk : (k + 1) * tk, m * tm : (m + 1) * tm])
            for n in nl.affine_range(nn // tn):
                s = nl.zeros((tm, tn), nl.float32, buffer=nl.psum)
                for k in nl.affine_range(kk // tk):
                    a = held[k] if stays else nl.load(lt[k * tk : (k + 1) * tk, m * tm : (m + 1) * tm])
                    s += nl.matmul(a, nl.load(r[k * tk : (k + 1) * tk, n * tn : (n + 1) * tn]), transpose_x=True)
                nl.store(out[m * tm : (m + 1) * tm, n * tn : (n + 1) * tn], value=nl.copy(s, dtype=out.dtype))
        return out

    return tiled
