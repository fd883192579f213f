"""Functions: how they are made, how they are called, and what Python's own do with them."""

from __future__ import annotations

from tests.dialects.modern.python_under_tracing.cases import Case

FUNCTIONS = {
    "a generator of tiles": Case(
        "generators",
        """
        def halves(x):
            for start in (0, 64):
                yield nl.ds(start, 64), start // 64 + 1  # 0.6: lint NK616

        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            for rows, factor in halves(x):
                nl.store(out[rows, :], nl.multiply(nl.load(x[rows, :]), factor))
            return out
        """,
        lambda x: x * ([[1]] * 64 + [[2]] * 64),
    ),
    "a generator that yields from another": Case(
        "generators",
        """
        def small():
            yield 1  # 0.6: lint NK616
            yield 2  # 0.6: lint NK616

        def every():
            yield from small()  # 0.6: lint NK616
            yield 3  # 0.6: lint NK616

        @nki.jit
        def kernel(x):
            factor = 0
            for each in every():
                factor += each
        """,
        6,
    ),
    "a generator expression": Case(
        "generators",
        """
        @nki.jit
        def kernel(x):
            factor = sum(each * each for each in range(4))  # 0.6: lint NK616, lint NK616
        """,
        14,
    ),
    "next of a generator": Case(
        "generators",
        """
        def numbers():
            yield 5  # 0.6: lint NK616
            yield 7  # 0.6: lint NK616

        @nki.jit
        def kernel(x):
            given = numbers()
            first = next(given)  # 0.6: lint NK616
            factor = first - next(given)  # 0.6: lint NK616
        """,
        -2,
    ),
    "a keyword-only parameter": Case(
        "keyword-only parameters",
        """
        @nki.jit
        def kernel(x, *, factor=3):  # 0.6: NK601
        """,
        3,
    ),
    "one of a helper": Case(
        "keyword-only parameters",
        """
        def scale(*, by):  # 0.6: lint NK616
            return 2 * by

        @nki.jit
        def kernel(x):
            factor = scale(by=2)
        """,
        4,
    ),
    "any number of arguments": Case(
        "keyword-only parameters",
        """
        def total(*each, **more):  # 0.6: lint NK616, lint NK616
            return len(each) + len(more)

        @nki.jit
        def kernel(x):
            pair = (1, 2)
            factor = total(*pair, a=1)  # 0.6: lint NK616
        """,
        3,
    ),
    "a list comprehension": Case(
        "comprehensions and builtins",
        """
        @nki.jit
        def kernel(x):
            widths = [each for each in range(6) if each % 2]  # 0.6: lint NK616
            factor = widths[2]
        """,
        5,
    ),
    "a comprehension of two loops": Case(
        "comprehensions and builtins",
        """
        @nki.jit
        def kernel(x):
            pairs = [(row, column) for row in range(2) for column in range(3)]  # 0.6: lint NK616
            factor = len(pairs)
        """,
        6,
    ),
    "tiles of a comprehension": Case(
        "comprehensions and builtins",
        """
        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            tiles = [nl.load(x[:, nl.ds(32 * part, 32)]) for part in range(2)]  # 0.6: lint NK616
            for part, tile in enumerate(reversed(tiles)):  # 0.6: lint NK616, lint NK616
                nl.store(out[:, nl.ds(32 * part, 32)], tile)
            return out
        """,
        lambda x: x[:, list(range(32, 64)) + list(range(32))],
    ),
    "lambda": Case(
        "comprehensions and builtins",
        """
        @nki.jit
        def kernel(x):
            double = lambda each: 2 * each  # 0.6: lint NK616
            factor = double(4)
        """,
        8,
    ),
    "zip, any, all, sorted": Case(
        "comprehensions and builtins",
        """
        @nki.jit
        def kernel(x):
            ordered = sorted((3, 1, 2))  # 0.6: lint NK616
            factor = 0
            for left, right in zip(ordered, (10, 20, 30)):  # 0.6: lint NK616
                factor += left * right
            if any((False, factor > 100)) and all((True, True)):  # 0.6: lint NK616, lint NK616
                factor = factor + 1
        """,
        141,
    ),
    "an assignment expression": Case(
        "comprehensions and builtins",
        """
        @nki.jit
        def kernel(x):
            if (width := x.shape[1]) > 32:  # 0.6: lint NK616
                factor = width // 16
        """,
        4,
    ),
    "a closure": Case(
        "closures, functions as values, partial",
        """
        def maker(by):
            def scale(each):
                return by * each
            return scale

        @nki.jit
        def kernel(x):
            factor = maker(3)(5)
        """,
        15,
    ),
    "functools.partial": Case(
        "closures, functions as values, partial",
        """
        import functools

        def scale(by, each):
            return by * each

        @nki.jit
        def kernel(x):
            triple = functools.partial(scale, 3)
            factor = triple(2)
        """,
        6,
    ),
    "a function with state": Case(
        "closures, functions as values, partial",
        """
        @nki.jit
        def kernel(x):
            count = 0

            def step():
                nonlocal count  # 0.6: lint NK616
                count += 2

            step()  # 0.6: NK601
            step()  # 0.6: NK601
            factor = count
        """,
        4,
    ),
    "keyword arguments of a nested function": Case(
        "keyword arguments of nested functions",
        """
        @nki.jit
        def kernel(x):
            def scale(by, each):
                return by - each

            factor = scale(each=1, by=4)  # 0.6: NK601
        """,
        3,
    ),
    "a nested function by another name, and in another one": Case(
        "closures, functions as values, partial",
        """
        def helper(by):
            def scale(each):
                return by * each

            def twice(each):
                return scale(each) + scale(each)  # 0.6: NK601, NK601

            again = twice
            return again(3)  # 0.6: NK601

        @nki.jit
        def kernel(x):
            factor = helper(2)
        """,
        12,
    ),
    "a function of the function that makes the kernel": Case(
        "closures, functions as values, partial",
        """
        def made():
            def scale(each):
                return 2 * each

            @nki.jit
            def kernel(x):
                factor = scale(3)
                out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
                nl.store(out, nl.multiply(nl.load(x), factor))
                return out

            return kernel

        kernel = made()
        """,
        6,
    ),
    "keyword arguments of a nested kernel": Case(
        "keyword arguments of nested functions",
        """
        @nki.jit
        def inner(tile, by):
            return nl.multiply(tile, by)

        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            nl.store(out, inner(by=3, tile=nl.load(x)))
            return out
        """,
        3,
    ),
    "recursion": Case(
        "recursion",
        """
        def factorial(n):
            return 1 if n < 2 else n * factorial(n - 1)

        @nki.jit
        def kernel(x):
            factor = factorial(4)
        """,
        24,
    ),
    "recursion over tiles": Case(
        "recursion",
        """
        def fold(x, start, size):
            if size == 32:
                return nl.load(x[:, nl.ds(start, 32)])
            half = size // 2
            return nl.add(fold(x, start, half), fold(x, start + half, half))

        @nki.jit
        def kernel(x):
            out = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.shared_hbm)
            nl.store(out, fold(x, 0, 64))
            return out
        """,
        lambda x: x[:, :32] + x[:, 32:],
    ),
}
