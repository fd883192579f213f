"""A matrix product whose left operand is spread over ranks, gathered while it is multiplied; modern NKI dialect.

Each rank multiplies the shard that it has and meanwhile passes it on around a ring, so that the next one has come when
the product is done (Wang et al., Overlap communication with dependent computation, 2023).
"""

import nki
import nki.collectives as ncc
import nki.isa as nisa
import nki.language as nl


def _tiles(start, stop, size):
    """(start, length) of each tile of ``range(start, stop)``; the last one may be shorter."""
    return [(first, min(size, stop - first)) for first in range(start, stop, size)]


@nki.jit
def all_gather_matmul(shard_transposed, rhs, ranks):
    """``shards @ rhs`` as float32 [ranks, M, N] on each of two ranks or more, which have one shard [M, K] each.

    ``shard_transposed``: the rank's own shard, as [K, M]; ``rhs``: [K, N], the rank's own too, such as columns of a
    larger matrix. Any sizes; the cores of a rank share the columns, and ``rhs`` must fit into SBUF.
    """
    contraction, rows = shard_transposed.shape
    columns = rhs.shape[1]
    assert rhs.shape[0] == contraction, "both operands must have one contraction size"
    cores = nl.num_programs(0)
    assert columns % cores == 0, "the cores of a rank share the columns evenly"
    assert ranks > 1, "one rank has nothing to gather: multiply with kernels.nki.matmul"
    first = nl.program_id(0) * (columns // cores)
    across = _tiles(first, first + columns // cores, nl.tile_size.psum_bank_fmax)
    down = _tiles(0, rows, nl.tile_size.gemm_stationary_fmax)
    depth = _tiles(0, contraction, nl.tile_size.pmax)
    ring = ncc.ReplicaGroup([list(range(ranks))])

    product = nl.ndarray((ranks, rows, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    here = nl.ndarray((contraction, rows), dtype=rhs.dtype, buffer=nl.shared_hbm)
    there = nl.ndarray((contraction, rows), dtype=rhs.dtype, buffer=nl.shared_hbm)
    if nl.program_id(0) == 0:
        nisa.dma_copy(dst=here, src=shard_transposed)
    moving = [[nl.load(rhs[k : k + size, n : n + width]) for k, size in depth] for n, width in across]

    for step in range(ranks):
        owner = ncc.collective_permute_implicit_current_processing_rank_id(step, ring)
        if step + 1 < ranks:
            ncc.collective_permute_implicit([[here]], [[there]], ring)
        for m, height in down:
            left = [nl.load(here[k : k + size, m : m + height]) for k, size in depth]
            for (n, width), right in zip(across, moving):
                total = nl.ndarray((height, width), dtype=nl.float32, buffer=nl.psum)
                for stationary, tile in zip(left, right):
                    nisa.nc_matmul(dst=total, stationary=stationary, moving=tile)
                place = product.ap(
                    pattern=[[columns, height], [1, width]], offset=m * columns + n, scalar_offset=owner, indirect_dim=0
                )
                nisa.dma_copy(dst=place, src=nl.copy(total))
        here, there = there, here
    return product
