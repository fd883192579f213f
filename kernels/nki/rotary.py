"""Rotary position embedding of queries or keys, in nki.language and in nki.isa; modern NKI dialect.

A head of an embedding is a row of pairs, and each pair is turned by an angle that its place in the sequence and in the
head decides (Su et al., 2021). Models lay the pairs out in two ways: all first elements before all second ones, or
interleaved, each first element beside its second. The engines read either as a view, with a stride of 1 or of 2.
"""

import nki
import nki.isa as nisa
import nki.language as nl

ELEMENTS = 4096  # of a row of a tile, at most: as many heads as fit


def _share(count):
    """Start and stop of this program's part of ``range(count)``; with one program all of it."""
    program, programs = nl.program_id(0), nl.num_programs(0)
    return count * program // programs, count * (program + 1) // programs


def _tiles(start, stop, size):
    """(start, length) of each tile of ``range(start, stop)``; the last one may be shorter."""
    return [(first, min(size, stop - first)) for first in range(start, stop, size)]


def _pairs(tile, interleaved):
    """The first and the second elements of the pairs of a tile [rows, heads, head]: views [rows, heads, head / 2]."""
    head = tile.shape[2]
    if interleaved:
        return tile[:, :, 0:head:2], tile[:, :, 1:head:2]
    return tile[:, :, : head // 2], tile[:, :, head // 2 :]


def _check_shapes(embedding, cosine, sine):
    sequence, _, head = embedding.shape
    assert head % 2 == 0, "a head must have an even number of elements"
    assert head <= ELEMENTS, f"a head may have up to {ELEMENTS} elements"
    assert cosine.shape == sine.shape == (sequence, head // 2), "the tables must be [sequence, head / 2]"


@nki.jit
def rotary(embedding, cosine, sine, interleaved=False):
    """Each pair of ``embedding`` turned by the angle of its ``cosine`` and ``sine``, in nki.language.

    embedding: float32 or bfloat16 [sequence, heads, head], head even and up to 4096, any sequence and heads; cosine,
    sine: float32 [sequence, head / 2], for all heads. ``interleaved``: the elements of a pair are neighbours, else half
    a head apart. Returns embedding's shape and dtype. Programs share the sequence: ``rotary[2](...)`` uses both cores.
    """
    _check_shapes(embedding, cosine, sine)
    sequence, heads, head = embedding.shape
    result = nl.ndarray(embedding.shape, dtype=embedding.dtype, buffer=nl.shared_hbm)
    begin, end = _share(sequence)
    for start, height in _tiles(begin, end, nl.tile_size.pmax):
        rows = nl.ds(start, height)
        cosines, sines = nl.load(cosine[rows, :]), nl.load(sine[rows, :])
        for chosen, count in _tiles(0, heads, ELEMENTS // head):
            tile = nl.load(embedding[rows, nl.ds(chosen, count), :])
            turned = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.sbuf)
            c = cosines.expand_dim(1).broadcast(1, count)
            s = sines.expand_dim(1).broadcast(1, count)
            x, y = _pairs(tile, interleaved)
            turned_x, turned_y = _pairs(turned, interleaved)
            # What nki.language computes is a tile of its own; an instruction puts it among the others.
            nisa.tensor_copy(dst=turned_x, src=nl.subtract(nl.multiply(x, c), nl.multiply(y, s)))
            nisa.tensor_copy(dst=turned_y, src=nl.add(nl.multiply(y, c), nl.multiply(x, s)))
            nl.store(result[rows, nl.ds(chosen, count), :], turned)
    return result


def _combined(dst, data1, factor1, data2, factor2, op):
    """``dst = (data1 * factor1) <op> (data2 * factor2)``, rounded once."""
    product1 = nl.ndarray(data1.shape, dtype=nl.float32, buffer=nl.sbuf)
    product2 = nl.ndarray(data2.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=product1, data1=data1, data2=factor1, op=nl.multiply)
    nisa.tensor_tensor(dst=product2, data1=data2, data2=factor2, op=nl.multiply)
    nisa.tensor_tensor(dst=dst, data1=product1, data2=product2, op=op)


@nki.jit
def rotary_isa(embedding, cosine, sine, interleaved=False):
    """The same, in nki.isa: every result goes to its place at once."""
    _check_shapes(embedding, cosine, sine)
    sequence, heads, head = embedding.shape
    result = nl.ndarray(embedding.shape, dtype=embedding.dtype, buffer=nl.shared_hbm)
    begin, end = _share(sequence)
    for start, height in _tiles(begin, end, nl.tile_size.pmax):
        rows = nl.ds(start, height)
        cosines = nl.ndarray((height, 1, head // 2), dtype=nl.float32, buffer=nl.sbuf)
        sines = nl.ndarray((height, 1, head // 2), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=cosines, src=cosine[rows, :])
        nisa.dma_copy(dst=sines, src=sine[rows, :])
        for chosen, count in _tiles(0, heads, ELEMENTS // head):
            tile = nl.ndarray((height, count, head), dtype=embedding.dtype, buffer=nl.sbuf)
            turned = nl.ndarray((height, count, head), dtype=embedding.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=embedding[rows, nl.ds(chosen, count), :])
            c, s = cosines.broadcast(1, count), sines.broadcast(1, count)
            x, y = _pairs(tile, interleaved)
            turned_x, turned_y = _pairs(turned, interleaved)
            _combined(turned_x, x, c, y, s, nl.subtract)
            _combined(turned_y, y, c, x, s, nl.add)
            nisa.dma_copy(dst=result[rows, nl.ds(chosen, count), :], src=turned)
    return result
