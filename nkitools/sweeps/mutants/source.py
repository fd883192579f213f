"""A kernel's source as a tree whose nodes know their place in the text, and edits of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

# What a kernel says to its reader and not to the chip: a mistake in it changes no result.
_ASIDE = ("device_print",)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Edit:
    """The text from ``start`` to ``stop`` becomes ``new``; ``line`` is where the mistake stands."""

    start: int
    stop: int
    new: str
    line: int


@dataclass(frozen=True)
class Source:
    """A module of kernels. ``kernel``: its name among the kernels, such as ``legacy.softmax``."""

    kernel: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The module."""
        return ast.parse(self.text)

    @cached_property
    def lines(self) -> list[str]:
        """The lines, with their ends."""
        return self.text.splitlines(keepends=True)

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        for line in self.lines:
            starts.append(starts[-1] + len(line))
        return starts

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """The node that each node is part of."""
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

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
        """The functions of the module."""
        return [node for node in self.tree.body if isinstance(node, ast.FunctionDef)]

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

    def offset(self, line: int, column: int) -> int:
        """The place of a byte column of a line, in characters of the text."""
        return self._line_starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def span(self, node: ast.AST) -> tuple[int, int]:
        """The offsets where a node begins and ends."""
        place = node
        assert isinstance(place, (ast.expr, ast.stmt, ast.keyword))
        assert place.end_lineno is not None
        assert place.end_col_offset is not None
        return self.offset(place.lineno, place.col_offset), self.offset(place.end_lineno, place.end_col_offset)

    def says(self, node: ast.AST) -> str:
        """The text of a node."""
        start, stop = self.span(node)
        return self.text[start:stop]

    def replace(self, node: ast.AST, new: str) -> Edit:
        """``new`` in the place of a node."""
        start, stop = self.span(node)
        return Edit(start, stop, new, line_of(node))

    def swap(self, first: ast.AST, second: ast.AST) -> Edit:
        """Two nodes change places; ``first`` stands before ``second``."""
        (start, end), (begin, stop) = self.span(first), self.span(second)
        return Edit(start, stop, self.text[begin:stop] + self.text[end:begin] + self.text[start:end], line_of(first))

    def drop_statement(self, node: ast.stmt) -> Edit:
        """``pass`` in the place of a statement."""
        return self.replace(node, "pass")

    def drop_argument(self, call: ast.Call, argument: ast.keyword) -> Edit:
        """A call without one of its keywords."""
        start, stop = self.span(argument)
        rest = self.text[stop:]
        stripped = rest.lstrip()
        if stripped.startswith(","):
            stop += len(rest) - len(stripped[1:].lstrip())
        else:
            start = len(self.text[:start].rstrip().rstrip(","))
        return Edit(start, stop, "", argument.value.lineno)

    def insert_after(self, node: ast.stmt, statement: str) -> Edit:
        """A statement of its own line after another one."""
        stop = self.span(node)[1]
        stop += self.text[stop:].find("\n")  # a comment may follow
        return Edit(stop, stop, f"\n{' ' * node.col_offset}{statement}", node.lineno)

    def function_at(self, line: int) -> str:
        """The name of the function that a line belongs to."""
        inside = (each for each in self.functions if each.lineno <= line <= (each.end_lineno or 0))
        return next((each.name for each in inside), "")

    def enclosing(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, the nearest first."""
        while node in self.parents:
            node = self.parents[node]
            yield node


@dataclass(frozen=True)
class Mutant:
    """One mistake: ``operator`` made ``edit`` in the source of ``kernel``."""

    kernel: str
    operator: str
    function: str  # empty for a constant of the module
    line: int
    code: str  # the line as it was
    old: str
    new: str
    text: str  # the whole module with the mistake

    @property
    def change(self) -> str:
        """Old and new text, on one line."""
        return " ".join(f"{self.old or '(nothing)'} -> {self.new or '(nothing)'}".split())


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
    """A keyword of a call, None where it is not given."""
    return next((each for each in call.keywords if each.arg == name), None)
