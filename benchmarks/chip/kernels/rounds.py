"""Two modern float32 kernels of many small dependent instructions: schemes that were timed on trn1.

``topk``: mask of the ``keep`` largest of each row, by a search of the threshold bit by bit (a count of W elements a
round), then of the last tied place. ``delta``: the gated delta rule by chunks of 128 tokens, with decays by channel or
one a token. Only the order and the sizes of the instructions matter here.
"""

import nki
import nki.isa as nisa
import nki.language as nl

F, I, V = nl.float32, nl.int32, nisa.vector_engine


def sb(*s, t=F):
    return nl.ndarray(s, dtype=t, buffer=nl.sbuf)


def ps(*s):
    return nl.ndarray(s, dtype=F, buffer=nl.psum)


def ts(d, x, *ops):
    more = {f"op{i}": o for i, (o, _) in enumerate(ops)} | {f"operand{i}": v for i, (_, v) in enumerate(ops)}
    nisa.tensor_scalar(dst=d, data=x, engine=V, **more)
    return d


def tt(d, a, b, op):
    nisa.tensor_tensor(dst=d, data1=a, data2=b, op=op, engine=V)
    return d


def stt(d, x, op0, v0, op1, v1):
    nisa.scalar_tensor_tensor(dst=d, data=x, op0=op0, operand0=v0, op1=op1, operand1=v1)
    return d


def mm(d, s, m, acc=False):
    nisa.nc_matmul(dst=d, stationary=s, moving=m, accumulate=acc)
    return d


def vcopy(d, x):
    nisa.tensor_copy(dst=d, src=x, engine=V)
    return d


def act(d, x, op=nl.copy, **k):
    nisa.activation(dst=d, op=op, data=x, **k)
    return d


def iota(d, step, channel, offset=0):
    nisa.iota(dst=d, pattern=[[step, d.shape[1]]], offset=offset, channel_multiplier=channel)
    return d


@nki.jit
def topk(x, keep, g, lg, bits):
    N, W = x.shape
    out = nl.ndarray((N, W), dtype=F, buffer=nl.shared_hbm)
    place = vcopy(sb(128, W), iota(sb(128, W, t=I), 1, 0))
    first, same = sb(128, 1), None
    if g > 1:
        p = iota(sb(128, 1, t=I), 0, 1)
        mine = vcopy(sb(128, 1), ts(sb(128, 1, t=I), p, (nl.right_shift, lg)))
        c = iota(sb(128, 128, t=I), 1, 0)
        ts(c, c, (nl.right_shift, lg))
        same = ts(sb(128, 128), vcopy(sb(128, 128), c), (nl.equal, mine))
        ts(first, ts(sb(128, 1, t=I), p, (nl.bitwise_and, g - 1)), (nl.multiply, float(W)))
    else:
        nisa.memset(dst=first, value=0.0)
    power = [iota(sb(128, 1, t=I), 0, 0, 1 << 30)]
    for b in range(30):
        power.append(ts(sb(128, 1, t=I), power[0], (nl.right_shift, b + 1)))

    def total(c, n):
        return mm(ps(n, 1), same[0:n, 0:n], c) if g > 1 else c

    def count(d, x, op, v, n):
        c = sb(n, 1)
        nisa.tensor_scalar_reduce(dst=d, data=x, op0=op, operand0=v, reduce_op=nl.add, reduce_res=c)
        return total(c, n)

    for t0 in range(0, (N + 127) // 128, 2):
        rows = [(t * 128, min(128, N - t * 128)) for t in range(t0, min(t0 + 2, (N + 127) // 128))]
        S = []
        for r, n in rows:
            s = sb(n, W)
            nisa.dma_copy(dst=s, src=x[r : r + n, :])
            S.append(s)
        T = [sb(n, W) for _, n in rows]
        each = range(len(rows))
        A, SG, K, X = [], [], [], []
        for i in each:
            n = rows[i][1]
            f = ts(sb(n, 1), count(T[i], S[i], nl.greater_equal, 0.0, n), (nl.less, float(keep)))
            SG.append(ts(sb(n, 1), f, (nl.multiply, -2.0), (nl.add, 1.0)))
            K.append(ts(sb(n, 1), f, (nl.multiply, float(g * W + 1 - 2 * keep)), (nl.add, float(keep))))
            A.append(ts(sb(n, W), S[i], (nl.multiply, SG[i])))
            p = sb(n, 1, t=I)
            nisa.memset(dst=p, value=0)
            X.append(p)
        for b in range(31):
            for i in each:
                n = rows[i][1]
                c = tt(sb(n, 1, t=I), X[i], power[b][0:n], nl.bitwise_or)
                got = count(T[i], A[i], nl.greater_equal, c.view(F), n)
                tt(
                    X[i],
                    X[i],
                    ts(sb(n, 1, t=I), got, (nl.greater_equal, K[i]), (nl.multiply, float(1 << (30 - b)))),
                    nl.bitwise_or,
                )
        UP, LEFT, J, L = [], [], [], []
        for i in each:
            n = rows[i][1]
            h = ts(sb(n, 1), X[i].view(F), (nl.multiply, SG[i]))
            up = sb(n, W)
            LEFT.append(ts(sb(n, 1), count(up, S[i], nl.greater, h, n), (nl.multiply, -1.0), (nl.add, float(keep))))
            UP.append(up)
            j = stt(sb(n, W), ts(sb(n, W), S[i], (nl.equal, h)), nl.multiply, -(2.0**20), nl.add, place[0:n])
            J.append(ts(j, j, (nl.add, 2.0**20)))
            z = sb(n, 1)
            nisa.memset(dst=z, value=0.0)
            L.append(z)
        for b in range(bits - 1, -1, -1):
            for i in each:
                n = rows[i][1]
                e = ts(sb(n, 1), L[i], (nl.add, float(1 << b)), (nl.subtract, first[0:n]))
                tt(
                    L[i],
                    L[i],
                    ts(sb(n, 1), count(T[i], J[i], nl.less, e, n), (nl.less, LEFT[i]), (nl.multiply, float(1 << b))),
                    nl.add,
                )
        for i in each:
            r, n = rows[i]
            w = stt(sb(n, W), J[i], nl.less_equal, tt(sb(n, 1), L[i], first[0:n], nl.subtract), nl.add, UP[i])
            nisa.dma_copy(dst=out[r : r + n, :], src=ts(sb(n, W), w, (nl.subtract, 1.0), (nl.multiply, 1e30)))
    return out


def _inverse(NT, C):
    u = range(len(NT))
    N = []
    mul, add = nl.multiply, nl.add
    for h in u:
        N.append(act(sb(128, 128), mm(ps(128, 128), NT[h], C[:, 0, :])))
    B, BT, LO = [], [], []
    for h in u:
        B.append(tt(sb(128, 128), N[h], C[:, 3, :], mul))
        BT.append(tt(sb(128, 128), NT[h], C[:, 4, :], mul))
        LO.append([tt(sb(128, 128), N[h], C[:, 5 + i, :], mul) for i in range(4)])
    P, PT, Q, Y = [], [], [], []
    for h in u:
        p = ps(128, 2, 128)
        mm(p[:, 0, :], BT[h], B[h])
        mm(p[:, 1, :], B[h], BT[h])
        P.append(vcopy(sb(128, 128), p[:, 0, :]))
        PT.append(act(sb(128, 128), p[:, 1, :]))
        Y.append(tt(sb(128, 128), BT[h], C[:, 0, :], add))
    for h in u:
        Q.append(act(sb(128, 128), mm(ps(128, 128), PT[h], P[h])))
        Y[h] = tt(sb(128, 128), Y[h], mm(ps(128, 128), P[h], Y[h]), add)
    for h in u:
        Y[h] = tt(sb(128, 128), Y[h], mm(ps(128, 128), Q[h], Y[h]), add)
    for i in range(4):
        XR = []
        for h in u:
            x = mm(ps(128, 128), Y[h], C[:, 0, :])
            r = mm(ps(128, 128), LO[h][i], Y[h])
            XR.append((act(sb(128, 128), x), vcopy(sb(128, 128), r)))
        for h in u:
            Y[h] = tt(sb(128, 128), Y[h], mm(ps(128, 128), *XR[h]), add)
    return Y


@nki.jit
def delta(q, k, v, g, beta, s0, consts, per_channel):
    (T, H, D), mul, U_, M1 = q.shape, nl.multiply, 1, 10
    o = nl.ndarray((T, H, D), dtype=F, buffer=nl.shared_hbm)
    last = nl.ndarray((H, D, D), dtype=F, buffer=nl.shared_hbm)
    C = sb(128, 11, 128)
    nisa.dma_copy(dst=C, src=consts)
    one, U = C[:, 0, :], C[:, U_, :]

    def load(src):
        t = sb(*src.shape)
        nisa.dma_copy(dst=t, src=src)
        return t

    state = [load(s0[h]) for h in range(H)]
    units = [(t, h) for t in range(0, T, 128) for h in range(H)]
    for at in range(0, len(units), 2):
        pair = units[at : at + 2]
        u = range(len(pair))
        q_, k_, v_, b_, g_ = [], [], [], [], []
        for t, h in pair:
            q_.append(load(q[t : t + 128, h, :]))
            k_.append(load(k[t : t + 128, h, :]))
            v_.append(load(v[t : t + 128, h, :]))
            b_.append(load(beta[t : t + 128, h : h + 1]))
            g_.append(load(g[t : t + 128, h, :] if per_channel else g[t : t + 128, h : h + 1]))
        kb, rhs = [], []
        for j in u:
            kb.append(ts(sb(128, D), k_[j], (mul, b_[j])))
            r = sb(128, 2, 128)
            act(r[:, 0, :], v_[j], scale=b_[j])
            rhs.append(r)
        qT, kT, kbT, gT = [], [], [], []
        for j in u:
            p = ps(128, 4, 128)
            mm(p[:, 0, :], q_[j], one)
            mm(p[:, 1, :], k_[j], one)
            mm(p[:, 2, :], kb[j], one)
            if per_channel:
                mm(p[:, 3, :], g_[j], U)
            qT.append(act(sb(128, 128), p[:, 0, :]))
            kT.append(vcopy(sb(128, 128), p[:, 1, :]))
            kbT.append(act(sb(128, 128), p[:, 2, :]))
            if per_channel:
                gT.append(vcopy(sb(128, 128), p[:, 3, :]))
        nT, qkT, qg, kd, gl = [], [], [], [], []
        if per_channel:
            for j in u:
                neg = ts(sb(128, 8), gT[j].ap(pattern=[[128, 128], [16, 8]], offset=0), (mul, -1.0))
                e = sb(128, 128)
                for b in range(8):
                    act(
                        e[:, b * 16 : b * 16 + 16],
                        gT[j][:, b * 16 : b * 16 + 16],
                        nl.exp,
                        bias=neg[:, b : b + 1],
                        scale=1.0,
                    )
                kq = sb(128, 2, 128)
                tt(kq[:, 0, :], kbT[j], e, mul)
                tt(kq[:, 1, :], qT[j], e, mul)
                z = ps(128, 2, 128)
                for b in range(8):
                    w = b * 16 + 16
                    f = sb(128, 128)
                    act(f[:, 0:w], gT[j][:, 0:w], nl.exp, bias=gT[j][:, b * 16 : b * 16 + 1], scale=-1.0)
                    kg = sb(128, 128)
                    if b < 7:
                        nisa.memset(dst=kg[:, w:128], value=0.0, engine=nisa.gpsimd_engine)
                    tt(kg[:, 0:w], kT[j][:, 0:w], f[:, 0:w], mul)
                    mm(z[:, :, b * 16 : w], kg, kq[:, :, b * 16 : w])
                qkT.append(tt(sb(128, 128), z[:, 1, :], U, mul))
                nT.append(act(sb(128, 128), z[:, 0, :], scale=-1.0))
            for j in u:
                qg.append(tt(sb(128, 128), qT[j], act(sb(128, 128), gT[j], nl.exp), mul))
                gl.append(act(sb(128, 1), gT[j][:, 127:128], nl.exp))
                p = ps(128, 2, 128)
                mm(p[:, 0, :], U, g_[j])
                mm(p[:, 1, :], C[:, 2, :], g_[j])
                e = act(sb(128, 2, 128), p, nl.exp)
                tt(rhs[j][:, 1, :], kb[j], e[:, 0, :], mul)
                kd.append(tt(sb(128, 128), k_[j], e[:, 1, :], mul))
        else:
            for j in u:
                pe = mm(ps(128, 128), C[:, 9, :], ts(sb(128, 128), U, (mul, g_[j])))
                c = vcopy(sb(128, 1), mm(ps(128, 1), U, g_[j]))
                d = act(sb(128, 128), stt(sb(128, 128), pe, nl.subtract, c, nl.minimum, C[:, M1, :]), nl.exp)
                e = act(sb(128, 128), pe, nl.exp)
                gl.append(e[:, 127:128])
                ts(rhs[j][:, 1, :], kb[j], (mul, act(sb(128, 1), c, nl.exp)))
                kd.append(ts(sb(128, 128), k_[j], (mul, d[:, 127:128])))
                kq = sb(128, 2, 128)
                act(kq[:, 0, :], kbT[j])
                act(kq[:, 1, :], qT[j])
                z = mm(ps(128, 2, 128), kT[j], kq)
                nT.append(stt(sb(128, 128), z[:, 0, :], mul, -1.0, mul, d))
                qkT.append(tt(sb(128, 128), z[:, 1, :], d, mul))
                qg.append(tt(sb(128, 128), qT[j], e, mul))
        Y = _inverse(nT, C)
        uw, nP, mT = [], [], []
        for j in u:
            uw.append(act(sb(128, 2, 128), mm(ps(128, 2, 128), Y[j], rhs[j])))
        for j in u:
            nP.append(stt(sb(128, 128), one, mul, gl[j], nl.subtract, mm(ps(128, 128), uw[j][:, 1, :], kd[j])))
            mT.append(tt(sb(128, 128), qg[j], mm(ps(128, 128), uw[j][:, 1, :], qkT[j]), nl.subtract))
        for j in u:
            t, h = pair[j]
            po = mm(ps(128, D), qkT[j], uw[j][:, 0, :])
            mm(po, mT[j], state[h], True)
            s = mm(ps(128, D), kd[j], uw[j][:, 0, :])
            mm(s, nP[j], state[h], True)
            nisa.dma_copy(dst=o[t : t + 128, h, :], src=act(sb(128, D), po))
            state[h] = vcopy(sb(128, D), s)
    for h in range(H):
        nisa.dma_copy(dst=last[h], src=state[h])
    return o, last
