"""Python that computes numbers and shapes while a kernel is traced."""

from __future__ import annotations

from tests.dialects.modern.python_under_tracing.cases import Case

PYTHON = {
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
    "a class that inherits": Case(
        "class inheritance, super()",
        """
        class Base:
            def scale(self):
                return 2

        class Mine(Base):  # 0.6: NK601
            def scale(self):
                return 3 * super().scale()  # 0.6: lint NK616

        @nki.jit
        def kernel(x):
            factor = Mine().scale()
        """,
        6,
    ),
    "two bases": Case(
        "class inheritance, super()",
        """
        class Offset:
            def add(self):
                return 10

        class Mine(nl.NKIObject, Offset):  # 0.6: NK601
            width: int = 2

        @nki.jit
        def kernel(x):
            mine = Mine()
            factor = mine.add() + mine.width
        """,
        12,
    ),
    "an abstract base": Case(
        "class inheritance, super()",
        """
        import abc

        class Plan(abc.ABC):
            @abc.abstractmethod
            def parts(self): ...

        class Four(Plan):  # 0.6: NK601
            def parts(self):
                return 4

        @nki.jit
        def kernel(x):
            factor = Four().parts()
        """,
        4,
    ),
    "a plain class": Case(
        "classes without NKIObject",
        """
        class Plan:  # 0.6: NK601
            def __init__(self, width):
                self.width = width

        @nki.jit
        def kernel(x):
            factor = Plan(3).width
        """,
        3,
    ),
    "a class inside of the kernel": Case(
        "classes without NKIObject",
        """
        @nki.jit
        def kernel(x):
            class Plan:  # 0.6: NK601
                width = 9
            factor = Plan.width
        """,
        9,
    ),
    "an NKIObject": Case(
        "classes without NKIObject",
        """
        class Plan(nl.NKIObject):
            width: int
            depth: int = 5

        @nki.jit
        def kernel(x):
            factor = Plan(width=3).width + Plan(width=1).depth
        """,
        8,
    ),
    "two equal objects of an NKIObject class": Case(
        "== of user classes",
        """
        class Plan(nl.NKIObject):
            width: int

        @nki.jit
        def kernel(x):
            factor = 2 if Plan(3) == Plan(3) else 5
        """,
        5,
        results=(("0.6", 2),),
    ),
    "two unequal objects of an NKIObject class": Case(
        "== of user classes",
        """
        class Plan(nl.NKIObject):
            width: int

        @nki.jit
        def kernel(x):
            factor = 2 if Plan(3) != Plan(3) else 5
        """,
        2,
        results=(("0.6", 5),),
    ),
    "a class with an __eq__ of its own": Case(
        "== of user classes",
        """
        class Plan(nl.NKIObject):
            width: int

            def __eq__(self, other):
                return self.width % 2 == other.width % 2

        @nki.jit
        def kernel(x):
            factor = 2 if Plan(3) == Plan(5) else 5
        """,
        2,
    ),
    "two equal objects of a dataclass": Case(
        "== of user classes",
        """
        from dataclasses import dataclass

        @dataclass
        class Plan(nl.NKIObject):
            width: int

        @nki.jit
        def kernel(x):
            factor = 2 if Plan(3) == Plan(3) else 5
        """,
        2,
    ),
    "a list that looks for an object": Case(
        "== of user classes",
        """
        class Plan(nl.NKIObject):
            width: int

        @nki.jit
        def kernel(x):
            plans = [Plan(3)]
            factor = 2 if Plan(3) in plans else 5
        """,
        5,
        results=(("0.6", 2),),
    ),
    "an integer of more than 32 bits": Case(
        "integers, floats",
        """
        @nki.jit
        def kernel(x):
            large = 1099511627776  # 0.6: lint NK616
            factor = large // 549755813888  # 0.6: lint NK616
        """,
        2,
    ),
    "a float of 64 bits": Case(
        "integers, floats",
        """
        @nki.jit
        def kernel(x):
            factor = (1.0 + 1e-12 - 1.0) * 1e12
        """,
        (1.0 + 1e-12 - 1.0) * 1e12,
    ),
    "bytes and a complex number": Case(
        "integers, floats",
        """
        @nki.jit
        def kernel(x):
            factor = b"ab"[0] + abs(3 + 4j)  # 0.6: NK601, NK601
        """,
        102,
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
    "is None": Case(
        "is, is not",
        """
        @nki.jit
        def kernel(x, scale=None):
            factor = 3 if scale is None else scale  # 0.6: lint NK616
        """,
        3,
    ),
    "is not of a literal": Case(
        "is, is not",
        """
        @nki.jit
        def kernel(x, scale=False):
            factor = 3 if scale is not True else 4  # 0.6: NK601
        """,
        3,
    ),
    "integer keys": Case(
        "dictionaries",
        """
        @nki.jit
        def kernel(x):
            widths = {128: 2, 64: 3}  # 0.6: NK601, NK601
            factor = widths[x.shape[1]]
        """,
        3,
    ),
    "tuples as keys": Case(
        "dictionaries",
        """
        @nki.jit
        def kernel(x):
            widths = {}
            widths[(0, 1)] = 7  # 0.6: NK601
            factor = widths[(0, 1)]
        """,
        7,
    ),
    "a dictionary comprehension": Case(
        "dictionaries",
        """
        @nki.jit
        def kernel(x):
            squares = {str(each): each * each for each in range(4)}  # 0.6: lint NK616
            factor = squares["3"]
        """,
        9,
    ),
    "a set": Case(
        "sets, frozensets",
        """
        @nki.jit
        def kernel(x):
            seen = {1, 2, 2}  # 0.6: NK601
            factor = len(seen)
        """,
        2,
    ),
    "a frozenset": Case(
        "sets, frozensets",
        """
        @nki.jit
        def kernel(x):
            seen = frozenset((3, 3, 4))  # 0.6: NK601
            factor = max(seen)
        """,
        4,
    ),
    "a set comprehension": Case(
        "sets, frozensets",
        """
        @nki.jit
        def kernel(x):
            factor = len({each % 3 for each in range(7)})  # 0.6: NK601
        """,
        3,
    ),
    "a counter of collections": Case(
        "sets, frozensets",
        """
        import collections

        @nki.jit
        def kernel(x):
            counts = collections.Counter("abca")  # 0.6: NK601
            factor = counts["a"]
        """,
        2,
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
                raise ValueError("64 rows")  # 0.6: lint NK616
            factor = 1
        """,
        1,
        raises=ValueError,
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

            step()
            step()
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

            factor = scale(each=1, by=4)
        """,
        3,
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
    "a decorator": Case(
        "decorators, dataclasses, properties, classmethods",
        """
        import functools

        def doubled(function):
            @functools.wraps(function)
            def wrapper(*args):
                return 2 * function(*args)
            return wrapper

        @doubled
        def scale(by):
            return by + 1

        @nki.jit
        def kernel(x):
            factor = scale(4)
        """,
        10,
    ),
    "a frozen dataclass": Case(
        "decorators, dataclasses, properties, classmethods",
        """
        from dataclasses import dataclass, replace

        @dataclass(frozen=True)
        class Plan:  # 0.6: NK601
            width: int
            depth: int = 2

        @nki.jit
        def kernel(x):
            plan = replace(Plan(3), depth=5)
            factor = plan.width * plan.depth
        """,
        15,
    ),
    "a property and a classmethod": Case(
        "decorators, dataclasses, properties, classmethods",
        """
        class Plan(nl.NKIObject):
            width: int

            @classmethod
            def wide(cls):
                return cls(width=4)

            @property
            def area(self):
                return self.width * self.width

        @nki.jit
        def kernel(x):
            factor = Plan.wide().area
        """,
        16,
    ),
    "an enumeration": Case(
        "enumerations",
        """
        import enum

        class Mode(enum.Enum):
            FAST = 1
            EXACT = 2

        @nki.jit
        def kernel(x, mode=Mode.EXACT):
            factor = 3 if mode == Mode.EXACT else 4
        """,
        3,
    ),
    "flags": Case(
        "enumerations",
        """
        import enum

        class Mode(enum.Flag):
            SCALE = enum.auto()
            SHIFT = enum.auto()

        @nki.jit
        def kernel(x):
            mode = Mode.SCALE | Mode.SHIFT
            factor = 5 if Mode.SHIFT in mode else 6
        """,
        5,
    ),
    "match": Case(
        "enumerations",
        """
        @nki.jit
        def kernel(x):
            match x.shape:  # 0.6: lint NK616
                case (128, width):
                    factor = width // 32
        """,
        2,
    ),
    "a number of the file": Case(
        "globals, modules' state",
        """
        WIDTH = 7

        @nki.jit
        def kernel(x):
            factor = WIDTH
        """,
        7,
    ),
    "a global that the kernel counts": Case(
        "globals, modules' state",
        """
        calls = 1

        @nki.jit
        def kernel(x):
            global calls  # 0.6: NK617; 0.7: NK617
            calls = calls + 1
            factor = calls
        """,
        2,
    ),
    "a list that other code changes": Case(
        "globals, modules' state",
        """
        scales = [4]

        def grow():
            scales.append(2)

        @nki.jit
        def kernel(x):
            factor = scales[0]  # 0.6: NK617; 0.7: NK617
        """,
        4,
    ),
    "a mutable default of a helper": Case(
        "globals, modules' state",
        """
        def grown(seen=[]):
            seen.append(1)
            return len(seen)

        @nki.jit
        def kernel(x):
            first = grown()
            factor = grown() - first
        """,
        1,
    ),
    "NumPy on host values": Case(
        "NumPy, math, os on host values",
        """
        @nki.jit
        def kernel(x):
            factor = float(np.prod(np.array([2, 3, 4]))) + float(np.log2(x.shape[0]))
        """,
        31,
    ),
    "math on host values": Case(
        "NumPy, math, os on host values",
        """
        import math

        @nki.jit
        def kernel(x):
            factor = math.ceil(math.sqrt(x.shape[1] + 1))
        """,
        9,
    ),
    "an import inside of the kernel": Case(
        "NumPy, math, os on host values",
        """
        @nki.jit
        def kernel(x):
            import os  # 0.6: lint NK616
            factor = len(os.path.join("a", "b"))
        """,
        3,
    ),
    "an f-string and print": Case(
        "print, f-strings",
        """
        @nki.jit
        def kernel(x):
            text = f"{x.shape[1]:03}"
            print("width", text)
            factor = len(text)
        """,
        3,
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
            if tile > 0:  # 0.6: NK601; 0.7: NK601
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
    "os on host values": Case(
        "NumPy, math, os on host values",
        """
        import os

        @nki.jit
        def kernel(x):
            factor = 3 if os.path.basename("a/b") == "b" else 4
        """,
        3,
    ),
}
