"""Flash attention of one head, forward and backward, in the modern NKI dialect.

The scores never exist as a whole: the forward pass meets them in tiles of 128 queries by 512 keys and carries the
maximum and the sum of each row along (online softmax, Milakov and Gimelshein, 2018); the backward pass computes each
tile again from the saved log-sum-exp of its rows (Dao et al., 2022).
"""

import nki
import nki.isa as nisa
import nki.language as nl

KEY_BLOCK = 512  # columns of a tile of scores: one PSUM bank of float32
MASKED = -1e30  # a masked score, less than any real one and finite, so that differences stay finite


def _tiles(stop, size):
    """(start, length) of each tile of ``range(stop)``; the last one may be shorter."""
    return [(start, min(size, stop - start)) for start in range(0, stop, size)]


def _transpose_into(target, source):
    """``target = source.T``, both in SBUF, by way of PSUM."""
    swapped = nl.ndarray(target.shape, dtype=source.dtype, buffer=nl.psum)
    nisa.nc_transpose(dst=swapped, data=source)
    nisa.tensor_copy(dst=target, src=swapped)


def _loaded(matrix):
    """A matrix [sequence, head] of HBM as a list of tiles [128, head] in SBUF."""
    return [nl.load(matrix[start : start + height, :]) for start, height in _tiles(matrix.shape[0], nl.tile_size.pmax)]


def _transposed(tiles):
    """The matrix [sequence, head] that ``_loaded`` returned, as [head, sequence] in SBUF."""
    sequence, head = sum([tile.shape[0] for tile in tiles]), tiles[0].shape[1]
    result = nl.ndarray((head, sequence), dtype=tiles[0].dtype, buffer=nl.sbuf)
    for (start, height), tile in zip(_tiles(sequence, nl.tile_size.pmax), tiles):
        _transpose_into(result[:, start : start + height], tile)
    return result


def _column(height, value=None):
    """A float32 number for each row, in SBUF, all of them ``value`` where it is given."""
    column = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
    if value is not None:
        nisa.memset(dst=column, value=value)
    return column


def _scores(queries, keys, distance, causal):
    """``queries.T @ keys`` of [head, rows] and [head, columns], float32.

    ``distance``: by how much the first query comes after the first key; where ``causal``, keys after their query are
    MASKED.
    """
    height, width = queries.shape[1], keys.shape[1]
    product = nl.ndarray((height, width), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=product, stationary=queries, moving=keys)
    if not causal or distance >= width - 1:
        return product
    scores = nl.copy(product)  # affine_select works in SBUF only
    nisa.affine_select(
        dst=scores,
        pattern=[[-1, width]],
        offset=distance,
        channel_multiplier=1,
        on_true_tile=scores,
        on_false_value=MASKED,
        cmp_op=nl.greater_equal,
    )
    return scores


# --- forward ---------------------------------------------------------------------------------------------------------


def _weights(scores, scale, lowest, total, dtype):
    """exp(scale * scores - maximum) in ``dtype``, and the factor by which what was summed before shrinks.

    ``lowest`` (minus the scaled maximum of each row so far) and ``total`` (the sum of its weights) go on by this block.
    """
    height = scores.shape[0]
    block, before, factor, added = _column(height), _column(height), _column(height), _column(height)
    nisa.tensor_reduce(dst=block, op=nl.maximum, data=scores, axis=1, negate=True)
    nisa.tensor_copy(dst=before, src=lowest)
    nisa.scalar_tensor_tensor(dst=lowest, data=block, op0=nl.multiply, operand0=scale, op1=nl.minimum, operand1=before)
    nisa.activation(dst=factor, op=nl.exp, data=before, scale=-1.0, bias=lowest)
    weights = nl.ndarray(scores.shape, dtype=dtype, buffer=nl.sbuf)
    nisa.activation(
        dst=weights,
        op=nl.exp,
        data=scores,
        scale=scale,
        bias=lowest,
        reduce_op=nl.add,
        reduce_res=added,
        reduce_cmd=nisa.reduce_cmd.reset_reduce,
    )
    nisa.scalar_tensor_tensor(dst=total, data=total, op0=nl.multiply, operand0=factor, op1=nl.add, operand1=added)
    return weights, factor


def _weighted(weights, values):
    """``weights @ values`` in PSUM, of [rows, columns] and a list of tiles [128, head]."""
    height, width = weights.shape
    product = nl.ndarray((height, values[0].shape[1]), dtype=nl.float32, buffer=nl.psum)
    for (start, length), tile in zip(_tiles(width, nl.tile_size.pmax), values):
        turned = nl.ndarray((length, height), dtype=weights.dtype, buffer=nl.sbuf)
        _transpose_into(turned, weights[:, start : start + length])
        nisa.nc_matmul(dst=product, stationary=turned, moving=tile[:length, :])
    return product


@nki.jit
def flash_attention(query, key, value, causal=False):
    """``softmax(query @ key.T / sqrt(head)) @ value`` of one head, and the log-sum-exp of each row's scaled scores.

    query, key, value: [sequence, head], all float32 or all bfloat16, head up to 128, any sequence whose keys and
    values fit into SBUF. ``causal``: no query sees a key after it. Returns the output in query's dtype [sequence, head]
    and the float32 statistics [sequence, 1] that ``flash_attention_backward`` takes.
    """
    sequence, head = query.shape
    pmax = nl.tile_size.pmax
    assert head <= pmax, "the head dimension must fit into the partitions"
    assert key.shape == value.shape == query.shape, "query, key and value must have one shape"
    output = nl.ndarray((sequence, head), dtype=query.dtype, buffer=nl.shared_hbm)
    statistics = nl.ndarray((sequence, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    keys, values = _transposed(_loaded(key)), _loaded(value)

    for first, height in _tiles(sequence, pmax):
        rows = nl.ds(first, height)
        queries = nl.ndarray((head, height), dtype=query.dtype, buffer=nl.sbuf)
        _transpose_into(queries, nl.load(query[rows, :]))
        lowest, total = _column(height, -MASKED), _column(height, 0.0)
        result = nl.zeros((height, head), dtype=nl.float32, buffer=nl.sbuf)
        for start, width in _tiles(first + height if causal else sequence, KEY_BLOCK):
            scores = _scores(queries, keys[:, start : start + width], first - start, causal)
            weights, factor = _weights(scores, head**-0.5, lowest, total, value.dtype)
            product = _weighted(weights, values[start // pmax : (start + width + pmax - 1) // pmax])
            nisa.scalar_tensor_tensor(
                dst=result, data=result, op0=nl.multiply, operand0=factor, op1=nl.add, operand1=product
            )
        _finish(output[rows, :], statistics[rows, :], result, lowest, total)
    return output, statistics


def _finish(output, statistics, result, lowest, total):
    """Divide the weighted sums by the sums of the weights, and store them and ``maximum + log(total)``."""
    height, head = result.shape
    inverse, logarithm = _column(height), _column(height)
    nisa.reciprocal(dst=inverse, data=total)
    scaled = nl.ndarray((height, head), dtype=output.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=scaled, data=result, op0=nl.multiply, operand0=inverse)
    nisa.dma_copy(dst=output, src=scaled)
    nisa.activation(dst=logarithm, op=nl.log, data=total)
    nisa.tensor_tensor(dst=logarithm, data1=logarithm, data2=lowest, op=nl.subtract)
    nisa.dma_copy(dst=statistics, src=logarithm)


# --- backward --------------------------------------------------------------------------------------------------------


def _row_statistics(output, gradient, statistics):
    """For each tile of rows: minus the log-sum-exp, and the sum of output times gradient, both [128, 1] in SBUF."""
    lowest, shares = [], []
    for (start, height), tile in zip(_tiles(output.shape[0], nl.tile_size.pmax), gradient):
        rows = nl.ds(start, height)
        negative, share = _column(height), _column(height)
        nisa.tensor_scalar(dst=negative, data=nl.load(statistics[rows, :]), op0=nl.multiply, operand0=-1.0)
        product = nl.load(output[rows, :])
        nisa.tensor_tensor(dst=product, data1=product, data2=tile, op=nl.multiply)
        nisa.tensor_reduce(dst=share, op=nl.add, data=product, axis=1)
        lowest.append(negative)
        shares.append(share)
    return lowest, shares


def _score_gradients(weights, gradients, values, share):
    """``weights * (gradient @ value.T - share)`` in SBUF, of the transposed operands [head, rows], [head, columns]."""
    product = nl.ndarray(weights.shape, dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=product, stationary=gradients, moving=values)
    result = nl.ndarray(weights.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.scalar_tensor_tensor(
        dst=result, data=product, op0=nl.subtract, operand0=share, op1=nl.multiply, operand1=weights
    )
    return result


def _add_products(sums, left, right):
    """``sums += left.T @ right`` of [rows, columns] and [rows, head]: part c of ``sums`` has the 128 columns from c."""
    for part, (start, length) in enumerate(_tiles(left.shape[1], nl.tile_size.pmax)):
        nisa.nc_matmul(dst=sums[:length, part, :], stationary=left[:, start : start + length], moving=right)


def _store_block(target, sums, first, scale):
    """``scale * sums`` into the rows of ``target`` from ``first`` on, KEY_BLOCK of them at most."""
    length = min(KEY_BLOCK, target.shape[0] - first)
    for part, (start, height) in enumerate(_tiles(length, nl.tile_size.pmax)):
        scaled = nl.ndarray((height, target.shape[1]), dtype=target.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=scaled, data=sums[:height, part, :], op0=nl.multiply, operand0=scale)
        nisa.dma_copy(dst=target[first + start : first + start + height, :], src=scaled)


@nki.jit
def flash_attention_backward(query, key, value, output, gradient, statistics, causal=False):
    """Gradients of ``flash_attention`` with respect to query, key and value, float32 [sequence, head].

    query, key, value, output and gradient (with respect to output): float32 [sequence, head], head up to 128;
    statistics: float32 [sequence, 1], as the forward pass returned it. Five copies of [sequence, head] must fit into
    SBUF together: at 4096 x 128 they take 80 of the 192 KiB that a partition of trn2 has.
    """
    sequence, head = query.shape
    pmax = nl.tile_size.pmax
    assert head <= pmax, "the head dimension must fit into the partitions"
    assert query.dtype == nl.float32, "the backward pass takes float32"
    scale, parts = head**-0.5, KEY_BLOCK // pmax
    results = [nl.ndarray((sequence, head), dtype=nl.float32, buffer=nl.shared_hbm) for _ in range(3)]

    queries, gradients = _loaded(query), _loaded(gradient)
    queries_turned, gradients_turned = _transposed(queries), _transposed(gradients)
    lowest, shares = _row_statistics(output, gradients, statistics)
    query_sums = [nl.zeros(tile.shape, dtype=nl.float32, buffer=nl.sbuf) for tile in queries]

    for start, width in _tiles(sequence, KEY_BLOCK):
        block = nl.ds(start, width)
        keys = _loaded(key[block, :])
        keys_turned, values_turned = _transposed(keys), _transposed(_loaded(value[block, :]))
        key_sums = nl.ndarray((pmax, parts, head), dtype=nl.float32, buffer=nl.psum)
        value_sums = nl.ndarray((pmax, parts, head), dtype=nl.float32, buffer=nl.psum)
        for index in range(start // pmax if causal else 0, len(queries)):
            first, height = index * pmax, queries[index].shape[0]
            rows = nl.ds(first, height)
            weights = nl.ndarray((height, width), dtype=nl.float32, buffer=nl.sbuf)
            scores = _scores(queries_turned[:, rows], keys_turned, first - start, causal)
            nisa.activation(dst=weights, op=nl.exp, data=scores, scale=scale, bias=lowest[index])
            changes = _score_gradients(weights, gradients_turned[:, rows], values_turned, shares[index])
            _add_products(value_sums, weights, gradients[index])
            _add_products(key_sums, changes, queries[index])
            product = _weighted(changes, keys)
            nisa.tensor_tensor(dst=query_sums[index], data1=query_sums[index], data2=product, op=nl.add)
        _store_block(results[1], key_sums, start, scale)
        _store_block(results[2], value_sums, start, 1.0)

    for (first, height), sums in zip(_tiles(sequence, pmax), query_sums):
        nisa.tensor_scalar(dst=sums, data=sums, op0=nl.multiply, operand0=scale)
        nisa.dma_copy(dst=results[0][first : first + height, :], src=sums)
    return tuple(results)
