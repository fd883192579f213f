"""All-gather around a ring: each rank passes on what has come, until all have seen every shard; modern NKI dialect.

Whose shard has come is known to the device alone, which lays the ring out: the place in the result is a register's.
"""

import nki
import nki.collectives as ncc
import nki.isa as nisa
import nki.language as nl


@nki.jit
def ring_all_gather(shard, ranks):
    """The shards [rows, columns] of ranks 0, 1, ... as [ranks, rows, columns], on each of them.

    The cores of a rank share the rows.
    """
    rows, columns = shard.shape
    cores = nl.num_programs(0)
    assert rows % cores == 0, "the cores of a rank share the rows evenly"
    height = rows // cores
    first = nl.program_id(0) * height
    mine = slice(first, first + height)
    ring = ncc.ReplicaGroup([list(range(ranks))])

    gathered = nl.ndarray((ranks, rows, columns), dtype=shard.dtype, buffer=nl.shared_hbm)
    here = nl.ndarray((rows, columns), dtype=shard.dtype, buffer=nl.shared_hbm)
    there = nl.ndarray((rows, columns), dtype=shard.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=here[mine, :], src=shard[mine, :])

    for step in range(ranks):
        owner = ncc.collective_permute_implicit_current_processing_rank_id(step, ring)
        if step + 1 < ranks:
            ncc.collective_permute_implicit([[here]], [[there]], ring)
        place = gathered.ap(
            pattern=[[columns, height], [1, columns]], offset=first * columns, scalar_offset=owner, indirect_dim=0
        )
        nisa.dma_copy(dst=place, src=here[mine, :])
        here, there = there, here
    return gathered
