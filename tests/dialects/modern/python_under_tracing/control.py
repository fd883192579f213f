"""Control flow of the host: what unrolls, what raises, and what a tensor or a register cannot steer."""

from __future__ import annotations

from tests.dialects.modern.python_under_tracing.cases import Case

CONTROL = {
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
    "try and except": Case(
        "try, raise, with, assert",
        """
        @nki.jit
        def kernel(x):
            try:  # 0.6: lint NK616
                factor = {"a": 1}["b"]
            except KeyError:
                factor = 4
        """,
        4,
    ),
    "an exception of the kernel's own": Case(
        "try, raise, with, assert",
        """
        @nki.jit
        def kernel(x):
            if x.shape[0] != 64:
                raise ValueError("64 rows")  # 0.6: NK601
            factor = 1
        """,
        1,
        raises=ValueError,
    ),
    "an exception that a helper's helper does not raise": Case(
        "try, raise, with, assert",
        """
        def checked(rows):
            if rows > 128:
                raise ValueError("at most 128 rows")  # 0.6: NK601
            return rows

        def factor_of(rows):
            return checked(rows) // 32

        @nki.jit
        def kernel(x):
            factor = factor_of(x.shape[0])
        """,
        4,
    ),
    "an exception of the function that launches": Case(
        "try, raise, with, assert",
        """
        def launched(x):
            if x.shape[0] > 128:
                raise ValueError("at most 128 rows")
            return kernel(x)

        @nki.jit
        def kernel(x):
            factor = 3
        """,
        3,
    ),
    "a context manager of one's own": Case(
        "try, raise, with, assert",
        """
        from contextlib import contextmanager

        @contextmanager
        def scaled(by):
            yield 2 * by  # 0.6: lint NK616

        @nki.jit
        def kernel(x):
            with scaled(3) as factor:  # 0.6: lint NK616
                pass
        """,
        6,
    ),
    "an assert of the host": Case(
        "try, raise, with, assert",
        """
        @nki.jit
        def kernel(x):
            assert x.shape[0] == 128, "128 rows"
            factor = 2
        """,
        2,
    ),
    "NumPy on a tensor": Case(
        "if, while, and, or, not on a tensor",
        """
        @nki.jit
        def kernel(x):
            tile = nl.load(x)
            factor = float(np.sum(tile))  # 0.6: NK601; 0.7: NK601
        """,
        1,
    ),
    "if of a tensor": Case(
        "if, while, and, or, not on a tensor",
        """
        @nki.jit
        def kernel(x):
            tile = nl.load(x)
            factor = 1
            if tile:  # 0.6: NK602; 0.7: NK602
                factor = 2
        """,
        1,
    ),
    "while of a tensor": Case(
        "if, while, and, or, not on a tensor",
        """
        @nki.jit
        def kernel(x):
            tile = nl.load(x)
            factor = 1
            while tile:  # 0.6: NK602; 0.7: NK602
                factor = 2
        """,
        1,
    ),
    "not of a tensor": Case(
        "if, while, and, or, not on a tensor",
        """
        @nki.jit
        def kernel(x):
            tile = nl.load(x)
            factor = not tile  # 0.6: NK602; 0.7: NK602
        """,
        1,
    ),
    "and of a tensor": Case(
        "if, while, and, or, not on a tensor",
        """
        @nki.jit
        def kernel(x):
            tile = nl.load(x)
            factor = tile and 3  # 0.6: NK602; 0.7: NK602
        """,
        1,
    ),
    "int of a tensor": Case(
        "if, while, and, or, not on a tensor",
        """
        @nki.jit
        def kernel(x):
            tile = nl.load(x)
            factor = int(tile)  # 0.6: NK602; 0.7: NK602
        """,
        1,
    ),
    "an operator on a tensor": Case(
        "if, while, and, or, not on a tensor",
        """
        @nki.jit
        def kernel(x):
            tile = nl.load(x)
            factor = 1
            if tile > 0:  # 0.6: NK602; 0.7: NK602
                factor = 2
        """,
        1,
    ),
    "or of a tensor": Case(
        "if, while, and, or, not on a tensor",
        """
        @nki.jit
        def kernel(x):
            factor = 2
            tile = nl.load(x)
            kept = tile or None  # 0.6: NK602; 0.7: NK602
        """,
        2,
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
}
