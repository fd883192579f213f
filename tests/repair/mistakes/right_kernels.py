"""Right kernels, short and in the order of their mathematics; `planted` has the mistakes that are planted in them."""

import neuronxcc.nki as legacy_nki
import neuronxcc.nki.language as legacy_nl
import nki
import nki.isa as nisa
import nki.language as nl

TILE = 128


def sbuf(*shape):
    return nl.ndarray(shape, dtype=nl.float32, buffer=nl.sbuf)


def psum(*shape):
    return nl.ndarray(shape, dtype=nl.float32, buffer=nl.psum)


@nki.jit
def product(left_t, right):
    """``left_t.T @ right`` of [K, 256] and [K, 256], K no multiple of 128; the sum over K stays in PSUM."""
    depth, rows = left_t.shape
    columns = right.shape[1]
    result = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    for m in range(0, rows, TILE):
        for n in range(0, columns, TILE):
            total = psum(TILE, TILE)
            for k in range(0, depth, TILE):
                length = min(TILE, depth - k)
                a = nl.load(left_t[k : k + length, m : m + TILE])
                b = nl.load(right[k : k + length, n : n + TILE])
                nisa.nc_matmul(dst=total, stationary=a, moving=b)
            tile = sbuf(TILE, TILE)
            nisa.tensor_copy(dst=tile, src=total)
            nisa.dma_copy(dst=result[m : m + TILE, n : n + TILE], src=tile)
    return result


@nki.jit
def product_through_sbuf(left_t, right):
    """``left_t.T @ right`` of [K, 128] and [K, 256]; the sum over K goes through SBUF."""
    depth, rows = left_t.shape
    columns = right.shape[1]
    result = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    for n in range(0, columns, TILE):
        total = sbuf(rows, TILE)
        nisa.memset(dst=total, value=0.0)
        for k in range(0, depth, TILE):
            a = nl.load(left_t[k : k + TILE, :])
            b = nl.load(right[k : k + TILE, n : n + TILE])
            part = psum(rows, TILE)
            nisa.nc_matmul(dst=part, stationary=a, moving=b)
            nisa.tensor_tensor(dst=total, data1=total, data2=part, op=nl.add)
        nisa.dma_copy(dst=result[:, n : n + TILE], src=total)
    return result


@nki.jit
def softmax(logits):
    """The softmax of each row of [256, 384]."""
    rows, columns = logits.shape
    result = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    sums = sbuf(TILE, rows // TILE)
    for i in range(rows // TILE):
        tile = nl.load(logits[i * TILE : (i + 1) * TILE, :])
        lowest = sbuf(TILE, 1)
        nisa.tensor_reduce(dst=lowest, op=nl.maximum, data=tile, axis=1, negate=True)
        powers = sbuf(TILE, columns)
        nisa.activation(dst=powers, op=nl.exp, data=tile, bias=lowest)
        nisa.tensor_reduce(dst=sums[:, i : i + 1], op=nl.add, data=powers, axis=1)
        inverse = sbuf(TILE, 1)
        nisa.reciprocal(dst=inverse, data=sums[:, i : i + 1])
        share = sbuf(TILE, columns)
        nisa.tensor_scalar(dst=share, data=powers, op0=nl.multiply, operand0=inverse)
        nisa.dma_copy(dst=result[i * TILE : (i + 1) * TILE, :], src=share)
    return result


@nki.jit
def rms_norm(x, weight):
    """``x / sqrt(mean(x**2) + 1e-5) * weight`` of [256, 256] and [128, 256], whose rows are all the same."""
    rows, size = x.shape
    result = nl.ndarray((rows, size), dtype=nl.float32, buffer=nl.shared_hbm)
    factors = nl.load(weight)
    squares, scales = sbuf(TILE, rows // TILE), sbuf(TILE, rows // TILE)
    for i in range(rows // TILE):
        tile = nl.load(x[i * TILE : (i + 1) * TILE, :])
        square = sbuf(TILE, size)
        nisa.tensor_tensor(dst=square, data1=tile, data2=tile, op=nl.multiply)
        nisa.tensor_reduce(dst=squares[:, i : i + 1], op=nl.add, data=square, axis=1)
        mean = sbuf(TILE, 1)
        nisa.tensor_scalar(
            dst=mean, data=squares[:, i : i + 1], op0=nl.multiply, operand0=1.0 / size, op1=nl.add, operand1=1e-5
        )
        nisa.activation(dst=scales[:, i : i + 1], op=nl.rsqrt, data=mean)
        scaled = sbuf(TILE, size)
        nisa.tensor_scalar(dst=scaled, data=tile, op0=nl.multiply, operand0=scales[:, i : i + 1])
        weighted = sbuf(TILE, size)
        nisa.tensor_tensor(dst=weighted, data1=scaled, data2=factors, op=nl.multiply)
        nisa.dma_copy(dst=result[i * TILE : (i + 1) * TILE, :], src=weighted)
    return result


@nki.jit
def shares(x):
    """``x / x.sum(axis=2)`` of positive [256, 16, 16]."""
    rows, heads, size = x.shape
    result = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    for i in range(rows // TILE):
        tile = nl.load(x[i * TILE : (i + 1) * TILE, :, :])
        total = sbuf(TILE, heads)
        nisa.tensor_reduce(dst=total, op=nl.add, data=tile, axis=2)
        inverse = sbuf(TILE, heads)
        nisa.reciprocal(dst=inverse, data=total)
        share = sbuf(TILE, heads, size)
        nisa.tensor_tensor(dst=share, data1=tile, data2=inverse.expand_dim(2).broadcast(2, size), op=nl.multiply)
        nisa.dma_copy(dst=result[i * TILE : (i + 1) * TILE, :, :], src=share)
    return result


@nki.jit
def stencil(x, weights):
    """``w0 * x[:, j - 1] + w1 * x[:, j] + w2 * x[:, j + 1]`` of [128, 384], 0 outside; weights [128, 3], rows alike."""
    rows, columns = x.shape
    result = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    w = nl.load(weights)
    for start in range(0, columns, TILE):
        padded = sbuf(rows, TILE + 2)
        nisa.memset(dst=padded, value=0.0)
        first, last = max(start - 1, 0), min(start + TILE + 1, columns)
        nisa.dma_copy(dst=padded[:, first - start + 1 : last - start + 1], src=x[:, first:last])
        left = sbuf(rows, TILE)
        nisa.tensor_scalar(dst=left, data=padded[:, 0:TILE], op0=nl.multiply, operand0=w[:, 0:1])
        both = sbuf(rows, TILE)
        nisa.scalar_tensor_tensor(
            dst=both, data=padded[:, 1 : TILE + 1], op0=nl.multiply, operand0=w[:, 1:2], op1=nl.add, operand1=left
        )
        every = sbuf(rows, TILE)
        nisa.scalar_tensor_tensor(
            dst=every, data=padded[:, 2 : TILE + 2], op0=nl.multiply, operand0=w[:, 2:3], op1=nl.add, operand1=both
        )
        nisa.dma_copy(dst=result[:, start : start + TILE], src=every)
    return result


@nki.jit
def flash(query_t, key_t, value):
    """``softmax(query @ key.T / 8) @ value``: query_t, key_t [64, 128] and [64, 384], value [384, 64]."""
    head, rows = query_t.shape
    result = nl.ndarray((rows, head), dtype=nl.float32, buffer=nl.shared_hbm)
    queries = nl.load(query_t)
    highest, total, sums = sbuf(rows, 1), sbuf(rows, 1), sbuf(rows, head)
    nisa.memset(dst=highest, value=-1e30)
    nisa.memset(dst=total, value=0.0)
    nisa.memset(dst=sums, value=0.0)
    for n in range(key_t.shape[1] // TILE):
        keys = nl.load(key_t[:, n * TILE : (n + 1) * TILE])
        values = nl.load(value[n * TILE : (n + 1) * TILE, :])
        raw = psum(rows, TILE)
        nisa.nc_matmul(dst=raw, stationary=queries, moving=keys)
        scores = sbuf(rows, TILE)
        nisa.tensor_scalar(dst=scores, data=raw, op0=nl.multiply, operand0=0.125)
        block, before = sbuf(rows, 1), sbuf(rows, 1)
        nisa.tensor_reduce(dst=block, op=nl.maximum, data=scores, axis=1)
        nisa.tensor_copy(dst=before, src=highest)
        nisa.tensor_tensor(dst=highest, data1=before, data2=block, op=nl.maximum)
        change, factor = sbuf(rows, 1), sbuf(rows, 1)
        nisa.tensor_tensor(dst=change, data1=before, data2=highest, op=nl.subtract)
        nisa.activation(dst=factor, op=nl.exp, data=change)
        shifted, weights = sbuf(rows, TILE), sbuf(rows, TILE)
        nisa.tensor_scalar(dst=shifted, data=scores, op0=nl.subtract, operand0=highest)
        nisa.activation(dst=weights, op=nl.exp, data=shifted)
        added = sbuf(rows, 1)
        nisa.tensor_reduce(dst=added, op=nl.add, data=weights, axis=1)
        nisa.scalar_tensor_tensor(dst=total, data=total, op0=nl.multiply, operand0=factor, op1=nl.add, operand1=added)
        turned, turned_copy = psum(TILE, rows), sbuf(TILE, rows)
        nisa.nc_transpose(dst=turned, data=weights)
        nisa.tensor_copy(dst=turned_copy, src=turned)
        part = psum(rows, head)
        nisa.nc_matmul(dst=part, stationary=turned_copy, moving=values)
        nisa.scalar_tensor_tensor(dst=sums, data=sums, op0=nl.multiply, operand0=factor, op1=nl.add, operand1=part)
    inverse, output = sbuf(rows, 1), sbuf(rows, head)
    nisa.reciprocal(dst=inverse, data=total)
    nisa.tensor_scalar(dst=output, data=sums, op0=nl.multiply, operand0=inverse)
    nisa.dma_copy(dst=result, src=output)
    return result


@nki.jit
def scaled_product(left_t, right, scales):
    """The sum over k of ``scales[:, k] * (left_t[k].T @ right[k])``: [3, 128, 128], [3, 128, 128] and [128, 3]."""
    blocks, rows, columns = left_t.shape[0], left_t.shape[2], right.shape[2]
    result = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    total, scale = sbuf(rows, columns), sbuf(rows, blocks)
    nisa.memset(dst=total, value=0.0)
    nisa.memset(dst=scale, value=0.0)
    for k in range(blocks):
        nisa.dma_copy(dst=scale[:, k : k + 1], src=scales[:, k : k + 1])
        a = nl.load(left_t[k, :, :])
        b = nl.load(right[k, :, :])
        part = psum(rows, columns)
        nisa.nc_matmul(dst=part, stationary=a, moving=b)
        scaled = sbuf(rows, columns)
        nisa.tensor_scalar(dst=scaled, data=part, op0=nl.multiply, operand0=scale[:, k : k + 1])
        nisa.tensor_tensor(dst=total, data1=total, data2=scaled, op=nl.add)
    nisa.dma_copy(dst=result, src=total)
    return result


@nki.jit
def turned(x):
    """``x.T`` of [256, 256], tile by tile."""
    rows, columns = x.shape
    result = nl.ndarray((columns, rows), dtype=nl.float32, buffer=nl.shared_hbm)
    for i in range(0, rows, TILE):
        for j in range(0, columns, TILE):
            tile = nl.load(x[i : i + TILE, j : j + TILE])
            swapped, copied = psum(TILE, TILE), sbuf(TILE, TILE)
            nisa.nc_transpose(dst=swapped, data=tile)
            nisa.tensor_copy(dst=copied, src=swapped)
            nisa.dma_copy(dst=result[j : j + TILE, i : i + TILE], src=copied)
    return result


@nki.jit
def running(x, decay):
    """``y[:, t] = decay * y[:, t - 1] + x[:, t]`` of [128, 384] and [128, 1], from block to block."""
    rows, columns = x.shape
    result = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    d = nl.load(decay)
    carry = sbuf(rows, 1)
    nisa.memset(dst=carry, value=0.0)
    for t in range(0, columns, TILE):
        tile = nl.load(x[:, t : t + TILE])
        factors = sbuf(rows, TILE)
        nisa.memset(dst=factors, value=1.0)
        nisa.tensor_scalar(dst=factors, data=factors, op0=nl.multiply, operand0=d)
        sums = sbuf(rows, TILE)
        nisa.tensor_tensor_scan(dst=sums, data0=factors, data1=tile, initial=carry, op0=nl.multiply, op1=nl.add)
        nisa.tensor_copy(dst=carry, src=sums[:, TILE - 1 : TILE])
        nisa.dma_copy(dst=result[:, t : t + TILE], src=sums)
    return result


@legacy_nki.jit
def distances(x, centre):
    """``sum((x - centre)**2)`` of each row of [256, 320], centre [128, 320] with rows alike; the legacy dialect."""
    rows, columns = x.shape
    result = legacy_nl.ndarray((rows, 1), dtype=legacy_nl.float32, buffer=legacy_nl.shared_hbm)
    row = legacy_nl.arange(128)[:, None]
    for m in legacy_nl.affine_range(rows // 128):
        total = legacy_nl.zeros((128, 1), dtype=legacy_nl.float32, buffer=legacy_nl.sbuf)
        for c in legacy_nl.sequential_range((columns + 127) // 128):
            column = legacy_nl.arange(128)[None, :]
            inside = c * 128 + column < columns
            tile = legacy_nl.load(x[m * 128 + row, c * 128 + column], mask=inside)
            middle = legacy_nl.load(centre[row, c * 128 + column], mask=inside)
            far = legacy_nl.subtract(tile, middle, mask=inside)
            square = legacy_nl.multiply(far, far, mask=inside)
            part = legacy_nl.sum(square, axis=1, keepdims=True, mask=inside)
            total[row, 0] = legacy_nl.add(total[row, 0], part)
        legacy_nl.store(result[m * 128 + row, 0], total[row, 0])
    return result
