"""Attention of one new token over pages of a cache, with tiles, scalars and a loop on the device; NKI 0.7 and later.

The keys and values of a sequence lie in pages, wherever there was room; a table has the numbers of its pages in order
(Kwon et al., 2023). How many there are is known on the device only. So the number of turns is a scalar, the number of
a page is one, and what one turn leaves for the next lies in SBUF.
"""

import nki
import nki.isa as nisa
import nki.language as nl


def _page(pages, number, head=0):
    """Return a head's page of [pages, (heads,) rows, columns] as [rows, columns]; its number is a scalar."""
    *_, rows, columns = pages.shape
    return pages.ap([[columns, rows], [1, columns]], offset=head * rows * columns, scalar_offset=number, indirect_dim=0)


def _loaded(matrix):
    """Return a matrix in HBM as a grid of tiles in SBUF: all columns, and rows by partitions."""
    source = nl.tiles(matrix, tile_shape=(nl.tile_size.pmax, matrix.shape[1]))
    tiles = nl.empty_like(source, buffer=nl.sbuf)
    for row in range(source.shape[0]):
        nisa.dma_copy(dst=tiles[row].data, src=source[row].data)
    return tiles


class _Softmax:
    """The sums of an attention so far, in SBUF: per head the largest score, the sum of weights and that of values."""

    def __init__(self, heads, head):
        self.largest = nl.ndarray((heads, 1), dtype=nl.float32, buffer=nl.sbuf)
        self.weight = nl.ndarray((heads, 1), dtype=nl.float32, buffer=nl.sbuf)
        self.values = nl.ndarray((heads, head), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=self.largest, value=-1e30)
        nisa.memset(dst=self.weight, value=0.0)
        nisa.memset(dst=self.values, value=0.0)

    def include(self, scores, values):
        """Take in a page: its scores [heads, tokens] in PSUM, its values [tokens, head] in SBUF."""
        heads, tokens = scores.shape
        column = (heads, 1)
        largest, lowered = (nl.ndarray(column, dtype=nl.float32, buffer=nl.sbuf) for _ in range(2))
        nisa.tensor_reduce(dst=largest, op=nl.maximum, data=scores, axis=1)
        nisa.tensor_tensor(dst=largest, data1=largest, data2=self.largest, op=nl.maximum)
        nisa.tensor_scalar(dst=lowered, data=largest, op0=nl.multiply, operand0=-1.0)

        weights = nl.ndarray((heads, tokens), dtype=nl.float32, buffer=nl.sbuf)
        total, shrunk = (nl.ndarray(column, dtype=nl.float32, buffer=nl.sbuf) for _ in range(2))
        nisa.activation(
            dst=weights,
            op=nl.exp,
            data=scores,
            bias=lowered,
            reduce_op=nl.add,
            reduce_res=total,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )
        nisa.activation(dst=shrunk, op=nl.exp, data=self.largest, bias=lowered)
        self._scale(self.weight, shrunk, total)
        nisa.tensor_copy(dst=self.largest, src=largest)

        turned = nl.ndarray((tokens, heads), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_transpose(dst=turned, data=weights)
        summed = nl.ndarray(self.values.shape, dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=summed, stationary=nl.copy(turned), moving=values)
        self._scale(self.values, shrunk, summed)

    def _scale(self, sums, factor, more):
        nisa.scalar_tensor_tensor(dst=sums, data=sums, op0=nl.multiply, operand0=factor, op1=nl.add, operand1=more)

    def result(self):
        """Return the weighted mean of the values."""
        nisa.reciprocal(dst=self.weight, data=self.weight)
        nisa.tensor_scalar(dst=self.values, data=self.values, op0=nl.multiply, operand0=self.weight)
        return self.values


def _attended(queries, key_pages, value_pages, table, count, of_head=0):
    """Return the attention of one sequence; ``table`` [slots, 1] and ``count`` [1, 1] are its own."""
    head, heads = queries.element_shape
    tokens = key_pages.shape[-1]
    attention = _Softmax(heads, head)

    def add_page(slot):
        page = nisa.scalar_load(table.ap([[1, 1], [1, 1]], scalar_offset=slot))
        keys = _loaded(_page(key_pages, page, of_head))
        scores = nl.ndarray((heads, tokens), dtype=nl.float32, buffer=nl.psum)
        for k in range(keys.shape[0]):
            nisa.nc_matmul(dst=scores, stationary=queries[k].data, moving=keys[k].data)
        attention.include(scores, _loaded(_page(value_pages, page, of_head)).data)

    nl.fori_loop(0, nisa.scalar_load(count), add_page)
    return attention.result()


@nki.jit
def paged_attention(queries_transposed, key_pages, value_pages, tables, counts):
    """Attention of the heads of one token in each sequence, over the pages that its table names.

    queries_transposed: float32 [sequences, head, heads], scaled already; key_pages: float32 [pages, head, tokens];
    value_pages: float32 [pages, tokens, head]; tables: int32 [sequences, slots], the numbers of pages; counts: int32
    [sequences, 1], how many of a table's slots are used, with all tokens of their pages. heads and tokens up to 128,
    head up to 512. Returns float32 [sequences, heads, head].
    """
    sequences, head, heads = queries_transposed.shape
    assert heads <= nl.tile_size.pmax, "a head takes a partition"
    assert key_pages.shape[2] <= nl.tile_size.pmax, "a token takes a partition"
    result = nl.ndarray((sequences, heads, head), dtype=nl.float32, buffer=nl.shared_hbm)
    for sequence in range(sequences):
        table = tables[sequence].reshape((tables.shape[1], 1))
        queries = _loaded(queries_transposed[sequence])
        attention = _attended(queries, key_pages, value_pages, table, counts[sequence : sequence + 1, :])
        nisa.dma_copy(dst=result[sequence], src=attention)
    return result


@nki.jit
def grouped_query_decode(queries_transposed, key_pages, value_pages, tables, counts):
    """The same where each head of the cache serves a group of query heads (Ainslie et al., 2023).

    queries_transposed: float32 [sequences, cache heads, head, group], scaled already; key_pages: float32 [pages, cache
    heads, head, tokens]; value_pages: float32 [pages, cache heads, tokens, head]; tables and counts as above. group
    and tokens up to 128, head up to 512. Returns float32 [sequences, cache heads, group, head].
    """
    sequences, cache_heads, head, group = queries_transposed.shape
    assert group <= nl.tile_size.pmax, "a query head takes a partition"
    assert key_pages.shape[3] <= nl.tile_size.pmax, "a token takes a partition"
    result = nl.ndarray((sequences, cache_heads, group, head), dtype=nl.float32, buffer=nl.shared_hbm)
    for sequence in range(sequences):
        table = tables[sequence].reshape((tables.shape[1], 1))
        for number in range(cache_heads):
            queries = _loaded(queries_transposed[sequence, number])
            count = counts[sequence : sequence + 1, :]
            attention = _attended(queries, key_pages, value_pages, table, count, number)
            nl.device_print("attention", attention)
            nisa.dma_copy(dst=result[sequence, number], src=attention)
    return result
