"""The transpose of a matrix, in the legacy NKI dialect."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def transpose(x):
    """``x.T`` of a matrix [rows, columns] of any sizes, 128 x 128 elements at a time on the Tensor Engine."""
    rows, columns = x.shape
    pmax = nl.tile_size.pmax
    turned = nl.ndarray((columns, rows), dtype=x.dtype, buffer=nl.shared_hbm)

    partition = nl.arange(pmax)[:, None]
    free = nl.arange(pmax)[None, :]
    for m in nl.affine_range((rows + pmax - 1) // pmax):
        for n in nl.affine_range((columns + pmax - 1) // pmax):
            tile = nl.zeros((nl.par_dim(pmax), pmax), dtype=x.dtype, buffer=nl.sbuf)
            inside = (m * pmax + partition < rows) & (n * pmax + free < columns)
            tile[partition, free] = nl.load(x[m * pmax + partition, n * pmax + free], mask=inside)
            turned_tile = nisa.nc_transpose(tile)
            inside = (n * pmax + partition < columns) & (m * pmax + free < rows)
            nl.store(turned[n * pmax + partition, m * pmax + free], turned_tile[partition, free], mask=inside)
    return turned
