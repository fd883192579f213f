"""Cross entropy over a large vocabulary, forward and backward, in nki.language and in nki.isa; modern NKI dialect.

A row of logits never lies in SBUF as a whole. The forward pass meets it in chunks and carries the maximum and the sum
of exponentials along (online softmax, Milakov and Gimelshein, 2018); the backward pass computes the softmax again, from
the log-sum-exp that the forward pass saved.
"""

import nki
import nki.isa as nisa
import nki.language as nl

CHUNK = 4096  # columns of a tile: all tiles of a chunk fit into SBUF twice, so that the next one loads meanwhile
LOWEST = -1e30  # the maximum of no logits, less than any real one and finite, so that differences stay finite


def _tiles(start, stop, size):
    """(start, length) of each tile of ``range(start, stop)``; the last one may be shorter."""
    return [(first, min(size, stop - first)) for first in range(start, stop, size)]


def _row_tiles(rows):
    """The tiles of rows that are this program's; with one program all of them."""
    program, programs = nl.program_id(0), nl.num_programs(0)
    return _tiles(rows * program // programs, rows * (program + 1) // programs, nl.tile_size.pmax)


def _column(height, value=None):
    """A float32 number for each row, in SBUF, all of them ``value`` where it is given."""
    column = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
    if value is not None:
        nisa.memset(dst=column, value=value)
    return column


def _column_numbers():
    """0, 1, 2, ... in every row, float32 [128, CHUNK]; nki.language has no function for it."""
    numbers = nl.ndarray((nl.tile_size.pmax, CHUNK), dtype=nl.float32, buffer=nl.sbuf)
    nisa.iota(dst=numbers, pattern=[[1, CHUNK]])
    return numbers


# --- in nki.language -------------------------------------------------------------------------------------------------


def _is_label(numbers, label, start):
    """1.0 where the column ``start + numbers`` is the row's label, else 0.0."""
    return nl.equal(numbers, nl.subtract(label, float(start)).broadcast(1, numbers.shape[1]))


@nki.jit
def cross_entropy(logits, labels, ignore_index=-100):
    """``logsumexp(row) - row[label]`` for each row, and the log-sum-exp, in nki.language.

    logits: float32 or bfloat16 [rows, vocabulary], no NaN and no +inf, any rows, vocabulary up to 2**24; labels: int32
    [rows, 1], a column or ``ignore_index``, whose rows have the loss 0. Returns the losses and what
    ``cross_entropy_backward`` takes, both float32 [rows, 1]. Programs share the rows.
    """
    rows, vocabulary = logits.shape
    losses = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    statistics = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    numbers = _column_numbers()
    for first, height in _row_tiles(rows):
        tokens = nl.ds(first, height)
        label = nl.load(labels[tokens, :], dtype=nl.float32)
        zero = nl.zeros((height, 1), dtype=nl.float32)
        highest, total, chosen = nl.full((height, 1), LOWEST, dtype=nl.float32), zero, zero
        for start, width in _tiles(0, vocabulary, CHUNK):
            tile = nl.load(logits[tokens, nl.ds(start, width)], dtype=nl.float32)
            before, highest = highest, nl.maximum(highest, nl.max(tile, axis=1, keepdims=True))
            powers = nl.exp(nl.subtract(tile, highest.broadcast(1, width)))
            total = nl.multiply(total, nl.exp(nl.subtract(before, highest)))
            total = nl.add(total, nl.sum(powers, axis=1, keepdims=True))
            hit = nl.where(_is_label(numbers[:height, :width], label, start), tile, zero.broadcast(1, width))
            chosen = nl.add(chosen, nl.sum(hit, axis=1, keepdims=True))

        statistic = nl.add(nl.log(total), highest)
        loss = nl.where(nl.not_equal(label, float(ignore_index)), nl.subtract(statistic, chosen), zero)
        nl.store(losses[tokens, :], loss)
        nl.store(statistics[tokens, :], statistic)
    return losses, statistics


@nki.jit
def cross_entropy_backward(logits, labels, statistics, gradient, ignore_index=-100):
    """The gradient of the losses with respect to the logits, in nki.language: ``(softmax - one_hot) * gradient``.

    logits, labels, ignore_index: as in the forward pass, which gave ``statistics``; gradient (with respect to the
    losses): float32 [rows, 1]. Returns logits' shape and dtype. Programs share the rows.
    """
    rows, vocabulary = logits.shape
    result = nl.ndarray((rows, vocabulary), dtype=logits.dtype, buffer=nl.shared_hbm)
    numbers = _column_numbers()
    for first, height in _row_tiles(rows):
        tokens = nl.ds(first, height)
        label = nl.load(labels[tokens, :], dtype=nl.float32)
        statistic, factor = nl.load(statistics[tokens, :]), nl.load(gradient[tokens, :])
        zero = nl.zeros((height, 1), dtype=nl.float32)
        factor = nl.where(nl.not_equal(label, float(ignore_index)), factor, zero)
        for start, width in _tiles(0, vocabulary, CHUNK):
            columns = nl.ds(start, width)
            tile = nl.load(logits[tokens, columns], dtype=nl.float32)
            weights = nl.exp(nl.subtract(tile, statistic.broadcast(1, width)))
            change = nl.subtract(weights, _is_label(numbers[:height, :width], label, start))
            nl.store(result[tokens, columns], nl.multiply(change, factor.broadcast(1, width), dtype=logits.dtype))
    return result


# --- in nki.isa ------------------------------------------------------------------------------------------------------


def _add_chunk(tile, lowest, total):
    """Minus the maximum of each row with a chunk of logits, which is overwritten, and the sum of exp(logit - maximum).

    ``lowest``, ``total``: both without the chunk.
    """
    height = tile.shape[0]
    block, now, factor, added, sums = [_column(height) for _ in range(5)]
    nisa.tensor_reduce(dst=block, op=nl.maximum, data=tile, axis=1, negate=True)
    nisa.tensor_tensor(dst=now, data1=lowest, data2=block, op=nl.minimum)
    nisa.activation(dst=factor, op=nl.exp, data=lowest, scale=-1.0, bias=now)
    nisa.activation(
        dst=tile,
        op=nl.exp,
        data=tile,
        bias=now,
        reduce_op=nl.add,
        reduce_res=added,
        reduce_cmd=nisa.reduce_cmd.reset_reduce,
    )
    nisa.scalar_tensor_tensor(dst=sums, data=total, op0=nl.multiply, operand0=factor, op1=nl.add, operand1=added)
    return now, sums


def _chosen(logits, label):
    """The logit of each row's label, float32, by a gather of one element a row; that of column 0 for a negative one."""
    height, vocabulary = logits.shape
    index = nl.ndarray((height, 1), dtype=nl.int32, buffer=nl.sbuf)
    begin = nl.ndarray((height, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=index, data=label, op0=nl.maximum, operand0=0.0)
    nisa.iota(dst=begin, pattern=[[0, 1]], channel_multiplier=vocabulary)
    nisa.tensor_tensor(dst=index, data1=index, data2=begin, op=nl.add)
    chosen = _column(height)
    nisa.dma_copy(dst=chosen, src=logits.reshape((height * vocabulary, 1)).vector_select(0, index))
    return chosen


def _where_counted(values, label, ignore_index):
    """``values``, and 0 in the rows whose label is ``ignore_index``."""
    result = _column(values.shape[0], 0.0)
    counted = nl.ndarray(values.shape, dtype=nl.uint8, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=counted, data=label, op0=nl.not_equal, operand0=float(ignore_index))
    nisa.tensor_copy_predicated(dst=result, src=values, predicate=counted)
    return result


@nki.jit
def cross_entropy_isa(logits, labels, ignore_index=-100):
    """The forward pass in nki.isa: the exponentials add up as they are made, and the label's logit is gathered."""
    rows, vocabulary = logits.shape
    losses = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    statistics = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    for first, height in _row_tiles(rows):
        tokens = nl.ds(first, height)
        lowest, total = _column(height, -LOWEST), _column(height, 0.0)
        for start, width in _tiles(0, vocabulary, CHUNK):
            tile = nl.ndarray((height, width), dtype=logits.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=logits[tokens, nl.ds(start, width)])
            lowest, total = _add_chunk(tile, lowest, total)

        statistic, loss = _column(height), _column(height)
        nisa.activation(dst=statistic, op=nl.log, data=total)
        nisa.tensor_tensor(dst=statistic, data1=statistic, data2=lowest, op=nl.subtract)
        nisa.dma_copy(dst=statistics[tokens, :], src=statistic)
        label = nl.ndarray((height, 1), dtype=nl.int32, buffer=nl.sbuf)
        nisa.dma_copy(dst=label, src=labels[tokens, :])
        nisa.tensor_tensor(dst=loss, data1=statistic, data2=_chosen(logits[tokens, :], label), op=nl.subtract)
        nisa.dma_copy(dst=losses[tokens, :], src=_where_counted(loss, label, ignore_index))
    return losses, statistics


@nki.jit
def cross_entropy_backward_isa(logits, labels, statistics, gradient, ignore_index=-100):
    """The backward pass in nki.isa: two passes of the Scalar Engine, and one of the Vector Engine between them."""
    rows, vocabulary = logits.shape
    result = nl.ndarray((rows, vocabulary), dtype=logits.dtype, buffer=nl.shared_hbm)
    numbers = _column_numbers()
    for first, height in _row_tiles(rows):
        tokens = nl.ds(first, height)
        label, lowest, factor = _column(height), _column(height), _column(height)
        nisa.dma_copy(dst=label, src=labels[tokens, :])
        nisa.dma_copy(dst=lowest, src=statistics[tokens, :])
        nisa.dma_copy(dst=factor, src=gradient[tokens, :])
        nisa.tensor_scalar(dst=lowest, data=lowest, op0=nl.multiply, operand0=-1.0)
        factor = _where_counted(factor, label, ignore_index)
        for start, width in _tiles(0, vocabulary, CHUNK):
            columns = nl.ds(start, width)
            tile = nl.ndarray((height, width), dtype=logits.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=logits[tokens, columns])
            change = nl.ndarray((height, width), dtype=nl.float32, buffer=nl.sbuf)
            nisa.activation(dst=change, op=nl.exp, data=tile, bias=lowest)
            place = _column(height)
            nisa.tensor_scalar(dst=place, data=label, op0=nl.subtract, operand0=float(start))
            nisa.scalar_tensor_tensor(
                dst=change,
                data=numbers[:height, :width],
                op0=nl.equal,
                operand0=place,
                op1=nl.subtract,
                operand1=change,
                reverse1=True,
            )
            nisa.activation(dst=tile, op=nl.copy, data=change, scale=factor)
            nisa.dma_copy(dst=result[tokens, columns], src=tile)
    return result
