"""Loops, unrolled and on the device, and registers in Python."""

from __future__ import annotations

from tests.dialects.modern.python_under_tracing.cases import Case

LOOPS = {
    "for over a range": Case(
        "for over range, list, generator",
        """
        @nki.jit
        def kernel(x):
            factor = 0
            for each in range(1, 8, 3):
                factor += each
        """,
        12,
    ),
    "for over a list of tiles": Case(
        "for over range, list, generator",
        """
        @nki.jit
        def kernel(x):
            out = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.shared_hbm)
            total = nl.zeros((128, 32), dtype=x.dtype)
            for tile in [nl.load(x[:, 0:32]), nl.load(x[:, 32:64])]:
                nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)
            nl.store(out, total)
            return out
        """,
        lambda x: x[:, :32] + x[:, 32:],
    ),
    "the else of a loop": Case(
        "for over range, list, generator",
        """
        @nki.jit
        def kernel(x):
            for each in range(3):  # 0.6: lint NK616
                pass
            else:
                factor = each
        """,
        2,
    ),
    "a range that the host steers": Case(
        "while with a host condition",
        """
        @nki.jit
        def kernel(x):
            width, factor = x.shape[1], 0
            while width > 1:
                width, factor = width // 2, factor + 1
        """,
        6,
    ),
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
    "if of a register": Case(
        "registers in Python control flow",
        """
        @nki.jit
        def kernel(x):
            flag = nisa.register_alloc(1)
            factor = 1
            if flag:  # 0.6: NK602; 0.7: NK602
                factor = 2
        """,
        1,
    ),
    "not of a register": Case(
        "registers in Python control flow",
        """
        @nki.jit
        def kernel(x):
            flag = nisa.register_alloc(1)
            factor = 3 if not flag else 2  # 0.6: NK602; 0.7: NK602
        """,
        1,
    ),
    "and of a register": Case(
        "registers in Python control flow",
        """
        @nki.jit
        def kernel(x):
            flag = nisa.register_alloc(1)
            factor = flag and 3  # 0.6: NK602; 0.7: NK602
        """,
        1,
    ),
    "bool of a register": Case(
        "registers in Python control flow",
        """
        @nki.jit
        def kernel(x):
            flag = nisa.register_alloc(1)
            factor = bool(flag)  # 0.6: NK602; 0.7: NK602
        """,
        1,
    ),
    "int of a register": Case(
        "registers in Python control flow",
        """
        @nki.jit
        def kernel(x):
            number = nisa.register_alloc(4)
            factor = int(number)  # 0.6: NK601; 0.7: NK602
        """,
        1,
    ),
    "range of a register": Case(
        "registers in Python control flow",
        """
        @nki.jit
        def kernel(x):
            number = nisa.register_alloc(4)
            factor = 0
            for each in range(number):  # 0.6: NK601; 0.7: NK602
                factor += each
        """,
        1,
    ),
    "a register that is compared": Case(
        "registers in Python control flow",
        """
        @nki.jit
        def kernel(x):
            number = nisa.register_alloc(4)
            factor = 1
            if number > 2:  # 0.6: NK601; 0.7: NK602
                factor = 2
        """,
        1,
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
    "a tensor of the body that is used outside": Case(
        "a body is traced once",
        """
        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            tiles = []

            def body(i):
                tiles.append(nl.load(x))  # 0.6: NK605; 0.7: NK605

            nl.fori_loop(0, 1, body)
            nl.store(out, tiles[0])
            return out
        """,
        1,
    ),
    "a number that the body rebinds": Case(
        "a body is traced once",
        """
        @nki.jit
        def kernel(x):
            count = 0

            def body(i):
                nonlocal count  # 0.6: lint NK616
                count = count + 1  # 0.7: NK622

            nl.fori_loop(0, 1, body)
            factor = count
        """,
        1,
    ),
    "a global that the body rebinds": Case(
        "a body is traced once",
        """
        count = 0

        @nki.jit
        def kernel(x):
            def body(i):
                global count  # 0.6: NK617; 0.7: NK617
                count += 1  # 0.7: NK622

            nl.fori_loop(0, 1, body)
            factor = 1
        """,
        1,
    ),
    "a list that the body appends to": Case(
        "a body is traced once",
        """
        @nki.jit
        def kernel(x):
            seen = []

            def body(i):
                seen.append(1)  # 0.7: NK622

            nl.fori_loop(0, 1, body)
            factor = len(seen)
        """,
        1,
    ),
    "a dictionary that the body updates": Case(
        "a body is traced once",
        """
        @nki.jit
        def kernel(x):
            seen = {"a": 1}

            def body(i):
                seen.update(b=2)  # 0.7: NK622

            nl.fori_loop(0, 1, body)
            factor = len(seen)
        """,
        2,
    ),
    "an item that the body sets": Case(
        "a body is traced once",
        """
        @nki.jit
        def kernel(x):
            counts = [1, 2]

            def body(i):
                counts[0] = 5  # 0.7: NK622

            nl.fori_loop(0, 1, body)
            factor = counts[0]
        """,
        5,
    ),
    "an attribute that the body sets": Case(
        "a body is traced once",
        """
        class State(nl.NKIObject):
            count: int = 0

        @nki.jit
        def kernel(x):
            state = State()

            def body(i):
                state.count = state.count + 1  # 0.7: NK622

            nl.fori_loop(0, 1, body)
            factor = state.count
        """,
        1,
    ),
    "a method that the body calls": Case(
        "a body is traced once",
        """
        class State(nl.NKIObject):
            count: int = 0

            def bump(self):
                self.count = self.count + 1  # 0.7: NK622

        @nki.jit
        def kernel(x):
            state = State()
            nl.fori_loop(0, 1, lambda i: state.bump())  # 0.6: lint NK616
            factor = state.count
        """,
        1,
    ),
    "a method that is the body": Case(
        "a body is traced once",
        """
        class State(nl.NKIObject):
            count: int = 0

            def step(self, i):
                self.count = self.count + 1  # 0.7: NK622

        @nki.jit
        def kernel(x):
            state = State()
            nl.fori_loop(0, 1, state.step)
            factor = state.count
        """,
        1,
    ),
    "a while_loop body that counts": Case(
        "a body is traced once",
        """
        @nki.jit
        def kernel(x):
            count = [0]
            left = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
            nisa.memset(left, 0)

            def body(more):
                count[0] += 1  # 0.7: NK622
                nisa.register_load(more, left)
                return more

            nl.while_loop(nisa.register_alloc(1), body)
            factor = count[0]
        """,
        1,
    ),
    "a body of the file": Case(
        "a body is traced once",
        """
        seen = {}

        def body(i):
            seen["last"] = 3  # 0.6: lint NK616; 0.7: NK622

        @nki.jit
        def kernel(x):
            nl.fori_loop(0, 1, body)
            factor = 1
        """,
        1,
    ),
    "a lambda that changes a list": Case(
        "a body is traced once",
        """
        @nki.jit
        def kernel(x):
            seen = []
            nl.fori_loop(0, 1, lambda i: seen.append(2))  # 0.6: lint NK616; 0.7: NK622
            factor = seen[0]
        """,
        2,
    ),
    "a body with state of its own": Case(
        "a body is traced once",
        """
        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            total = nl.zeros(x.shape, dtype=x.dtype)

            def body(i):
                parts = []
                for column in range(2):
                    parts.append(32 * column)
                for start in parts:
                    tile = nl.load(x[:, nl.ds(start, 32)])
                    part = total[:, nl.ds(start, 32)]
                    nisa.tensor_tensor(dst=part, data1=part, data2=tile, op=nl.add)

            nl.fori_loop(0, 2, body)
            nl.store(out, total)
            return out
        """,
        2,
    ),
    "a loop in nl.no_reorder": Case(
        "a body is traced once",
        """
        @nki.jit
        def kernel(x):
            def body(i):
                pass

            with nl.no_reorder():
                nl.fori_loop(0, 2, body)  # 0.6: NK601; 0.7: NK601
            factor = 1
        """,
        1,
    ),
}
