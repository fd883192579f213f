"""A source file: read, parsed once, and which dialect it is written in."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from nkitools.authors_code.source_text import tree_of
from nkitools.facts.light_classes import dataclass, field
from nkitools.lint.scope import DIALECTS, LEGACY, Definition, Function, Scope, scope_of

if TYPE_CHECKING:
    from pathlib import Path

    from nkitools.edits.source import Text

MODERN = "nki"
_KERNEL_MAKERS = frozenset(
    {f"{MODERN}.jit", f"{LEGACY}.nki.jit"}
    | {f"{LEGACY}.nki.{name}" for name in ("baremetal", "benchmark", "profile", "trace")}
)


class Unreadable(Exception):
    """A file that is no Python source; ``line`` and ``column`` say where, from 1."""

    def __init__(self, sentence: str, line: int = 1, column: int = 1) -> None:
        super().__init__(sentence)
        self.line = line
        self.column = column


@dataclass(eq=False)
class Module:
    """A parsed file. ``package``: the dotted name of its package, '' if unknown."""

    path: str
    text: str
    scope: Scope
    functions: dict[tuple[int, str], tuple[Function, Scope]] = field(default_factory=dict)

    @cached_property
    def dialects(self) -> frozenset[str]:
        """The dialects of NKI that the file imports."""
        roots = {target.partition(".")[0] for target in self.imported if _is_nki(target)}
        return frozenset(dialect for root, dialect in DIALECTS.items() if root in roots)

    @property
    def imported(self) -> set[str]:
        """The dotted names that the file imports, in any scope."""
        names = {target for scope in self.scope.all() for found in scope.imports.values() for target in found}
        return names | set(self.scope.stars)

    def column(self, node: ast.AST) -> int:
        """Return the column of a node, in characters from 1 (ast counts bytes from 0)."""
        return self.source.character(getattr(node, "lineno", 0), getattr(node, "col_offset", 0)) + 1

    @cached_property
    def source(self) -> Text:
        """The text, with what can be done to it."""
        from nkitools.edits.source import Text

        return Text(self.text)

    @property
    def lines(self) -> list[str]:
        """The lines of the file."""
        return self.source.lines

    def makes_kernel(self, node: ast.expr, scope: Scope) -> bool:
        """Return whether a decorator or a called function makes kernels: ``nki.jit``, ``nki.jit(...)``, partials."""
        if isinstance(node, ast.Call):
            partial = scope.qualified(node.func) == "functools.partial" and bool(node.args)
            return self.makes_kernel(node.args[0] if partial else node.func, scope)
        name = scope.qualified(node)
        return name in _KERNEL_MAKERS or name.rpartition(".")[2] == "nki_jit"

    def is_kernel(self, node: Definition, scope: Scope) -> bool:
        """Return whether a function is decorated as a kernel."""
        return any(self.makes_kernel(each, scope) for each in node.decorator_list)


def _is_nki(target: str) -> bool:
    return target.partition(".")[0] == MODERN or target == LEGACY or target.startswith(f"{LEGACY}.nki")


@lru_cache(maxsize=512)
def parse(text: str, path: str, package: str = "", dialect: str = "") -> Module:
    """Return the file of a text. Raises `Unreadable`."""
    return module_of(text, path, package, dialect, tree_of)


def module_of(
    text: str, path: str, package: str, dialect: str, tree_of: Callable[[str], ast.Module], before: Scope | None = None
) -> Module:
    """Return the file of a text, whose tree ``tree_of`` returns; ``before``: the scope of an earlier text, whose tree
    has some of the definitions too. Raises `Unreadable`.
    """
    try:
        tree = tree_of(text)  # of this file alone: nodes stand for functions
    except SyntaxError as error:
        raise Unreadable(f"it is not valid Python: {error.msg}", error.lineno or 1, error.offset or 1) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise Unreadable(f"it cannot be parsed: {error or type(error).__name__}") from None
    module = Module(path, text, scope_of(tree, package, dialect, before))
    for scope in module.scope.all():
        for node, inner in scope.scopes.items():
            if not isinstance(node, ast.ClassDef):
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                module.functions[first, node.name] = (node, inner)
    return module


def read(path: Path) -> str:
    """Return the text of a file in the encoding that it declares, UTF-8 otherwise. Raises `Unreadable`, OSError."""
    raw = path.read_bytes()
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        return io.TextIOWrapper(io.BytesIO(raw), encoding, newline=None).read()
    except (SyntaxError, LookupError):
        raise Unreadable("it is not text in UTF-8, and declares no other encoding that Python knows") from None
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise Unreadable(f"it is not text in {error.encoding}: byte {raw[error.start]:#04x}", line) from None
