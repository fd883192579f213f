"""Loops on the device, and the ranges that NKI had."""

from __future__ import annotations

from tests.dialects.modern.python_under_tracing.cases import Case

LOOPS = {
    "affine_range": Case(
        "the three ranges",
        """
        @nki.jit
        def kernel(x):
            factor = 0
            for each in nl.affine_range(4):  # 0.7: NK618; custom: NK618
                factor += each
        """,
        6,
    ),
    "sequential_range": Case(
        "the three ranges",
        """
        @nki.jit
        def kernel(x):
            factor = 0
            for each in nl.sequential_range(1, 4):  # 0.7: NK618; custom: NK618
                factor += each
        """,
        6,
    ),
    "static_range": Case(
        "the three ranges",
        """
        @nki.jit
        def kernel(x):
            factor = 1
            for each in nl.static_range(3):  # 0.7: NK618; custom: NK618
                factor = 2 * factor
        """,
        8,
    ),
    "dynamic_range": Case(
        "dynamic_range",
        """
        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            total = nl.zeros(x.shape, dtype=x.dtype)
            tile = nl.load(x)
            for _ in nl.dynamic_range(3):  # 0.6: NK618; 0.7: NK608; auto: NK618
                nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)
            nl.store(out, total)
            return out
        """,
        3,
    ),
    "while of a register": Case(
        "while register:",
        """
        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            total = nl.zeros(x.shape, dtype=x.dtype)
            tile = nl.load(x)
            left = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
            nisa.memset(left, 3)
            more = nisa.register_alloc(3)
            while more:  # 0.6: NK618; 0.7: NK608; auto: NK618
                nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)
                nisa.tensor_scalar(dst=left, data=left, op0=nl.subtract, operand0=1)
                nisa.register_load(more, left)
            nl.store(out, total)
            return out
        """,
        3,
    ),
    "fori_loop": Case(
        "fori_loop",
        """
        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            total = nl.zeros(x.shape, dtype=x.dtype)
            tile = nl.load(x)

            def body(i):
                nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)

            nl.fori_loop(0, 5, body)
            nl.store(out, total)
            return out
        """,
        5,
    ),
    "fori_loop with a step": Case(
        "fori_loop",
        """
        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            total = nl.zeros(x.shape, dtype=x.dtype)
            tile = nl.load(x)

            def body(i):
                nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)

            nl.fori_loop(1, 8, body, step=3)
            nl.store(out, total)
            return out
        """,
        3,
    ),
    "fori_loop with a register for a bound": Case(
        "fori_loop",
        """
        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            total = nl.zeros(x.shape, dtype=x.dtype)
            tile = nl.load(x)
            upper = nisa.register_alloc(2)

            def body(i):
                nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)

            nl.fori_loop(0, upper, body)
            nl.store(out, total)
            return out
        """,
        2,
    ),
    "fori_loop with a step that counts down": Case(
        "fori_loop",
        """
        @nki.jit
        def kernel(x):
            def body(i):
                pass

            nl.fori_loop(4, 0, body, step=-1)  # 0.6: run NK609; 0.7: run NK609
            factor = 1
        """,
        1,
    ),
    "fori_loop returns None": Case(
        "fori_loop",
        """
        @nki.jit
        def kernel(x):
            def body(i):
                pass

            nothing = nl.fori_loop(0, 4, body)
            factor = 3 if nothing == None else 4
        """,
        3,
    ),
    "a body that moves rows by its counter": Case(
        "fori_loop",
        """
        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)

            def body(i):
                tile = nl.ndarray((32, 64), dtype=x.dtype, buffer=nl.sbuf)
                rows = [[64, 32], [1, 64]]
                nisa.dma_copy(dst=tile, src=x.ap(rows, offset=0, scalar_offset=i, indirect_dim=0))
                nisa.dma_copy(dst=out.ap(rows, offset=0, scalar_offset=i, indirect_dim=0), src=tile)

            nl.fori_loop(0, 128, body, step=32)
            return out
        """,
        1,
    ),
    "arithmetic on the counter": Case(
        "fori_loop",
        """
        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)

            def body(i):
                tile = nl.ndarray((32, 64), dtype=x.dtype, buffer=nl.sbuf)
                rows = [[64, 32], [1, 64]]
                at = 32 * i  # 0.6: lint NK616
                nisa.dma_copy(dst=tile, src=x.ap(rows, offset=0, scalar_offset=at, indirect_dim=0))
                nisa.dma_copy(dst=out.ap(rows, offset=0, scalar_offset=at, indirect_dim=0), src=tile)

            nl.fori_loop(0, 4, body)
            return out
        """,
        1,
    ),
    "loops in loops": Case(
        "fori_loop",
        """
        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            total = nl.zeros(x.shape, dtype=x.dtype)
            tile = nl.load(x)

            def inner(j):
                nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)

            def outer(i):
                nl.fori_loop(0, 2, inner)

            nl.fori_loop(0, 3, outer)
            nl.store(out, total)
            return out
        """,
        6,
    ),
    "an if on the device": Case(
        "fori_loop",
        """
        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            total = nl.load(x)

            def double(i):
                nisa.tensor_scalar(dst=total, data=total, op0=nl.multiply, operand0=2)

            def triple(i):
                nisa.tensor_scalar(dst=total, data=total, op0=nl.multiply, operand0=3)

            nl.fori_loop(0, nisa.register_alloc(0), double)
            nl.fori_loop(0, nisa.register_alloc(1), triple)
            nl.store(out, total)
            return out
        """,
        3,
    ),
    "a fori_loop body that returns a value": Case(
        "fori_loop",
        """
        @nki.jit
        def kernel(x):
            def body(i):
                return 3  # 0.6: NK601; 0.7: NK601

            nl.fori_loop(0, 4, body)
            factor = 1
        """,
        1,
    ),
    "while_loop": Case(
        "while_loop",
        """
        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            total = nl.zeros(x.shape, dtype=x.dtype)
            tile = nl.load(x)
            left = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
            nisa.memset(left, 3)

            def body(more):
                nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)
                nisa.tensor_scalar(dst=left, data=left, op0=nl.subtract, operand0=1)
                nisa.register_load(more, left)
                return more

            nl.while_loop(nisa.register_alloc(3), body)
            nl.store(out, total)
            return out
        """,
        3,
    ),
    "a while_loop that never runs": Case(
        "while_loop",
        """
        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            total = nl.load(x)

            def body(more):
                nisa.memset(total, 0)
                return more

            nl.while_loop(nisa.register_alloc(0), body)
            nl.store(out, total)
            return out
        """,
        1,
    ),
    "a while_loop body that returns a tensor": Case(
        "while_loop",
        """
        @nki.jit
        def kernel(x):
            tile = nl.load(x)

            def body(more):
                return nl.exp(tile)  # 0.6: lint NK609; 0.7: lint NK609

            nl.while_loop(nisa.register_alloc(1), body)  # 0.6: run NK609; 0.7: run NK609
            factor = 1
        """,
        1,
    ),
}
