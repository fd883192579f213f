"""Numbers, containers and modules of the host."""

from __future__ import annotations

from tests.dialects.modern.python_under_tracing.cases import Case

VALUES = {
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
    "an integer of more than 64 bits": Case(
        "integers, floats",
        """
        @nki.jit
        def kernel(x):
            large = 1267650600228229401496703205376  # 0.6: lint NK616
            factor = large // 422550200076076467165567735126  # 0.6: lint NK616
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
            import os  # 0.6: NK601
            factor = len(os.path.join("a", "b"))
        """,
        3,
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
}
