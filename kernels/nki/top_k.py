"""The k largest values of each row and where they stand, in the modern NKI dialect."""

import nki
import nki.isa as nisa
import nki.language as nl

AT_ONCE = 8  # values that one instruction finds
MOST_K = 64
MOST_COLUMNS = 16384  # elements per partition that nisa.max8 searches
FOUND = -3.4028234663852886e38  # the lowest float32, put where a value was found


@nki.jit
def top_k(rows, k):
    """The ``k`` largest values of each row, in descending order, and their columns; equal values by column.

    rows: float32 [rows, columns], finite and larger than the lowest float32, 8 to 16384 columns, any number of rows;
    k: up to 64 and the number of columns. Returns float32 [rows, k] and uint32 [rows, k].
    """
    count, columns = rows.shape
    assert AT_ONCE <= columns <= MOST_COLUMNS, f"a row must have {AT_ONCE} to {MOST_COLUMNS} columns"
    assert 1 <= k <= min(MOST_K, columns), f"k must be 1 to {MOST_K}, and at most the number of columns"
    pmax = nl.tile_size.pmax
    values = nl.ndarray((count, k), dtype=nl.float32, buffer=nl.shared_hbm)
    indices = nl.ndarray((count, k), dtype=nl.uint32, buffer=nl.shared_hbm)
    rounds = (k + AT_ONCE - 1) // AT_ONCE

    for start in range(0, count, pmax):
        height = min(pmax, count - start)
        left = nl.load(rows[start : start + height, :])
        best = nl.ndarray((height, rounds * AT_ONCE), dtype=nl.float32, buffer=nl.sbuf)
        where = nl.ndarray((height, rounds * AT_ONCE), dtype=nl.uint32, buffer=nl.sbuf)
        for turn in range(rounds):
            eight = nl.ds(turn * AT_ONCE, AT_ONCE)
            nisa.max8(dst=best[:, eight], src=left)
            nisa.nc_find_index8(dst=where[:, eight], data=left, vals=best[:, eight])
            if turn < rounds - 1:
                nisa.nc_match_replace8(dst=left, data=left, vals=best[:, eight], imm=FOUND)
        nisa.dma_copy(dst=values[start : start + height, :], src=best[:, :k])
        nisa.dma_copy(dst=indices[start : start + height, :], src=where[:, :k])
    return values, indices
