"""Tell the truth values that decide a ``while`` from others; bytecode alone does not show them, the source does."""

from __future__ import annotations

import ast
from functools import lru_cache
from itertools import islice
from types import CodeType

from nkitools.authors_code.source_text import text_of

_COMPOSED = (ast.BoolOp, ast.Compare, ast.UnaryOp)


@lru_cache(maxsize=256)
def is_while_test(code: CodeType, offset: int) -> bool:
    """Return whether the truth value that the instruction at ``offset`` takes is the whole test of a ``while``.

    Where the source is not at hand the answer is yes: NKI 0.6 has no other use for the truth value of a register.
    """
    position = next(islice(code.co_positions(), offset // 2, None), None)
    text = text_of(code)
    if position is None or position[0] is None or not text:
        return True
    line, _, column, _ = position
    return any(at == line and (start == column or column is None) for at, start in _while_tests(text))


@lru_cache(maxsize=16)
def _while_tests(text: str) -> frozenset[tuple[int, int]]:
    """Return line and column of each ``while`` whose test is one value, and of the test: Python 3.11 has the first."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return frozenset()
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.While) and not isinstance(node.test, _COMPOSED)]
    return frozenset((each.lineno, each.col_offset) for loop in loops for each in (loop, loop.test))
