"""Following names from file to file of one project."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from nkitools.authors_code.known_modules import is_installed
from nkitools.authors_code.source_text import shown_text
from nkitools.facts.light_classes import dataclass
from nkitools.lint.module import Module, Unreadable, parse, read
from nkitools.lint.scope import DIALECTS, LEGACY, Definition, Scope
from nkitools.rules.finding import Finding

if TYPE_CHECKING:
    from pathlib import Path

_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
OTHERS = frozenset({"nki", LEGACY, "nkitools", *sys.stdlib_module_names})  # no project has modules of these names
_OF_NKI = ("nki.", f"{LEGACY}.", "nkitools.")
_DEEPEST = 8  # re-exports that are followed


@dataclass(frozen=True)
class Found:
    """A definition, the scope that binds it and its file."""

    module: Module
    scope: Scope
    node: Definition

    @property
    def inner(self) -> Scope:
        """The scope of the definition itself."""
        return self.scope.scopes[self.node]

    def member(self, name: str) -> Found | None:
        """Return a definition in a class; None for what is no class, and for other names."""
        known = isinstance(self.node, ast.ClassDef) and name in self.inner.definitions
        return Found(self.module, self.inner, self.inner.definitions[name]) if known else None


def dialect_of(found: Found) -> str:
    """Return the dialect that a function's file imports; if it imports both or none, that of the function's decorators,
    or of its names, or ''.
    """
    imported = found.module.dialects
    if len(imported) == 1:
        return next(iter(imported))
    known = _of_decorators(found) or found.inner.dialects or imported or {found.module.scope.dialect}
    return next(iter(known)) if len(known) == 1 else ""


def _of_decorators(found: Found) -> set[str]:
    called = (each.func if isinstance(each, ast.Call) else each for each in found.node.decorator_list)
    packages = {found.scope.qualified(each).partition(".")[0] for each in called}
    return {DIALECTS[each] for each in packages & DIALECTS.keys()}


def project_directory(path: Path) -> Path:
    """Return the project directory of a file: the nearest marked one, else the one above its outermost package."""
    for directory in path.parents:
        if any((directory / mark).exists() for mark in _MARKS):
            return directory
    return _above_packages(path)


def _above_packages(path: Path) -> Path:
    directory = path.parent
    while (directory / "__init__.py").exists() and directory != directory.parent:
        directory = directory.parent
    return directory


def package_of(path: Path) -> str:
    """Return the dotted package that a file lies in, by the ``__init__.py`` around it."""
    base = _above_packages(path)
    return ".".join(path.parent.relative_to(base).parts)


class Project:
    """The files of the projects that are looked at, each parsed once."""

    def __init__(self, dialect: str = "") -> None:
        self.dialect = dialect
        self._modules: dict[Path, Module | Unreadable] = {}
        self._named: dict[tuple[str, tuple[Path, ...]], Module | None] = {}
        self._roots: dict[Path, tuple[Path, ...]] = {}

    def module(self, path: Path) -> Module:
        """Return the file at ``path``. Raises `Unreadable`, OSError."""
        key = path.resolve()
        if key not in self._modules:
            try:
                self._modules[key] = parse(read(key), str(path), package_of(key), self.dialect)
            except Unreadable as error:
                self._modules[key] = error
        found = self._modules[key]
        if isinstance(found, Unreadable):
            raise found
        return found

    def find(self, dotted: str, seen_from: Module) -> Module | None:
        """Return the file of a dotted module as the file ``seen_from`` imports it; None outside of the project."""
        return self.find_from(dotted, seen_from.path)

    def find_from(self, dotted: str, path: str) -> Module | None:
        """Return the same as seen from the file at ``path``."""
        first = dotted.partition(".")[0]
        if not first or first in OTHERS:
            return None
        from pathlib import Path

        roots = self._roots_of(Path(path))
        key = (dotted, roots)
        if key not in self._named:
            self._named[key] = self._find(dotted, roots)
        return self._named[key]

    def _roots_of(self, path: Path) -> tuple[Path, ...]:
        """Return the directories that imports of a file may start from.

        Those around it up to the project, the project's src, and pytest's pythonpath.
        """
        directory = path.resolve().parent
        if directory not in self._roots:
            top = project_directory(path.resolve())
            around = [directory, *directory.parents]
            inside = [each for each in around if each == top or top in each.parents] or [directory]
            from pathlib import Path

            from nkitools.facts.pytest_ini import import_paths

            said = map(Path, import_paths(path.resolve()))
            above = _above_packages(path.resolve())
            self._roots[directory] = tuple(dict.fromkeys([*inside, above, top / "src", *said]))
        return self._roots[directory]

    def _find(self, dotted: str, roots: tuple[Path, ...]) -> Module | None:
        from pathlib import Path

        relative = Path(*dotted.split(".")) if dotted else Path()
        for root in roots:
            for path in (root / relative.with_suffix(".py"), root / relative / "__init__.py"):
                if dotted and path.is_file():
                    try:
                        return self.module(path)
                    except (Unreadable, OSError):
                        return None
        return None

    def findings_in(self, found: Found, dialect: str, look: Callable[[], list[Finding]]) -> list[Finding]:
        """Return the findings in a function of a dialect: those of ``look``, unless the project knows them."""
        return look()

    def resolve(self, module: Module, scope: Scope, node: ast.expr) -> Found | None:
        """Return the function or class of the project that an expression names."""
        if isinstance(node, ast.Name):
            owner = scope.owner(node.id)
            if owner is not None and node.id in owner.definitions and node.id not in owner.variables:
                return Found(module, owner, owner.definitions[node.id])
        dotted = scope.qualified(node)
        return self.definition(dotted, module) if dotted else self._member(module, scope, node)

    def _member(self, module: Module, scope: Scope, node: ast.expr) -> Found | None:
        """Return a function that is kept in a class of the project: ``Config.of``."""
        if not isinstance(node, ast.Attribute):
            return None
        owner = self.resolve(module, scope, node.value)
        return None if owner is None else owner.member(node.attr)

    def definition(self, dotted: str, seen_from: Module, depth: int = 0) -> Found | None:
        """Return the definition behind a dotted name: in the file of the longest part of it that is a module."""
        head, _, name = dotted.rpartition(".")
        if not head or depth > _DEEPEST or dotted.startswith(_OF_NKI):
            return None
        module = self.find(head, seen_from)
        if module is not None:
            return self._defined(module, name, depth)
        outer = self.definition(head, seen_from, depth + 1)
        return None if outer is None else outer.member(name)

    def _defined(self, module: Module, name: str, depth: int) -> Found | None:
        scope = module.scope
        if name in scope.definitions:
            return Found(module, scope, scope.definitions[name])
        onward = scope.imports.get(name, set())
        if len(onward) == 1:
            return self.definition(next(iter(onward)), module, depth + 1)
        for star in scope.stars:
            found = self.definition(f"{star}.{name}", module, depth + 1)
            if found is not None:
                return found
        return None


class Running(Project):
    """The project of a program that runs: modules are those that it has imported."""

    def find(self, dotted: str, seen_from: Module) -> Module | None:
        """Return the file of an imported module; None for what is installed, and for what has no source."""
        known = vars(sys.modules[dotted]) if dotted in sys.modules else {}
        file = known.get("__file__")
        return None if not isinstance(file, str) or is_installed(file) else self.running(file, known, shown_text(file))

    def running(self, file: str, names: Mapping[str, Any], text: str) -> Module | None:
        """Return the file of code that runs with ``names`` for its global ones; None for an empty text."""
        try:
            return parse(text, file, str(names.get("__package__") or "")) if text else None
        except Unreadable:
            return None
