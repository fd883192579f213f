"""The use of the truth value that an instruction takes: in a ``while``, an ``assert``, an ``and`` of two masks."""

from __future__ import annotations

import ast
import dis
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import lru_cache
from types import CodeType

from nkitools.authors_code.instructions import instructions_of
from nkitools.authors_code.positions import position_of
from nkitools.authors_code.source_text import nodes_of, text_of

_SILENT = ("CACHE", "EXTENDED_ARG", "NOT_TAKEN")  # nothing that the author wrote
_COMPOSED = (ast.BoolOp, ast.Compare, ast.UnaryOp)


def is_while_test(code: CodeType, offset: int) -> bool:
    """Return whether the truth value that the instruction at ``offset`` takes is the whole test of a ``while``.

    True if the source is not at hand: NKI 0.6 has no other use for the truth value of a register.
    """
    return _is_while_test(code.co_filename, code, offset)


@lru_cache(maxsize=256)
def _is_while_test(file: str, code: CodeType, offset: int) -> bool:
    # The same code in two files is equal to Python, and one of them may have no source.
    line, column = position_of(code, offset)
    text = text_of(code)
    if line is None or not text:
        return True
    return any(at == line and (start == column or column is None) for at, start in _while_tests(text))


@lru_cache(maxsize=16)
def _while_tests(text: str) -> frozenset[tuple[int, int]]:
    """Return the line and column of each ``while`` whose test is one value, and of that test.

    Python 3.11 reports the former.
    """
    loops = [node for node in nodes_of(text) if isinstance(node, ast.While) and not isinstance(node.test, _COMPOSED)]
    return frozenset((each.lineno, each.col_offset) for loop in loops for each in (loop, loop.test))


def is_asserted(code: CodeType, offset: int) -> bool:
    """Return whether the truth value that the instruction at ``offset`` takes decides only an ``assert``."""
    offsets, instructions = instructions_of(code)
    # Python 3.13 asks in an instruction of its own, before the jump.
    position = bisect_right(offsets, offset) - 1
    position += instructions[position].opname == "TO_BOOL"
    jump = instructions[position]
    if "JUMP" not in jump.opname or not jump.opname.endswith(("_IF_TRUE", "_IF_FALSE")):
        return False
    failing = position + 1 if jump.opname.endswith("TRUE") else bisect_right(offsets, jump.argval) - 1
    return _raises_assertion(instructions[failing:])


@lru_cache(maxsize=256)
def is_tested(code: CodeType, offset: int) -> bool:
    """Return whether the value of the instruction at ``offset``, a comparison, is tested for truth, as by an ``if``."""
    offsets, instructions = instructions_of(code)
    after = [each.opname for each in instructions[bisect_right(offsets, offset) :][:2] if each.opname != "COPY"]
    return bool(after) and (after[0] in ("TO_BOOL", "UNARY_NOT") or ("JUMP" in after[0] and "_IF_" in after[0]))


@lru_cache(maxsize=256)
def is_attribute_test(code: CodeType, offset: int) -> bool:
    """Return whether the truth value that the instruction at ``offset`` takes is that of an attribute (``x.y``)."""
    offsets, instructions = instructions_of(code)
    position = bisect_right(offsets, offset) - 1
    asks = instructions[position].opname
    # `and` and `or` keep a copy of the value, since Python 3.12 by an instruction of its own.
    loads = [each.opname for each in instructions[max(0, position - 2) : position] if each.opname != "COPY"]
    asked = asks in ("TO_BOOL", "UNARY_NOT") or "JUMP" in asks
    return asked and loads[-1:] == ["LOAD_ATTR"]


def _raises_assertion(instructions: list[dis.Instruction]) -> bool:
    """Return whether the first name that code loads is the AssertionError to raise, or pytest's own for it."""
    for each in instructions:
        if each.opname.startswith("LOAD_") and each.opname not in ("LOAD_CONST", "LOAD_SMALL_INT"):
            name = each.argval
            return name in (None, "AssertionError", AssertionError) or str(name).startswith("@py")
    return False


@lru_cache(maxsize=256)
def right_of_and(code: CodeType, offset: int) -> range | None:
    """Return `right_side` of the instructions of ``code``."""
    return right_side(dis.get_instructions(code), offset)


def right_side(instructions: Iterable[dis.Instruction], offset: int) -> range | None:
    """Return the range of the right side of an ``and`` whose left side the instruction at ``offset`` tests.

    None if the truth value decides something else, as in ``if a and b``, ``a or b``, ``not a`` and ``0 <= i < n``, or
    if the right side makes no comparison.
    """
    code = [each for each in instructions if each.opname not in _SILENT]
    offsets = [each.offset for each in code]
    asked = bisect_left(offsets, offset)
    jump = asked + (code[asked].opname == "TO_BOOL")  # Python 3.13 asks in an instruction of its own
    if code[jump].opname == "JUMP_IF_FALSE_OR_POP":  # Python 3.11
        left = code[:asked]
    elif (
        _is_copy(code[asked - 1], 1) and code[jump].opname == "POP_JUMP_IF_FALSE" and code[jump + 1].opname == "POP_TOP"
    ):
        left = code[: asked - 1]
    else:
        return None
    is_chain = len(left) > 1 and _is_copy(left[-2], 2)  # of the middle of three, which is compared twice
    right = code[jump + 1 : bisect_left(offsets, code[jump].argval)]
    if is_chain or not _makes_comparison(right):
        return None
    return range(right[0].offset, code[jump].argval)


def _is_copy(instruction: dis.Instruction, depth: int) -> bool:
    return instruction.opname == "COPY" and instruction.arg == depth


def _makes_comparison(code: list[dis.Instruction]) -> bool:
    """Return whether the value of the code is a comparison, or comparisons joined by &."""
    code = [each for each in code if each.opname != "RETURN_VALUE"]  # both ways may end in a return
    if not code:
        return False
    is_last = code[-1].opname == "COMPARE_OP" or (code[-1].opname == "BINARY_OP" and code[-1].argrepr == "&")
    return is_last and any(each.opname == "COMPARE_OP" for each in code)
