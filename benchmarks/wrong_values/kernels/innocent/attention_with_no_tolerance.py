"""Attention with a given dropout mask, its keys in tiles of 128 and the softmax online."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

HEAD = 48
KEPT = 0.8


def _turned(tile):
    swapped = nl.ndarray((tile.shape[1], tile.shape[0]), dtype=tile.dtype, buffer=nl.psum)
    nisa.nc_transpose(dst=swapped, data=tile)
    return nl.copy(swapped)


def _sum_of_rows(tile):
    result = nl.ndarray((tile.shape[0], 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=result, op=nl.add, data=tile, axis=1)
    return result


@nki.jit
def kernel(query, key, value, keep):
    queries, head = query.shape
    keys = key.shape[0]
    out = nl.ndarray((queries, head), dtype=nl.float32, buffer=nl.shared_hbm)
    turned = _turned(nl.load(query))
    largest = nl.full((queries, 1), -1e30, dtype=nl.float32, buffer=nl.sbuf)
    total = nl.zeros((queries, 1), dtype=nl.float32, buffer=nl.sbuf)
    mixed = nl.zeros((queries, head), dtype=nl.float32, buffer=nl.sbuf)
    for start in range(0, keys, 128):
        width = min(128, keys - start)
        part = nl.ds(start, width)
        product = nl.ndarray((queries, width), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=product, stationary=turned, moving=_turned(nl.load(key[part, :])))
        scores = nl.ndarray((queries, width), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=scores, data=product, op0=nl.multiply, operand0=head**-0.5)
        block = nl.ndarray((queries, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=block, op=nl.maximum, data=scores, axis=1)
        now = nl.maximum(block, largest)
        shrink = nl.exp(nl.subtract(largest, now))
        nisa.tensor_scalar(dst=scores, data=scores, op0=nl.subtract, operand0=now)
        powers = nl.exp(scores)
        dropped = nl.multiply(powers, nl.load(keep[:, part]))
        nisa.tensor_tensor(dst=total, data1=total, data2=shrink, op=nl.multiply)
        nisa.tensor_tensor(dst=total, data1=total, data2=_sum_of_rows(powers), op=nl.add)
        added = nl.ndarray((queries, head), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=added, stationary=_turned(dropped), moving=nl.load(value[part, :]))
        nisa.tensor_scalar(dst=mixed, data=mixed, op0=nl.multiply, operand0=shrink)
        nisa.tensor_tensor(dst=mixed, data1=mixed, data2=added, op=nl.add)
        nisa.tensor_copy(dst=largest, src=now)
    inverse = nl.ndarray((queries, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.reciprocal(dst=inverse, data=total)
    nisa.tensor_scalar(dst=mixed, data=mixed, op0=nl.multiply, operand0=inverse, op1=nl.multiply, operand1=1.0 / KEPT)
    nisa.dma_copy(dst=out, src=mixed)
    return out


def reference(query, key, value, keep):
    powers = np.exp(query @ key.T / np.sqrt(query.shape[1]))
    share = powers / powers.sum(axis=1, keepdims=True)
    return (share * keep / KEPT) @ value


def inputs(queries, keys, seed=0):
    rng = np.random.default_rng(seed)
    shapes = (queries, HEAD), (keys, HEAD), (keys, HEAD)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    return (*arrays, (rng.random((queries, keys)) < KEPT).astype(np.float32))


space = {"queries": [64, 100], "keys": [200, 256]}
tolerance = (1e-9, 1e-9)
