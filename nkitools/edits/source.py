"""An author's text, whose nodes know their places, and edits of it. No other module changes a text by places."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

# What a kernel says to its reader and not to the chip: a mistake in it changes no result.
_ASIDE = ("device_print",)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LINE_END = re.compile(rb"\r\n?|\n")  # as Python counts lines: a form feed ends none
_COMMA = re.compile(rb"(?:\s*,\s*)?")
_COMMA_INSIDE = re.compile(rb"\s*,\s*(?![\s)])")
_CLOSED = re.compile(rb"(?:(?:\s|#.*\n)*\))*")


class Edit(NamedTuple):
    """A piece of a text and what takes its place: lines from 1, columns in bytes from 0."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str
    after: str = ""  # the line that follows the block which begins here
    about: int = 0  # the line that the edit is about, where that is not its first one


@dataclass(frozen=True)
class Text:
    """The text of a file."""

    text: str

    @cached_property
    def _bytes(self) -> bytes:
        return self.text.encode()

    @cached_property
    def _line_begins(self) -> list[int]:
        return [0, *(each.end() for each in _LINE_END.finditer(self._bytes))]

    @cached_property
    def lines(self) -> list[str]:
        """The lines, without their ends; the one behind the last end is empty."""
        return [each.decode() for each in _LINE_END.split(self._bytes)]

    def character(self, line: int, column: int) -> int:
        """Return the index of the character that begins at a byte of a line; lines count from 1, bytes from 0."""
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        return len(text.encode()[:column].decode(errors="replace"))

    def plain(self, edit: Edit) -> dict[str, int | str]:
        """Return an edit as plain data, with columns as editors count them: from 1, in characters."""
        return {
            "line": edit.line,
            "column": self.character(edit.line, edit.column) + 1,
            "end_line": edit.end_line,
            "end_column": self.character(edit.end_line, edit.end_column) + 1,
            "text": edit.text,
        }

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return the bytes where a node begins and ends."""
        line, column, end_line, end_column, *_ = replaced(node, "")
        return self._line_begins[line - 1] + column, self._line_begins[end_line - 1] + end_column

    def says(self, node: ast.AST) -> str:
        """Return a node as it is written, or as Python writes it where it is in no text."""
        if not hasattr(node, "lineno"):
            return ast.unparse(node)
        start, stop = self.span(node)
        return self._bytes[start:stop].decode()

    def said(self, edit: Edit) -> str:
        """Return the piece that an edit replaces."""
        start, stop = self.bounds(edit)
        return self._bytes[start:stop].decode()

    def edited(self, edits: Iterable[Edit]) -> str:
        """Return the text after edits that do not overlap."""
        raw = self._bytes
        for (start, stop), new in sorted({(self.bounds(each), each.text) for each in edits}, reverse=True):
            raw = raw[:start] + new.encode() + raw[stop:]
        return raw.decode()

    def swap(self, first: ast.AST, second: ast.AST) -> Edit:
        """Let two nodes change places; ``first`` stands before ``second``."""
        (start, end), (begin, stop) = self.span(first), self.span(second)
        new = self._bytes[begin:stop] + self._bytes[end:begin] + self._bytes[start:end]
        return self._between(start, stop, new.decode(), line_of(first))

    def between(self, first: ast.AST, last: ast.AST) -> str:
        """Return the text from the begin of a node to that of a later one."""
        return self._bytes[self.span(first)[0] : self.span(last)[0]].decode()

    def with_argument(self, call: ast.Call, text: str) -> Edit:
        """Give a call another argument as the last one."""
        end = self.span(call)[1] - 1
        given = [self.span(each)[1] for each in (*call.args, *call.keywords)]
        if given:  # behind the brackets around the last one, in front of a comma
            closed = _CLOSED.match(self._bytes, max(given), end)
            end, text = closed.end() if closed else end, f", {text}"
        return self._between(end, end, text, line_of(call))

    def without_argument(self, call: ast.Call, argument: ast.keyword) -> Edit:
        """Leave out a keyword of a call, with a comma."""
        start, stop = self.span(argument)
        before = self._bytes[:start].rstrip()
        after = (_COMMA_INSIDE if before.endswith(b",") else _COMMA).match(self._bytes, stop)
        if after:
            stop = after.end()
        else:
            start = len(before) - 1
        return self._between(start, stop, "", line_of(argument.value))

    def insert_after(self, node: ast.stmt, statement: str) -> Edit:
        """Put a statement of its own line after another one, and the comment behind that."""
        line = node.end_lineno or node.lineno
        end = self._line_begins[line - 1] + len(self.lines[line - 1].encode())
        return self._between(end, end, f"\n{' ' * node.col_offset}{statement}", node.lineno)

    def bounds(self, edit: Edit) -> tuple[int, int]:
        """Return the bytes where an edit begins and ends."""
        return self._line_begins[edit.line - 1] + edit.column, self._line_begins[edit.end_line - 1] + edit.end_column

    def _between(self, start: int, stop: int, new: str, about: int) -> Edit:
        return Edit(*self._place(start), *self._place(stop), new, about=about)

    def _place(self, byte: int) -> tuple[int, int]:
        line = bisect_right(self._line_begins, byte)
        return line, byte - self._line_begins[line - 1]


@dataclass(frozen=True)
class Source(Text):
    """A module of kernels. ``kernel``: its name among the kernels, such as ``legacy.softmax``."""

    kernel: str

    @cached_property
    def tree(self) -> ast.Module:
        """The module."""
        return ast.parse(self.text)

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """The node that each node is part of."""
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def known(self) -> dict[ast.AST, object]:
        """The findings of a reader of the module about its nodes."""
        return {}

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """The nodes that compute, in the order of the text: no assertion, docstring, signature or device print."""
        found: list[ast.AST] = []
        for function in self.functions:
            for statement in function.body:
                found += self._deeds(statement)
        return found

    @cached_property
    def functions(self) -> list[ast.FunctionDef]:
        """The functions of the module, and the methods of its classes."""
        bodies = [self.tree.body, *(each.body for each in self.tree.body if isinstance(each, ast.ClassDef))]
        return [node for body in bodies for node in body if isinstance(node, ast.FunctionDef)]

    @cached_property
    def constants(self) -> list[ast.Assign]:
        """The module's own constants."""
        return [node for node in self.tree.body if isinstance(node, ast.Assign)]

    def _deeds(self, node: ast.AST) -> Iterator[ast.AST]:
        if isinstance(node, ast.Assert) or (isinstance(node, ast.Expr) and self._is_aside(node.value)):
            return
        yield node
        for child in ast.iter_child_nodes(node):
            yield from self._deeds(child)

    @staticmethod
    def _is_aside(value: ast.expr) -> bool:
        return isinstance(value, ast.Constant) or (isinstance(value, ast.Call) and callee(value) in _ASIDE)

    def function_at(self, line: int) -> str:
        """The name of the function that a line belongs to."""
        inside = (each for each in self.functions if each.lineno <= line <= (each.end_lineno or 0))
        return next((each.name for each in inside), "")

    def enclosing(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, the nearest first."""
        while node in self.parents:
            node = self.parents[node]
            yield node


def replaced(node: ast.AST, text: str) -> Edit:
    """Return the edit that puts a text in the place of a node."""
    assert isinstance(node, ast.expr | ast.stmt | ast.keyword)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return Edit(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset, text)


def dropped(node: ast.stmt) -> Edit:
    """Return the edit that puts ``pass`` in the place of a statement."""
    return replaced(node, "pass")


def assigned(first: ast.AST, second: ast.AST, sign: str) -> Edit:
    """Return the edit that puts a sign between the sides of an assignment."""
    left, right = replaced(first, ""), replaced(second, "")
    return Edit(left.end_line, left.end_column, right.line, right.column, f" {sign} ", about=left.line)


def line_of(node: ast.AST) -> int:
    """The line where a node begins."""
    line = getattr(node, "lineno", 0)
    assert isinstance(line, int)
    return line


def callee(call: ast.AST) -> str:
    """The last word of the function that is called: ``load`` of ``nl.load(...)``; empty for anything else."""
    if not isinstance(call, ast.Call):
        return ""
    return last_word(call.func)


def last_word(node: ast.AST | None) -> str:
    """``float32`` of ``nl.float32``, a name itself; empty for anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def room(call: ast.AST) -> str:
    """``nl``, ``nisa`` or ``ncc`` of a call of theirs; empty for anything else."""
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        return call.func.value.id
    return ""


def keyword(call: ast.Call, name: str) -> ast.keyword | None:
    """Return a keyword of a call; None if it is not given."""
    return next((each for each in call.keywords if each.arg == name), None)


def tensor_of(node: ast.AST) -> str:
    """Return the name of a tensor or of a part of it: ``x`` of ``x`` and of ``x[0:4]``; empty for anything else."""
    return last_word(node.value if isinstance(node, ast.Subscript) else node)


def says_closed(source: Source, node: ast.expr) -> str:
    """Return an expression as it is written, in brackets where it may need them."""
    text = source.says(node)
    return f"({text})" if isinstance(node, ast.BinOp | ast.IfExp | ast.Compare | ast.BoolOp | ast.UnaryOp) else text
