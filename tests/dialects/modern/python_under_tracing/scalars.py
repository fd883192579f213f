"""Scalars that the device computes: each row of the table of their operations."""

from __future__ import annotations

import numpy as np

from tests.dialects.modern.python_under_tracing.cases import Case

# Loads the int32 scalar `n` = 3, and moves 32 rows by an offset in rows.
START = """
        @nki.jit
        def kernel(x):
            out = nl.ndarray((32, 64), dtype=x.dtype, buffer=nl.shared_hbm)
            number = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
            nisa.memset(number, 3)
            n = nisa.scalar_load(number)  # 0.6: NK608
"""
MOVE = """
            tile = nl.ndarray((32, 64), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x.ap([[64, 32], [1, 64]], offset=0, scalar_offset=at, indirect_dim=0))
            nl.store(out, tile)
            return out
"""

SCALARS = {
    "an offset": Case("scalar_offset in HBM", START + "            at = n" + MOVE, lambda x: x[3:35]),
    "a sum": Case("+ - *", START + "            at = n + 4" + MOVE, lambda x: x[7:39]),
    "a difference": Case("+ - *", START + "            at = 10 - n" + MOVE, lambda x: x[7:39]),
    "a product": Case("+ - *", START + "            at = n * n" + MOVE, lambda x: x[9:41]),
    "the negative": Case("+ - *", START + "            at = -n + 5" + MOVE, lambda x: x[2:34]),
    "a product that wraps": Case(
        "int32 wraps", START + "            at = n * 1431655766 + 3" + MOVE, lambda x: x[5:37]
    ),
    "a bound": Case(
        "bound of fori_loop",
        START
        + """
            total = nl.zeros((32, 64), dtype=x.dtype)
            tile = nl.load(x[0:32, :])

            def body(i):
                nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)

            nl.fori_loop(0, 2 * n + 1, body)
            nl.store(out, total)
            return out
""",
        lambda x: 7 * x[:32],
    ),
    "a scalar that is compared": Case(
        "comparison of scalars",
        START
        + """
            factor = 2
            if n < 5:  # 0.7: NK602
                factor = 3
            nl.store(out, nl.load(x[0:32, :]))
            return out
""",
        lambda x: x[:32],
    ),
    "a comparison that is not used": Case(
        "comparison of scalars",
        START
        + """
            smaller = n < 5
            nl.store(out, nl.load(x[0:32, :]))
            return out
""",
        lambda x: x[:32],
    ),
    "if of a scalar": Case(
        "comparison of scalars",
        START
        + """
            if n:  # 0.7: NK602
                pass
            nl.store(out, nl.load(x[0:32, :]))
            return out
""",
        lambda x: x[:32],
    ),
    "an offset on chip": Case(
        "scalar_offset in SBUF or PSUM",
        START
        + """
            source = nl.load(x[0:32, :])
            tile = nl.ndarray((32, 8), dtype=x.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(tile, source.ap([[64, 32], [1, 8]], scalar_offset=n, indirect_dim=1))
            nl.store(out[:, 0:8], tile)
            nl.store(out[:, 8:64], nl.load(x[0:32, 8:64]))
            return out
""",
        lambda x: np.concatenate([x[:32, 3:11], x[:32, 8:]], axis=1),
    ),
    "all comparisons that are not used": Case(
        "comparison of scalars",
        START
        + """
            made = [n < 5, n <= 5, n > 5, n >= 5, n == 5, n != 5]
            nl.store(out, nl.load(x[0:32, :]))
            return out
""",
        lambda x: x[:32],
    ),
}
