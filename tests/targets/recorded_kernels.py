"""The kernels of `tests.targets.recorded_claims`, in the order of the claims."""

from __future__ import annotations

from typing import Any

import nki.isa as nisa
import nki.language as nl
import numpy as np

from tests.targets.recorded_claims import (
    POSITIVE,
    REFUSED,
    RIGHT,
    SMALL,
    WRONG,
    Array,
    X,
    Y,
    claim,
    hbm,
    largest,
    loaded,
    made,
    noise,
    psum,
    rounds,
    same,
    sbuf,
    stored,
    total,
)

# --- tiles and transfers ---


@claim("a tile of one dimension", REFUSED, noise(64), by="NK110")
@claim("a tile of three dimensions", RIGHT, noise(8, 6, 4), to=same)
@claim("a tile of 256 rows", REFUSED, noise(256, 8), by="NK101")
def through(x: Any) -> Any:
    return stored(loaded(x), x.shape)


@claim("a transfer of fewer elements", REFUSED, X, by="NK109")
def narrower(x: Any) -> Any:
    tile = sbuf((128, 32))
    nisa.dma_copy(dst=tile, src=x)
    return stored(tile, (128, 32))


@claim("a last block of rows that is smaller", RIGHT, noise(200, 32), to=same)
def ragged(x: Any) -> Any:
    rows, columns = x.shape
    out = hbm(x.shape)
    for first in range(0, rows, 128):
        count = min(128, rows - first)
        tile = sbuf((count, columns))
        nisa.dma_copy(dst=tile, src=x[nl.ds(first, count), 0:columns])
        nisa.dma_copy(dst=out[first : first + count, 0:columns], src=tile)
    return out


@claim("an affine range", RIGHT, X, to=same)
def halves(x: Any) -> Any:
    out = hbm(x.shape)
    for half in nl.affine_range(2):
        tile = sbuf((128, 32))
        nisa.dma_copy(dst=tile, src=x[:, 32 * half : 32 * half + 32])
        nisa.dma_copy(dst=out[:, 32 * half : 32 * half + 32], src=tile)
    return out


@claim("a reshaped HBM tensor", RIGHT, X, to=same)
def reshaped(x: Any) -> Any:
    out, tile = hbm(x.shape), sbuf((64, 128))
    nisa.dma_copy(dst=tile, src=x.reshape((64, 128)))
    nisa.dma_copy(dst=out.reshape((64, 128)), src=tile)
    return out


@claim("a memory that is called", REFUSED, X)
def called_memory(x: Any) -> Any:
    return stored(nl.sbuf(x.shape, nl.float32), x.shape)


@claim("nl.load and nl.store", RIGHT, X, to=same)
def by_language(x: Any) -> Any:
    out = hbm(x.shape)
    nl.store(out, value=nl.load(x))
    return out


claim("the + of Python", REFUSED, X, by="NK601")(made(lambda tile: tile + tile, np.shape))
claim("the @ of Python", REFUSED, X, by="NK601")(made(lambda tile: tile @ tile, np.shape))


# --- the Tensor Engine ---


def product(a: Any, b: Any, **accumulate: Any) -> Any:
    """``a.T @ b`` in blocks of 128 rows; ``accumulate`` may have ``of``, the argument of a block."""
    result = psum((a.shape[1], b.shape[1]))
    of = accumulate.get("of")
    for block in range(a.shape[0] // 128):
        rows = nl.ds(128 * block, 128)
        stationary, moving = sbuf((128, a.shape[1])), sbuf((128, b.shape[1]))
        nisa.dma_copy(dst=stationary, src=a[rows, 0 : a.shape[1]])
        nisa.dma_copy(dst=moving, src=b[rows, 0 : b.shape[1]])
        given = {} if of is None else {"accumulate": of(block)}
        nisa.nc_matmul(dst=result, stationary=stationary, moving=moving, **given)
    copied = sbuf(result.shape)
    nisa.tensor_copy(dst=copied, src=result)
    return stored(copied, result.shape)


def multiplied(a: Array, b: Array) -> Array:
    return np.asarray(a.T @ b)


LONG = noise(256, 64), noise(256, 512)


@claim("a product", RIGHT, noise(128, 64), noise(128, 512), to=multiplied, chip=RIGHT)
@claim("a product of two blocks", RIGHT, *LONG, to=multiplied)
@claim("a moving tile of 1,024 columns", REFUSED, noise(128, 64), noise(128, 1024), by="NK105")
@claim("a stationary tile of 256 columns", REFUSED, noise(128, 256), noise(128, 512), by="NK104")
def by_default(a: Any, b: Any) -> Any:
    return product(a, b)


@claim("a product that accumulates from its second block on", RIGHT, *LONG, to=multiplied)
def accumulating(a: Any, b: Any) -> Any:
    return product(a, b, of=lambda block: block > 0)


@claim("a product that overwrites its first block", WRONG, *LONG, to=multiplied)
def overwriting(a: Any, b: Any) -> Any:
    return product(a, b, of=lambda block: False)


@claim("a product into SBUF", REFUSED, noise(128, 64), noise(128, 512), by="NK201")
def into_sbuf(a: Any, b: Any) -> Any:
    result = sbuf((64, 512))
    nisa.nc_matmul(dst=result, stationary=loaded(a), moving=loaded(b))
    return stored(result, (64, 512))


@claim("a transfer from PSUM to HBM", REFUSED, X, by="NK201")
def out_of_psum(x: Any) -> Any:
    tile = psum(x.shape)
    nisa.tensor_copy(dst=tile, src=loaded(x))
    return stored(tile, x.shape)


@claim("a transpose through PSUM", RIGHT, noise(64, 128), to=np.transpose)
def turned(x: Any) -> Any:
    result, copied = psum(x.shape[::-1]), sbuf(x.shape[::-1])
    nisa.nc_transpose(dst=result, data=loaded(x))
    nisa.tensor_copy(dst=copied, src=result)
    return stored(copied, copied.shape)


@claim("a transpose of more than 32x32 into SBUF", REFUSED, noise(64, 128), by="NK201")
def turned_in_sbuf(x: Any) -> Any:
    result = sbuf(x.shape[::-1])
    nisa.nc_transpose(dst=result, data=loaded(x))
    return stored(result, result.shape)


@claim("a transpose in blocks", RIGHT, noise(200, 150), to=np.transpose)
def turned_in_blocks(x: Any) -> Any:
    rows, columns = x.shape
    out = hbm((columns, rows))
    for top in range(0, rows, 128):
        for left in range(0, columns, 128):
            m, n = min(128, rows - top), min(128, columns - left)
            tile, result, copied = sbuf((m, n)), psum((n, m)), sbuf((n, m))
            nisa.dma_copy(dst=tile, src=x[top : top + m, left : left + n])
            nisa.nc_transpose(dst=result, data=tile, engine=nisa.engine.tensor)
            nisa.tensor_copy(dst=copied, src=result)
            nisa.dma_copy(dst=out[left : left + n, top : top + m], src=copied)
    return out


# --- element by element ---


def halved(result: Any, tile: Any) -> None:
    nisa.tensor_scalar(dst=result, data=tile, op0=nl.multiply, operand0=0.5)


claim("tensor_scalar", RIGHT, X, to=lambda x: x * np.float32(0.5))(rounds(halved))
claim("activation of nl.exp", RIGHT, X, to=np.exp)(rounds(lambda r, t: nisa.activation(dst=r, op=nl.exp, data=t)))
claim("activation of nl.rsqrt", RIGHT, POSITIVE, to=lambda x: 1 / np.sqrt(x))(
    rounds(lambda r, t: nisa.activation(dst=r, op=nl.rsqrt, data=t))
)
claim("nisa.rsqrt", REFUSED, POSITIVE, by="NK607")(rounds(lambda r, t: nisa.rsqrt(dst=r, data=t)))
claim("nisa.reciprocal", RIGHT, POSITIVE, to=lambda x: 1 / x)(rounds(lambda r, t: nisa.reciprocal(dst=r, data=t)))
claim("nisa.multiply", REFUSED, X, by="NK607")(rounds(lambda r, t: nisa.multiply(dst=r, data=t, operand0=0.5)))
claim("an instruction without dst", REFUSED, X, by="NK609")(
    made(lambda t: nisa.activation(op=nl.exp, data=t), np.shape)
)


@claim("tensor_tensor", RIGHT, X, Y, to=np.add)
def added(x: Any, y: Any) -> Any:
    result = sbuf(x.shape)
    nisa.tensor_tensor(dst=result, data1=loaded(x), data2=loaded(y), op=nl.add)
    return stored(result, x.shape)


@claim("tensor_scalar into HBM", REFUSED, SMALL, by="NK201")
def into_hbm(x: Any) -> Any:
    out = hbm(x.shape)
    halved(out, loaded(x))
    return out


@claim("two operators of tensor_scalar", RIGHT, noise(256, 64), noise(256, 64), to=lambda x, y: np.clip(x, -1, 1) * y)
def clipped(x: Any, y: Any) -> Any:
    out = hbm(x.shape)
    for block in nl.affine_range(2):
        rows = nl.ds(128 * block, 128)
        first, second, result = sbuf((128, 64)), sbuf((128, 64)), sbuf((128, 64))
        nisa.dma_copy(dst=first, src=x[rows, :])
        nisa.dma_copy(dst=second, src=y[rows, :])
        nisa.tensor_scalar(dst=first, data=first, op0=nl.maximum, operand0=-1.0, op1=nl.minimum, operand1=1.0)
        nisa.tensor_tensor(dst=result, data1=first, data2=second, op=nl.multiply)
        nisa.dma_copy(dst=out[rows, :], src=result)
    return out


# --- reductions ---


def reduced(operator: Any, keepdims: bool) -> Any:
    return rounds(lambda r, t: nisa.tensor_reduce(dst=r, op=operator, data=t, axis=(1,), keepdims=keepdims), 1)


claim("tensor_reduce of nl.add", RIGHT, X, to=total)(reduced(nl.add, True))
claim("tensor_reduce without keepdims", RIGHT, X, to=total)(reduced(nl.add, False))
claim("tensor_reduce of nl.maximum", RIGHT, X, to=largest)(reduced(nl.maximum, True))
claim("tensor_reduce of nl.max", RIGHT, X, to=largest)(reduced(nl.max, True))
claim("nl.sum", RIGHT, X, to=total)(made(lambda t: nl.sum(t, axis=[1], keepdims=True), lambda x: (128, 1)))
claim("nl.mean along the free dimension", RIGHT, SMALL, to=lambda x: x.mean(1, keepdims=True))(
    made(lambda t: nl.mean(t, axis=[1], keepdims=True), lambda x: (4, 1))
)
claim("nl.mean along the partitions", REFUSED, SMALL, by="NK112")(
    made(lambda t: nl.mean(t, axis=[0], keepdims=True), lambda x: (1, 8))
)


@claim("a column as operand of tensor_scalar", RIGHT, X, to=lambda x: x - largest(x))
def shifted(x: Any) -> Any:
    tile, column, result = loaded(x), sbuf((128, 1)), sbuf(x.shape)
    nisa.tensor_reduce(dst=column, op=nl.maximum, data=tile, axis=(1,), keepdims=True)
    nisa.tensor_scalar(dst=result, data=tile, op0=nl.subtract, operand0=column)
    return stored(result, x.shape)


@claim("a sum of blocks", RIGHT, noise(200, 1000), to=total)
def summed_in_blocks(x: Any) -> Any:
    rows, columns = x.shape
    out = hbm((rows, 1))
    for top in nl.affine_range(2):
        m = min(128, rows - 128 * top)
        sums = sbuf((m, 1))
        nisa.memset(dst=sums, value=0.0)
        for left in nl.sequential_range(2):
            n = min(512, columns - 512 * left)
            tile, part = sbuf((m, n)), sbuf((m, 1))
            nisa.dma_copy(dst=tile, src=x[128 * top : 128 * top + m, 512 * left : 512 * left + n])
            nisa.tensor_reduce(dst=part, op=nl.add, data=tile, axis=1)
            nisa.tensor_tensor(dst=sums, data1=sums, data2=part, op=nl.add)
        nisa.dma_copy(dst=out[128 * top : 128 * top + m, 0:1], src=sums)
    return out


@claim("an activation that reduces", RIGHT, X, to=lambda x: total(np.exp(x)))
def exponentials(x: Any) -> Any:
    result, sums = sbuf(x.shape), sbuf((128, 1))
    reset = nisa.reduce_cmd.reset_reduce
    nisa.activation(dst=result, op=nl.exp, data=loaded(x), reduce_op=nl.add, reduce_cmd=reset, reduce_res=sums)
    return stored(sums, (128, 1))


def logsumexp(x: Array) -> Array:
    return np.asarray(largest(x) + np.log(total(np.exp(x - largest(x)))))


@claim("the logarithm of a sum of exponentials", RIGHT, noise(128, 128) * 30, to=logsumexp)
def logarithms(x: Any) -> Any:
    tile, negative, powers = loaded(x), sbuf((128, 1)), sbuf(x.shape)
    nisa.tensor_reduce(dst=negative, op=nl.maximum, data=tile, axis=[1], keepdims=True, negate=True)
    nisa.activation(dst=powers, op=nl.exp, data=tile, bias=negative)
    sums, logs, result = sbuf((128, 1)), sbuf((128, 1)), sbuf((128, 1))
    nisa.tensor_reduce(dst=sums, op=nl.add, data=powers, axis=[1], keepdims=True)
    nisa.activation(dst=logs, op=nl.log, data=sums)
    nisa.tensor_tensor(dst=result, data1=logs, data2=negative, op=nl.subtract)
    return stored(result, (128, 1))


def normalised(x: Array) -> Array:
    centred = x - x.mean(1, keepdims=True)
    return np.asarray(centred / np.sqrt((centred * centred).mean(1, keepdims=True) + 1e-5))


@claim("a layer norm", RIGHT, noise(128, 128) * 3 + 5, to=normalised)
def layer_norm(x: Any) -> Any:
    tile, sums, centred, squares = loaded(x), sbuf((128, 1)), sbuf(x.shape), sbuf(x.shape)
    nisa.tensor_reduce(dst=sums, op=nl.add, data=tile, axis=[1], keepdims=True)
    nisa.tensor_scalar(dst=sums, data=sums, op0=nl.multiply, operand0=-1.0 / x.shape[1])
    nisa.tensor_scalar(dst=centred, data=tile, op0=nl.add, operand0=sums)
    nisa.tensor_tensor(dst=squares, data1=centred, data2=centred, op=nl.multiply)
    nisa.tensor_reduce(dst=sums, op=nl.add, data=squares, axis=[1], keepdims=True)
    nisa.activation(dst=sums, op=nl.rsqrt, data=sums, scale=1.0 / x.shape[1], bias=1e-5)
    nisa.tensor_scalar(dst=centred, data=centred, op0=nl.multiply, operand0=sums)
    return stored(centred, x.shape)
