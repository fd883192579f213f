"""The sum of two vectors, in the legacy NKI dialect.

A vector has one dimension and a tile two: element ``partition * TILE_COLUMNS + column`` of a chunk goes to that place
of the tile, so that all 128 partitions work.
"""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

TILE_COLUMNS = 512


@nki.jit
def vector_add(x, y):
    """``x + y`` of two vectors of any one length."""
    (length,) = x.shape
    assert y.shape == x.shape, "x and y must have one length"
    pmax = nl.tile_size.pmax
    chunk = pmax * TILE_COLUMNS
    total = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)

    place = TILE_COLUMNS * nl.arange(pmax)[:, None] + nl.arange(TILE_COLUMNS)[None, :]
    for n in nl.affine_range((length + chunk - 1) // chunk):
        element = n * chunk + place
        inside = element < length
        x_tile = nl.load(x[element], mask=inside)
        y_tile = nl.load(y[element], mask=inside)
        nl.store(total[element], x_tile + y_tile, mask=inside)
    return total
