"""Bodies of loops on the device, which are traced once."""

from __future__ import annotations

from tests.dialects.modern.python_under_tracing.cases import Case

BODIES = {
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
