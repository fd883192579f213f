"""Scalars of 64 bits and tensors of such integers: where they go, and what refuses them or scalars of any width."""

from __future__ import annotations

from tests.dialects.modern.python_under_tracing.cases import Case

# `n` is an int64 scalar of 3 from `long`, `short` an int32 one of 4 from `number`, `register` holds 2.
START = """
        @nki.jit
        def kernel(x):
            out = nl.ndarray((32, 64), dtype=x.dtype, buffer=nl.shared_hbm)
            words = nl.ndarray((1, 2), dtype=nl.int32, buffer=nl.sbuf)
            nisa.memset(words, 0)
            nisa.memset(words[:, 0:1], 3)
            whole = nl.ndarray((1, 2), dtype=nl.int32, buffer=nl.private_hbm)
            nisa.dma_copy(dst=whole, src=words)
            number = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
            nisa.memset(number, 4)
            tile = nl.load(x[0:32, :])
            part = nl.ndarray((32, 8), dtype=x.dtype, buffer=nl.sbuf)
            register = nisa.register_alloc(2)
            at = nisa.register_alloc(0)

            def body(i):
                pass

            short = nisa.scalar_load(number)
            long = nl.ndarray((1, 1), dtype=nl.int64, buffer=nl.sbuf)
            nisa.dma_copy(dst=long, src=whole.view(nl.int64))
            n = nisa.scalar_load(long)
"""
END = """
            nisa.dma_copy(dst=part, src=x.ap([[64, 32], [1, 8]], offset=0, scalar_offset=at, indirect_dim=0))
            nl.store(out, tile)
            nl.store(out[:, 0:8], part)
            return out
"""

# Statements, and the row where the first 8 columns of the result come from.
TAKEN = {
    "at = n": 3,
    "at = n + 4": 7,
    "at = 10 - n": 7,
    "at = n * n": 9,
    "at = -n + 5": 2,
    "at = n + 4294967296 - 4294967294": 5,
    "at = register + short": 6,
    "at = short": 4,
    "nisa.scalar_store(long, n)": 0,
    "nisa.scalar_store(number, short)": 0,
    "nisa.register_move(register, short)": 0,
    "nl.fori_loop(0, short, body)": 0,
    "nisa.dma_copy(dst=part, src=x[nl.ds(n, 32), 0:8])": 0,
}
# Statements and the rule that refuses them.
REFUSED = {
    # two widths
    "made = n + short": "NK301",
    "made = short * n": "NK301",
    "made = short < n": "NK301",
    "made = n + register": "NK301",
    "made = register - n": "NK301",
    "nisa.scalar_store(number, n)": "NK301",
    "nisa.scalar_store(long, short)": "NK301",
    # what has 32 bits
    "made = n < 5": "NK301",
    "made = 5 == n": "NK301",
    "nl.fori_loop(0, n, body)": "NK301",
    "nl.fori_loop(n, 4, body_fun=body)": "NK301",
    "nl.while_loop(n, body)": "NK301",
    "nisa.register_move(register, n)": "NK301",
    "nisa.iota(dst=number, pattern=[[1, 1]], offset=n)": "NK301",
    "nisa.tensor_copy(part, tile[:, nl.ds(n, 8)])": "NK301",
    "nisa.tensor_copy(part[:, 0:1], tile[:, n])": "NK301",
    "nisa.tensor_copy(part[:, 0:1], tile.select(1, n))": "NK301",
    "nisa.tensor_copy(part, tile.ap([[64, 32], [1, 8]], scalar_offset=n, indirect_dim=1))": "NK301",
    # integers of 64 bits where no engine computes on them
    "nl.ndarray((1, 2), dtype=nl.int64, buffer=nl.sbuf)": "NK301",
    "nl.ndarray((1, 1), dtype=nl.int64, buffer=nl.psum)": "NK301",
    "nl.ndarray((1, 1), dtype=nl.uint64)": "NK301",
    "nl.zeros((1, 1), dtype=nl.int64)": "NK301",
    "nisa.memset(long, 0)": "NK301",
    "nisa.tensor_copy(number, long)": "NK301",
    "nisa.register_load(register, long)": "NK301",
    "nisa.dma_copy(dst=number, src=long)": "NK301",
    # what is no scalar, and what takes none
    "nisa.scalar_load(tile[0:1, 0:1].view(nl.uint32))": "NK301",
    "nisa.scalar_store(number, 3)": "NK609",
    "nisa.scalar_store(number, register)": "NK609",
    "nisa.register_store(number, n)": "NK609",
    "nisa.register_alloc(n)": "NK609",
    "nisa.tensor_scalar(part, part, nl.add, n)": "NK609",
    "nisa.memset(part, value=short)": "NK609",
    "nl.add(tile, n)": "NK609",
    "nl.fori_loop(0, 4, body, n)": "NK609",
    # what the other operand is
    "made = n * 0.5": "NK609",
    "made = short + 2147483648": "NK609",
    "made = -2147483649 - short": "NK609",
    "made = n + 9223372036854775808": "NK609",
    # the result of a comparison
    "made = (short < 5) + 1": "NK609",
    "made = -(short < 5)": "NK609",
    "made = (short < 5) == 1": "NK609",
    "nisa.scalar_store(number, short == 4)": "NK609",
    "nisa.register_move(register, short != 4)": "NK609",
    "nl.fori_loop(0, short > 2, body)": "NK609",
    "nl.while_loop(short > 2, body)": "NK609",
    # places that take an integer of the host, and addresses outside
    "x.slice(0, short, 36)": "run NK609",
    "x.ap([[64, 32], [1, 8]], offset=short)": "run NK609",
    "nisa.dma_copy(dst=part, src=x[nl.ds(short - 5, 32), 0:8])": "run NK402",
    "nisa.dma_copy(dst=part, src=x.ap([[64, 32], [1, 8]], 640, scalar_offset=-n))": "run NK402",
    "nisa.tensor_copy(part, tile[:, nl.ds(short <= 9, 8)])": "NK609",
}


def _case(statement: str, rule: str, row: int = 0) -> Case:
    mark = f"  # 0.7: {rule}" if rule else ""
    text = f"{START}            {statement}{mark}{END}"

    def result(x):  # type: ignore[no-untyped-def]
        expected = x[:32].copy()
        expected[:, :8] = x[row : row + 32, :8]
        return expected

    return Case("scalars of 64 bits", text, result, versions=("0.7", "auto"))


LONG_SCALARS = {
    "an offset that a body computes": Case(
        "scalars of 64 bits",
        f"""{START}
            def copy(i):
                rows = x.ap([[64, 32], [1, 64]], offset=0, scalar_offset=n + 2, indirect_dim=0)
                nisa.dma_copy(dst=tile, src=rows)

            nl.fori_loop(0, short, copy)
            nl.store(out, tile)
            return out
""",
        lambda x: x[5:37],
        versions=("0.7", "auto"),
    ),
    **{statement: _case(statement, "", row) for statement, row in TAKEN.items()},
    **{statement: _case(statement, rule) for statement, rule in REFUSED.items()},
}
