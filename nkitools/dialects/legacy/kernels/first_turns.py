"""Numbers of Python in the body of a loop: AWS's compiler traces the body once, so every turn works with those of the
first turn.

``d_w = d_w // 2`` in the body of nl.affine_range or nl.sequential_range changes `d_w` only once on the chip. For a run
the source of such loops is rewritten: at the begin of each turn, names that the body reads before it binds them get
their numbers of the first turn, with NK622. Other values stay, with NK622, and so do lists, dictionaries and sets that
the body changes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FunctionType
from typing import TypeAlias, TypeVar

from nkitools.authors_code.source_text import compiled_again, keep_text, text_of
from nkitools.dialects.legacy.kernels.carried_containers import carried_containers, contents, differ
from nkitools.dialects.legacy.kernels.carried_names import carried
from nkitools.dialects.legacy.kernels.error_codes import placed
from nkitools.dialects.legacy.kernels.kernel_source import functions_of
from nkitools.dialects.legacy.tiles.dtypes import is_number
from nkitools.lint.scope import LEGACY, Scope, own_nodes
from nkitools.record.source_sites import Site
from nkitools.rules.finding import report

_RANGES = frozenset(f"{LEGACY}.nki.language.{name}" for name in ("affine_range", "sequential_range"))
_IN_A_TENSOR = "Loop over nl.static_range, which is unrolled, or keep the tiles in one tensor in front of the loop."
_OF_A_NUMBER = "Loop over nl.static_range, which is unrolled, or compute the number from the loop's counter in a tile."
_LOOP, _CLASS = "@nki_loop", "@nki_turns"  # no names that an author can have

Value = TypeVar("Value")


class FirstTurn:
    """The values of names at the begin of a loop's first turn."""

    def __init__(self, file: str, function: str) -> None:
        self.file = file
        self.function = function
        self.turn = 0
        self.values: dict[str, object] = {}
        self.contents: dict[str, tuple[object, ...] | None] = {}
        self.reported: set[str] = set()

    def begin(self) -> None:
        """Count a new turn of the loop."""
        self.turn += 1

    def seen(self, name: str, value: Value, line: int) -> Value:
        """Return the number that a name had in the first turn; NK622 at ``line`` if its value has changed."""
        if self.turn == 1:
            self.values[name] = value
        first = self.values.get(name, value)
        if first is value:
            return value
        if is_number(first) and is_number(value):
            if first != value:
                message = (
                    f"`{name}` is {value!r} for Python and stays {first!r}: the compiler traces the body of the loop "
                )
                message += "once, so that on the chip every turn works with the number of the first turn"
                self._say(name, line, message, _OF_A_NUMBER)
            return first  # type: ignore[return-value]
        message = f"`{name}` is bound anew in each turn of a loop and read in the next; the compiler traces the body "
        message += "once, so that on the chip every turn reads what the first turn read"
        self._say(name, line, message, f"Create the tile in front of the loop and write into it: {name}[...] = ...")
        return value

    def look_inside(self, name: str, value: object, line: int) -> None:
        """NK622 at ``line`` for a list, a dictionary or a set that the first turn has changed and others change on."""
        now = contents(value)
        if self.turn == 1:
            self.values[name], self.contents[name] = value, now
        first = self.contents.get(name)
        if now is None or first is None or value is not self.values[name]:
            return
        if len(first) != len(now) or any(differ(first, now)):
            message = f"`{name}` is changed in each turn of a loop and read in the next one, or behind the loop; the "
            message += "compiler traces the body once, so that on the chip it is changed once"
            self._say(name, line, message, _IN_A_TENSOR)

    def _say(self, name: str, line: int, message: str, remedy: str) -> None:
        if name not in self.reported:
            self.reported.add(name)
            with placed(Site(self.file, line, None, self.function)):
                report("NK622", message, remedy=remedy)


Rewrites: TypeAlias = tuple[tuple[FunctionType, CodeType], ...]  # functions, and their rewritten code


def rewrites_of(functions: Iterable[FunctionType]) -> Rewrites:
    """Return the rewritten codes of a kernel and of the author's functions that it calls."""
    found = ((each, rewritten(each.__code__.co_filename, each.__code__)) for each in functions)
    return tuple((each, code) for each, code in found if code is not each.__code__)


def rewritten(file: str, code: CodeType) -> CodeType:
    """Return the code of a function with its loops rewritten, or the code itself if there is nothing to rewrite.

    If the file has changed since the code was made, the code runs as it is.
    """
    return _rewritten(file, text_of(code), code)


@lru_cache(maxsize=1024)
def _rewritten(file: str, source: str, code: CodeType) -> CodeType:
    found = _loops(source) if LEGACY in source else {}
    if not any(_is_within(code, source, line) for line, _ in found):
        return code
    made = compiled_again(code, source, _Rewriting(file, found).visit(ast.parse(source)))
    if made is None:
        return code
    keep_text(made, source)
    return made


def _is_within(code: CodeType, source: str, line: int) -> bool:
    found = functions_of(source).get((code.co_firstlineno, code.co_name))
    return found is not None and code.co_firstlineno <= line <= (found[0].end_lineno or 0)


@dataclass(frozen=True)
class Carried:
    """The names and the containers that a loop carries on, each with the line that binds or changes it first."""

    names: dict[str, int]
    containers: dict[str, int]


@lru_cache(maxsize=256)
def _loops(source: str) -> dict[tuple[int, int], Carried]:
    """Return the loops that the compiler traces once and that carry on something, by line and column."""
    found = {}
    for node, scope in functions_of(source).values():
        for each in own_nodes(node.body):
            if isinstance(each, ast.For) and _is_traced(each, scope):
                kept = Carried(carried(each, node), carried_containers(each, node.body))
                if kept.names or kept.containers:
                    found[each.lineno, each.col_offset] = kept
    return found


def _is_traced(node: ast.For, scope: Scope) -> bool:
    return isinstance(node.iter, ast.Call) and scope.qualified(node.iter.func) in _RANGES


class _Rewriting(ast.NodeTransformer):
    """Puts the begin of a turn into the bodies of loops."""

    def __init__(self, file: str, loops: dict[tuple[int, int], Carried]) -> None:
        self.file = file
        self.loops = loops
        self.functions = [""]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Note the name of the function around the loops."""
        self.functions.append(node.name)
        self.generic_visit(node)
        self.functions.pop()
        return node

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        """Rewrite a loop that carries something on."""
        found = self.loops.get((node.lineno, node.col_offset))
        self.generic_visit(node)
        if found is None:
            return [node]
        kept = f"{_LOOP}_{node.lineno}_{node.col_offset}"
        made = _call(ast.Name(_CLASS, ast.Load()), self.file, self.functions[-1])
        before: list[ast.stmt] = [
            ast.ImportFrom(__name__, [ast.alias("FirstTurn", _CLASS)], 0),
            ast.Assign([ast.Name(kept, ast.Store())], made),
        ]
        turn: list[ast.stmt] = [ast.Expr(_call(_method(kept, "begin")))]
        turn += [_restored(kept, name, line) for name, line in found.names.items()]
        turn += [_looked_into(kept, name, line) for name, line in found.containers.items()]
        for each in (*before, *turn):
            ast.copy_location(each, node)
        node.body = [*turn, *node.body]
        return [*before, node]


def _method(kept: str, name: str) -> ast.expr:
    return ast.Attribute(ast.Name(kept, ast.Load()), name, ast.Load())


def _call(function: ast.expr, *arguments: str | int | ast.expr) -> ast.Call:
    given = [each if isinstance(each, ast.expr) else ast.Constant(each) for each in arguments]
    return ast.Call(function, given, [])


def _restored(kept: str, name: str, line: int) -> ast.stmt:
    """Return ``name = kept.seen("name", name, line)``, which does nothing if the name has no value yet."""
    value = _call(_method(kept, "seen"), name, ast.Name(name, ast.Load()), line)
    return _where_bound(ast.Assign([ast.Name(name, ast.Store())], value))


def _looked_into(kept: str, name: str, line: int) -> ast.stmt:
    """Return ``kept.look_inside("name", name, line)``, which does nothing if the name has no value yet."""
    return _where_bound(ast.Expr(_call(_method(kept, "look_inside"), name, ast.Name(name, ast.Load()), line)))


def _where_bound(statement: ast.stmt) -> ast.stmt:
    unbound = ast.ExceptHandler(ast.Name("NameError", ast.Load()), None, [ast.Pass()])
    return ast.Try([statement], [unbound], [], [])
