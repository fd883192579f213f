"""Attention of one head, in the modern NKI dialect."""

import nki
import nki.isa as nisa
import nki.language as nl


def _transposed(tile):
    """A tile of up to 128 x 128 with its dimensions swapped, in SBUF."""
    swapped = nl.ndarray((tile.shape[1], tile.shape[0]), dtype=tile.dtype, buffer=nl.psum)
    nisa.nc_transpose(dst=swapped, data=tile)
    return nl.copy(swapped)


def _scores(query, keys, scale):
    """``scale * query.T @ keys`` of a [head, 128] tile with [head, sequence] keys, in SBUF."""
    sequence = keys.shape[1]
    bank = nl.tile_size.psum_bank_fmax
    scores = nl.ndarray((query.shape[1], sequence), dtype=nl.float32, buffer=nl.sbuf)
    for start in range(0, sequence, bank):
        width = min(bank, sequence - start)
        product = nl.ndarray((query.shape[1], width), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=product, stationary=query, moving=keys[:, start : start + width])
        nisa.tensor_scalar(dst=scores[:, start : start + width], data=product, op0=nl.multiply, operand0=scale)
    return scores


def _weights(scores):
    """exp(scores - max) in place, and one over its row sums."""
    height = scores.shape[0]
    lowest = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=lowest, op=nl.maximum, data=scores, axis=1, negate=True)
    total = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation(
        dst=scores,
        op=nl.exp,
        data=scores,
        bias=lowest,
        reduce_op=nl.add,
        reduce_res=total,
        reduce_cmd=nisa.reduce_cmd.reset_reduce,
    )
    nisa.reciprocal(dst=total, data=total)
    return total


@nki.jit
def attention(query, key, value):
    """``softmax(query @ key.T / sqrt(head)) @ value`` of float32 [sequence, head], head up to 128, any sequence."""
    sequence, head = query.shape
    pmax = nl.tile_size.pmax
    assert head <= pmax, "the head dimension must fit into the partitions"
    result = nl.ndarray((sequence, head), dtype=nl.float32, buffer=nl.shared_hbm)
    starts = range(0, sequence, pmax)

    keys = nl.ndarray((head, sequence), dtype=nl.float32, buffer=nl.sbuf)
    values = []
    for start in starts:
        height = min(pmax, sequence - start)
        rows = nl.ds(start, height)
        nisa.tensor_copy(dst=keys[:, start : start + height], src=_transposed(nl.load(key[rows, :])))
        values.append(nl.load(value[rows, :]))

    for start in starts:
        height = min(pmax, sequence - start)
        scores = _scores(_transposed(nl.load(query[start : start + height, :])), keys, head**-0.5)
        inverse = _weights(scores)
        output = nl.ndarray((height, head), dtype=nl.float32, buffer=nl.psum)
        for begin, tile in zip(starts, values):
            nisa.nc_matmul(dst=output, stationary=_transposed(scores[:, begin : begin + tile.shape[0]]), moving=tile)
        scaled = nl.ndarray((height, head), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=scaled, data=output, op0=nl.multiply, operand0=inverse)
        nisa.dma_copy(dst=result[start : start + height, :], src=scaled)
    return result
