"""The gated delta rule of linear attention, step by step: a state [keys, values] that forgets and corrects itself."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

VALUES = 16


def _product(stationary, moving):
    result = nl.ndarray((stationary.shape[1], moving.shape[1]), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=result, stationary=stationary, moving=moving)
    return nl.copy(result)


@nki.jit
def kernel(query, key, value, decay, beta):
    steps, size = query.shape
    values = value.shape[1]
    out = nl.ndarray((steps, values), dtype=nl.float32, buffer=nl.shared_hbm)
    state = nl.zeros((size, values), dtype=nl.float32, buffer=nl.sbuf)
    for step in range(steps):
        now = nl.ds(step, 1)
        wanted = nl.load(value[now, :])
        column = nl.ndarray((size, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=column, src=key[now, :].reshape((size, 1)))
        factor = nl.broadcast_to(nl.load(decay[now, :]), (size, 1))
        faded = nl.ndarray((size, values), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=faded, data=state, op0=nl.multiply, operand0=factor)
        remembered = _product(column, faded)
        wrong_by = nl.copy(wanted)
        step_size = nl.load(beta[now, :])
        nisa.tensor_scalar(dst=wrong_by, data=wrong_by, op0=nl.multiply, operand0=step_size)
        row = nl.load(key[now, :])
        change = _product(row, wrong_by)
        nisa.tensor_tensor(dst=state, data1=faded, data2=change, op=nl.add)
        asked = nl.ndarray((size, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=asked, src=query[now, :].reshape((size, 1)))
        nisa.dma_copy(dst=out[now, :], src=_product(asked, state))
    return out


def reference(query, key, value, decay, beta):
    state, out = np.zeros((query.shape[1], value.shape[1])), []
    for q, k, v, a, b in zip(query, key, value, decay[:, 0], beta[:, 0], strict=True):
        state = a * state
        state = state + np.outer(k, b * (v - k @ state))
        out.append(q @ state)
    return np.array(out)


def inputs(steps, size, seed=0):
    rng = np.random.default_rng(seed)
    key = rng.standard_normal((steps, size))
    key /= np.linalg.norm(key, axis=1, keepdims=True)
    shapes = (steps, size), (steps, VALUES)
    query, value = (rng.standard_normal(shape) for shape in shapes)
    decay, beta = rng.random((2, steps, 1)) * 0.5 + 0.4
    return tuple(each.astype(np.float32) for each in (query, key, value, decay, beta))


space = {"steps": [8, 6], "size": [32, 16]}
tolerance = (1e-3, 1e-4)
