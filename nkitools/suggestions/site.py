"""The place of a finding in the source: its statement, the calls of its line, the blocks and the function around it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from nkitools.edits.source import Edit, callee, keyword, replaced
from nkitools.lint.module import Module
from nkitools.lint.rewriting import imported
from nkitools.lint.scope import LEGACY, Function, Scope, own_nodes
from nkitools.rules.finding import Finding


@dataclass(frozen=True)
class Suggestion:
    """A change that mends a finding: ``title`` says what it does, ``edits`` are the pieces of the file's text."""

    title: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class Site:
    """A finding and the file that it is in."""

    finding: Finding
    module: Module

    @cached_property
    def scope(self) -> Scope:
        """The scope of the innermost function around the line; that of the file where there is none."""
        found = self.module.scope
        for scope in self.module.scope.all():
            node = scope.node
            if isinstance(node, Function) and node.lineno <= self.finding.line <= (node.end_lineno or 0):
                found = scope
        return found

    @cached_property
    def blocks(self) -> tuple[ast.stmt, ...]:
        """The statements around the line, from the function's body inwards; the last one is the line's own."""
        found: list[ast.stmt] = []
        body: list[ast.stmt] | None = self.scope.node.body
        while body:
            inner = next((each for each in body if _covers(each, self.finding.line)), None)
            if inner is None:
                break
            found.append(inner)
            parts = (getattr(inner, name, []) for name in ("body", "orelse", "finalbody"))
            body = next((part for part in parts if any(_covers(each, self.finding.line) for each in part)), None)
        return tuple(found)

    @cached_property
    def loops(self) -> tuple[ast.For, ...]:
        """The `for` loops around the line, the outermost first."""
        return tuple(each for each in self.blocks[:-1] if isinstance(each, ast.For))

    @cached_property
    def calls(self) -> tuple[ast.Call, ...]:
        """The calls of the line's statement that the line is a part of, outer ones first."""
        if not self.blocks:
            return ()
        inside = (each for each in own_nodes([self.blocks[-1]]) if isinstance(each, ast.Call))
        return tuple(each for each in inside if _covers(each, self.finding.line))

    @cached_property
    def call(self) -> ast.Call | None:
        """The call of the instruction that the finding is about, or that the column names; else the only one."""
        fitting = [each for each in self.calls if callee(each) == self.finding.facts.get("instruction")]
        placed = [each for each in self.calls if self.module.column(each) == self.finding.column]
        for found in (fitting, placed, self.calls):
            if len(found) == 1:
                return found[0]
        return fitting[0] if fitting else None

    @cached_property
    def language(self) -> str:
        """The name of nki.language in the function's file; '' if it has none."""
        legacy = f"{LEGACY}." if "legacy" in self.module.dialects else ""
        return imported(self.scope, f"{legacy}nki.language")

    def text_fact(self, name: str) -> str:
        """Return a fact of the finding as text; '' if it has none of this name."""
        return str(self.finding.facts.get(name, ""))

    def whole_fact(self, name: str) -> int:
        """Return a fact of the finding that is a whole number, at least 0; -1 where it has none of the name."""
        value = self.finding.facts.get(name, -1)
        return value if isinstance(value, int) else -1

    @property
    def variable(self) -> str:
        """The variable of the finding's tensor, or of the tensor that it is a part of; '' if it has no name."""
        return self.text_fact("tensor").partition("[")[0]

    @property
    def is_legacy(self) -> bool:
        """Return whether the file is written in the legacy dialect."""
        return "legacy" in self.module.dialects

    def text(self, node: ast.AST) -> str:
        """Return a node as it is written."""
        return self.module.source.says(node)

    def indent(self, statement: ast.stmt) -> str:
        """Return the space in front of a statement's line."""
        line = self.module.lines[statement.lineno - 1]
        return line[: len(line) - len(line.lstrip())]

    def before(self, statement: ast.stmt, *lines: str) -> Edit:
        """Return the edit that puts lines in front of a statement."""
        text = "".join(f"{self.indent(statement)}{line}\n" for line in lines)
        return Edit(statement.lineno, 0, statement.lineno, 0, text)

    def behind(self, statement: ast.stmt, *lines: str) -> Edit:
        """Return the edit that puts lines behind a statement."""
        last = statement.end_lineno or statement.lineno
        column = len(self.module.lines[last - 1].encode())
        return Edit(last, column, last, column, "".join(f"\n{self.indent(statement)}{line}" for line in lines))

    def made(self, name: str) -> ast.Call | None:
        """Return the only call whose result a name is bound to."""
        values = self.scope.variables.get(name, [])
        return values[0] if len(values) == 1 and isinstance(values[0], ast.Call) else None

    def qualified(self, call: ast.Call) -> str:
        """Return the called name without its dialect: ``nki.isa.nc_matmul``."""
        return self.scope.qualified(call.func).removeprefix(f"{LEGACY}.")

    def covers(self, node: ast.stmt | ast.expr) -> bool:
        """Return whether the line of the finding is one of a node's lines."""
        return _covers(node, self.finding.line)

    def inside(self, statements: list[ast.stmt]) -> Iterator[ast.AST]:
        """Yield the nodes of statements, without those of functions that they define."""
        yield from own_nodes(statements)


def _covers(node: ast.stmt | ast.expr, line: int) -> bool:
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(each.lineno for each in decorators)])
    return bool(first <= line <= (node.end_lineno or node.lineno))


def given(call: ast.Call, name: str, position: int) -> ast.expr | None:
    """Return an argument that is given by its name or at its position."""
    found = keyword(call, name)
    if found is not None:
        return found.value
    return call.args[position] if position < len(call.args) else None


def wrapped(site: Site, node: ast.expr, function: str) -> Edit:
    """Return the edit that makes an expression the argument of a function."""
    return replaced(node, f"{function}({site.text(node)})")


def in_brackets(text: str, node: ast.expr) -> str:
    """Return the text of an expression as an operand of - or *: in brackets where it is a sum or the like."""
    simple = (ast.Name, ast.Constant, ast.Attribute, ast.Call, ast.Subscript)
    return text if isinstance(node, simple) else f"({text})"
