"""Modern kernels, each with one trait that AWS's compiler for trn2 took or refused, or that a chip ran."""

import nki
import nki.isa as nisa
import nki.language as nl

SBUF, HBM = nl.sbuf, nl.shared_hbm


def _scaled(dst, data, p):
    nisa.tensor_scalar(dst=dst, data=data, op0=nl.multiply, operand0=1.0 / (p * p))


def _load(x):
    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=SBUF)
    nisa.dma_copy(dst=t, src=x)
    return t


def _out(x, p):
    return nl.ndarray((x.shape[0], x.shape[1] // p, x.shape[2] // p), dtype=x.dtype, buffer=HBM)


def _part(t, p, h, w):
    return t[:, h * p : (h + 1) * p, w * p : (w + 1) * p]


@nki.jit
def pool_all_channels(x, p):
    out, t = _out(x, p), _load(x)
    for h in range(x.shape[1] // p):
        for w in range(x.shape[2] // p):
            m = nl.ndarray((x.shape[0], 1, 1), dtype=x.dtype, buffer=SBUF)
            _scaled(m, nl.sum(_part(t, p, h, w), axis=[1, 2], keepdims=True), p)
            nisa.dma_copy(dst=out[:, h, w], src=m)
    return out


@nki.jit
def pool_reshaped(x, p):
    out, t, c = _out(x, p), _load(x), x.shape[0]
    for h in range(x.shape[1] // p):
        for w in range(x.shape[2] // p):
            m = nl.ndarray((c, 1, 1), dtype=x.dtype, buffer=SBUF)
            _scaled(m, nl.sum(_part(t, p, h, w), axis=[1, 2], keepdims=True).reshape((c, 1, 1)), p)
            nisa.dma_copy(dst=out[:, h, w], src=m)
    return out


@nki.jit
def pool_assigned(x, p):
    out, t, c = _out(x, p), _load(x), x.shape[0]
    part = nl.ndarray((c, p, p), dtype=x.dtype, buffer=SBUF)
    for h in range(x.shape[1] // p):
        for w in range(x.shape[2] // p):
            part[0:c, 0:p, 0:p] = t[0:c, h * p : (h + 1) * p, w * p : (w + 1) * p]
            m = nl.ndarray((c, 1, 1), dtype=x.dtype, buffer=SBUF)
            _scaled(m, nl.sum(part, axis=[1, 2], keepdims=True), p)
            out[0:c, h, w] = m[0:c, 0, 0]
    return out


@nki.jit
def pool_window_loads(x, p):
    out, c = _out(x, p), x.shape[0]
    for h in range(x.shape[1] // p):
        for w in range(x.shape[2] // p):
            part = nl.ndarray((c, p, p), dtype=x.dtype, buffer=SBUF)
            nisa.dma_copy(dst=part, src=_part(x, p, h, w))
            m = nl.ndarray((c, 1, 1), dtype=x.dtype, buffer=SBUF)
            _scaled(m, nl.sum(part, axis=[1, 2], keepdims=True), p)
            nisa.dma_copy(dst=out[:, h, w], src=m)
    return out


@nki.jit
def pool_window_loads_assigned(x, p):
    out, c = _out(x, p), x.shape[0]
    for h in range(x.shape[1] // p):
        for w in range(x.shape[2] // p):
            part = nl.ndarray((c, p, p), dtype=x.dtype, buffer=SBUF)
            nisa.dma_copy(dst=part, src=_part(x, p, h, w))
            m = nl.ndarray((c, 1, 1), dtype=x.dtype, buffer=SBUF)
            _scaled(m, nl.sum(part, axis=[1, 2], keepdims=True), p)
            out[:, h, w] = m
    return out


@nki.jit
def pool_copies_on_chip(x, p):
    out, t, c = _out(x, p), _load(x), x.shape[0]
    nisa.dma_copy(dst=out, src=nl.zeros(out.shape, dtype=x.dtype))
    part = nl.ndarray((c, p, p), dtype=x.dtype, buffer=SBUF)
    for h in range(x.shape[1] // p):
        for w in range(x.shape[2] // p):
            nisa.dma_copy(dst=part, src=_part(t, p, h, w))
            m = nl.ndarray((c, 1, 1), dtype=x.dtype, buffer=SBUF)
            _scaled(m, nl.sum(part, axis=[1, 2], keepdims=True), p)
            nisa.dma_copy(dst=out[:, h, w], src=m)
    return out


@nki.jit
def pool_transfers_to_partitions(x, p):
    out, (c, hh, ww) = _out(x, p), x.shape
    t = nl.ndarray((c, hh, ww), dtype=x.dtype, buffer=SBUF)
    for i in range(c):
        nisa.dma_copy(dst=t[i : i + 1, :, :], src=x[i : i + 1, :, :])
    res = nl.ndarray((c, hh // p, ww // p), dtype=x.dtype, buffer=SBUF)
    for h in range(hh // p):
        for w in range(ww // p):
            m = nl.ndarray((c, 1, 1), dtype=x.dtype, buffer=SBUF)
            _scaled(m, nl.sum(_part(t, p, h, w), axis=[1, 2], keepdims=True), p)
            nisa.tensor_copy(dst=res[:, h : h + 1, w : w + 1], src=m)
    nisa.dma_copy(dst=out, src=res)
    return out


@nki.jit
def pool_index_of_one_channel(x, p):
    out, t = _out(x, p), _load(x)
    for i in range(x.shape[0]):
        for h in range(x.shape[1] // p):
            for w in range(x.shape[2] // p):
                s = nl.sum(t[i, h * p : (h + 1) * p, w * p : (w + 1) * p], axis=[1, 2], keepdims=True)
                m = nl.ndarray((1, 1, 1), dtype=x.dtype, buffer=SBUF)
                _scaled(m, s, p)
                out[i, h, w] = m[0, 0, 0]
    return out


@nki.jit
def pool_index_to_tile(x, p):
    out, t = _out(x, p), _load(x)
    res = nl.ndarray(out.shape, dtype=x.dtype, buffer=SBUF)
    for i in range(x.shape[0]):
        for h in range(x.shape[1] // p):
            for w in range(x.shape[2] // p):
                s = nl.sum(t[i, h * p : (h + 1) * p, w * p : (w + 1) * p], axis=[1, 2], keepdims=True)
                m = nl.ndarray(s.shape, dtype=x.dtype, buffer=SBUF)
                _scaled(m, s, p)
                res[i, h, w] = m[0, 0, 0]
    nisa.dma_copy(dst=out, src=res)
    return out


@nki.jit
def pool_wide_destination(x, p):
    out, t, c = _out(x, p), _load(x), x.shape[0]
    part = nl.ndarray((c, p, p), dtype=x.dtype, buffer=SBUF)
    for h in range(x.shape[1] // p):
        for w in range(x.shape[2] // p):
            nisa.tensor_copy(dst=part, src=_part(t, p, h, w))
            _scaled(part, nl.sum(part, axis=[1, 2], keepdims=True), p)
            nisa.dma_copy(dst=out[:, h : h + 1, w : w + 1], src=part[:, 0:1, 0:1])
    return out


@nki.jit
def pool_copies_one_channel(x, p):
    out, t, c = _out(x, p), _load(x), x.shape[0]
    part = nl.ndarray((c, p, p), dtype=x.dtype, buffer=SBUF)
    for i in range(c):
        for h in range(x.shape[1] // p):
            for w in range(x.shape[2] // p):
                part[i, :, :] = t[i, h * p : (h + 1) * p, w * p : (w + 1) * p]
                _scaled(part, nl.sum(part, axis=[1, 2], keepdims=True), p)
                out[i, h, w] = part[i, 0, 0]
    return out


@nki.jit
def product_of_tiles(a, b):
    (kk, mm), nn = a.shape, b.shape[1]
    out = nl.ndarray((mm, nn), dtype=a.dtype, buffer=HBM)
    for m in range(0, mm, 128):
        for n in range(0, nn, 512):
            h, w = min(128, mm - m), min(512, nn - n)
            s = nl.ndarray((h, w), dtype=nl.float32, buffer=nl.psum)
            for k in range(0, kk, 128):
                l, r = (nl.ndarray((128, q), dtype=a.dtype, buffer=SBUF) for q in (h, w))
                nisa.dma_copy(dst=l, src=a[k : k + 128, m : m + h])
                nisa.dma_copy(dst=r, src=b[k : k + 128, n : n + w])
                nisa.nc_matmul(dst=s, stationary=l, moving=r)
            t = nl.ndarray((h, w), dtype=a.dtype, buffer=SBUF)
            nisa.tensor_copy(dst=t, src=s)
            nisa.dma_copy(dst=out[m : m + h, n : n + w], src=t)
    return out
