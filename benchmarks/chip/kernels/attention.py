"""Legacy attention softmax(q' k) v' of [128, S] operands in tiles, in two schemes.

``apart``: scores, weights and the output pass through HBM between three phases. ``together``: all of it stays on chip
for each 128 rows.
"""

import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
from neuronxcc import nki

P, F = 128, 512


def _tile(s):
    return nl.ndarray((nl.par_dim(P), s), dtype=nl.float32, buffer=nl.sbuf)


def _turned(src, s):
    t = nl.ndarray((nl.par_dim(P), s // P, P), dtype=nl.float32, buffer=nl.sbuf)
    for i in nl.affine_range(s // P):
        t[:, i, :] = nisa.tensor_copy(nisa.nc_transpose(src[:, nl.ds(i * P, P)]), dtype=nl.float32)
    return t


def _scores(q, k, i, s):
    row = _tile(s)
    for j in nl.affine_range(s // F):
        row[:, nl.ds(j * F, F)] = nisa.tensor_copy(
            nisa.nc_matmul(q[0:P, nl.ds(i * P, P)], k[0:P, nl.ds(j * F, F)]), dtype=nl.float32
        )
    return row


def _exp(row, s):
    high, e, low = _tile(s // F), _tile(s), _tile(s // F)
    for j in nl.affine_range(s // F):
        high[:, j] = nisa.tensor_reduce(nl.max, row[:, nl.ds(j * F, F)], axis=1)
    top = nisa.tensor_reduce(nl.max, high, axis=1, negate=True)
    for j in nl.affine_range(s // F):
        e[:, nl.ds(j * F, F)] = nisa.activation(op=nl.exp, data=row[:, nl.ds(j * F, F)], bias=top, scale=1.0)
        low[:, j] = nisa.tensor_reduce(nl.add, e[:, nl.ds(j * F, F)], axis=1)
    return e, nisa.reciprocal(nisa.tensor_reduce(nl.add, low, axis=1))


def _product(w, vt, s):
    o = nl.zeros((P, P), dtype=nl.float32, buffer=nl.psum)
    for i in nl.affine_range(s // P):
        o += nisa.nc_matmul(w[:, i, :], vt[:, i, :])
    return o


@nki.jit
def together(q, k, v):
    s = q.shape[1]
    out = nl.ndarray((s, P), dtype=q.dtype, buffer=nl.shared_hbm)
    a, b, c = nl.load(q), nl.load(k), nl.load(v)
    vt = _turned(c, s)
    for i in nl.affine_range(s // P):
        e, inv = _exp(_scores(a, b, i, s), s)
        o = _product(_turned(e, s), vt, s)
        r = _tile(P)
        r[...] = nisa.tensor_scalar(o, op0=nl.multiply, operand0=inv, engine=nisa.vector_engine)
        nl.store(out[nl.ds(i * P, P), :], r)
    return out


@nki.jit
def apart(q, k, v):
    s = q.shape[1]
    out = nl.ndarray((s, P), dtype=q.dtype, buffer=nl.shared_hbm)
    hbm = nl.ndarray((s // P, P, s), dtype=nl.float32, buffer=nl.shared_hbm)
    a, b, c = nl.load(q), nl.load(k), nl.load(v)
    for i in nl.affine_range(s // P):
        nl.store(hbm[i], _scores(a, b, i, s))
    for i in nl.affine_range(s // P):
        row = _tile(s)
        row[...] = nl.load(hbm[i])
        e, inv = _exp(row, s)
        w = _tile(s)
        for j in nl.affine_range(s // F):
            w[:, nl.ds(j * F, F)] = nisa.tensor_scalar(
                e[:, nl.ds(j * F, F)], op0=nl.multiply, operand0=inv, engine=nisa.vector_engine
            )
        nl.store(hbm[i], w)
    vt = _turned(c, s)
    for i in nl.affine_range(s // P):
        w = _tile(s)
        w[...] = nl.load(hbm[i])
        r = _tile(P)
        r[...] = nisa.tensor_copy(_product(_turned(w, s), vt, s), dtype=nl.float32)
        nl.store(out[nl.ds(i * P, P), :], r)
    return out
