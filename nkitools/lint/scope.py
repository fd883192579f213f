"""Names of a source file and what they are bound to: imports, definitions, parameters, variables."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType

from nkitools.facts.light_classes import dataclass, field, replace

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_IMPORTS, _NAMED = (ast.Import, ast.ImportFrom), (ast.Attribute, ast.Name)
_BUILTINS = frozenset(dir(builtins))
_DEEPEST = 8  # names of names that are followed

LEGACY = "neuronxcc"
DIALECTS = {"nki": "modern", LEGACY: "legacy"}  # by the package that a kernel imports
# Names that kernels are written with; one that a file never binds means what it means everywhere.
CUSTOMARY = {"nki": "nki", "nl": "nki.language", "nisa": "nki.isa"}


@dataclass(eq=False)
class Scope:
    """The names that one module, function or class binds.

    ``variables``: each value that is assigned to a name, None for one without an expression (a loop's counter, a part
    of an unpacked value). ``dialect`` decides, in a file, between imports of both dialects under one name.
    """

    node: ast.Module | Definition
    outer: Scope | None = None
    dialect: str = ""
    imports: dict[str, set[str]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    definitions: dict[str, Definition] = field(default_factory=dict)
    variables: dict[str, list[ast.expr | None]] = field(default_factory=dict)
    parameters: frozenset[str] = frozenset()
    outside: frozenset[str] = frozenset()  # declared global or nonlocal
    scopes: dict[Definition, Scope] = field(default_factory=dict)
    _known: dict[str, str] = field(default_factory=dict)  # the dotted names behind names

    def binds(self, name: str) -> bool:
        """Return whether the name belongs to this scope."""
        if name in self.outside:
            return False
        return name in self.parameters or name in self.imports or name in self.definitions or name in self.variables

    def owner(self, name: str) -> Scope | None:
        """Return the scope that binds a name read here, by Python's rules; None for a builtin or an unknown name."""
        scope: Scope | None = self
        while scope is not None:
            hidden = scope is not self and isinstance(scope.node, ast.ClassDef)
            if not hidden and scope.binds(name):
                return scope
            scope = scope.outer
        return None

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """The nodes of its body in order, with the definitions in it, without what is inside of those."""
        return tuple(own_nodes(self.node.body))

    @cached_property
    def calls(self) -> tuple[ast.Call, ...]:
        """The calls among its nodes."""
        return tuple(each for each in self.nodes if isinstance(each, ast.Call))

    @cached_property
    def sure_imports(self) -> tuple[ast.Import | ast.ImportFrom, ...]:
        """The imports among its nodes, but for those inside ``try``, which may fail."""
        tried = {each for node in self.nodes if isinstance(node, ast.Try) for each in own_nodes(node.body)}
        return tuple(each for each in self.nodes if isinstance(each, _IMPORTS) and each not in tried)

    @cached_property
    def reads(self) -> tuple[ast.Attribute | ast.Name, ...]:
        """The attributes and names that its nodes read: of one name the first."""
        found = [each for each in self.nodes if isinstance(each, _NAMED) and isinstance(each.ctx, ast.Load)]
        return tuple({each.id if isinstance(each, ast.Name) else each: each for each in reversed(found)}.values())[::-1]

    @cached_property
    def declared(self) -> frozenset[str]:
        """The names that are declared global or nonlocal here or inside of it."""
        return frozenset(name for scope in self.all() for name in scope.outside)

    @cached_property
    def dialects(self) -> frozenset[str]:
        """The dialects of the names that are read here and inside of it."""
        reads = [(scope, node.id) for scope in self.all() for node in scope.nodes if isinstance(node, ast.Name)]
        packages = {scope.named(name).partition(".")[0] for scope, name in reads}
        return frozenset(dialect for package, dialect in DIALECTS.items() if package in packages)

    @property
    def module(self) -> Scope:
        """The scope of the file."""
        return self if self.outer is None else self.outer.module

    def all(self) -> Iterator[Scope]:
        """Yield this scope and all inside of it."""
        yield self
        for inner in self.scopes.values():
            yield from inner.all()

    def inside(self, outer: Scope) -> Scope:
        """Return the scope of the same definition in another text, inside of a scope of that text."""
        moved = replace(self, outer=outer, scopes={}, _known={})
        moved.nodes, moved.calls, moved.reads, moved.sure_imports = (
            self.nodes,
            self.calls,
            self.reads,
            self.sure_imports,
        )
        moved.scopes = {node: inner.inside(moved) for node, inner in self.scopes.items()}
        return moved

    def qualified(self, node: ast.expr, depth: int = 0) -> str:
        """Return the dotted name behind an expression, by way of the imports: ``nki.language.exp``; '' for others."""
        if isinstance(node, ast.Attribute):
            base = self.qualified(node.value, depth)
            return f"{base}.{node.attr}" if base else ""
        return self.named(node.id, depth) if isinstance(node, ast.Name) else ""

    def named(self, name: str, depth: int = 0) -> str:
        """Return the dotted name behind a name, by way of the imports; '' for others."""
        found = None if depth else self._known.get(name)
        if found is None:
            found = self._named(name, depth)
            if not depth:
                self._known[name] = found
        return found

    def _named(self, name: str, depth: int) -> str:
        owner = self.owner(name)
        if owner is None:
            return self._unbound(name)
        if name in owner.parameters or name in owner.definitions:
            return ""
        found = owner.imports.get(name, set())
        values = owner.variables.get(name, [])
        if not found:
            return _alias(owner, values, depth)
        # What else it may be is what stands in for a package that is not installed.
        if not all(isinstance(value, ast.Constant) for value in values):
            return ""
        return next(iter(found)) if len(found) == 1 else self._chosen(found)

    def definition(self, node: ast.expr, depth: int = 0) -> Scope | None:
        """Return the scope of the function that a name stands for, by way of ``other = one``; None for others."""
        owner = self.owner(node.id) if isinstance(node, ast.Name) and depth < _DEEPEST else None
        if owner is None or not isinstance(node, ast.Name):
            return None
        named, values = owner.definitions.get(node.id), owner.variables.get(node.id, [])
        if named is not None:
            return owner.scopes[named] if isinstance(named, Function) and not values else None
        only = values[0] if len(values) == 1 and node.id not in owner.parameters else None
        return None if only is None else owner.definition(only, depth + 1)

    def _chosen(self, found: set[str]) -> str:
        dialect = self.module.dialect
        fitting = [each for each in found if (each.partition(".")[0] == LEGACY) == (dialect == "legacy")]
        return fitting[0] if dialect and len(fitting) == 1 else ""

    def _unbound(self, name: str) -> str:
        module = self.module
        if name in CUSTOMARY:
            return f"{LEGACY}.{CUSTOMARY[name]}" if module.dialect == "legacy" else CUSTOMARY[name]
        one = len(module.stars) == 1 and not name.startswith("_") and name not in _BUILTINS
        return f"{module.stars[0]}.{name}" if one else ""


def _alias(owner: Scope, values: list[ast.expr | None], depth: int) -> str:
    """Return the dotted name behind ``exp = nl.exp``."""
    only = values[0] if len(values) == 1 and depth < _DEEPEST else None
    return owner.qualified(only, depth + 1) if isinstance(only, (ast.Attribute, ast.Name)) else ""


def scope_of(tree: ast.Module, package: str, dialect: str = "", before: Scope | None = None) -> Scope:
    """Return the scope of a file, with those of everything that it defines; ``package`` resolves relative imports.

    ``before``: the scope of an earlier text, whose tree has some of the definitions too.
    """
    scope = Scope(tree, dialect=dialect)
    _Filler(scope, package, {} if before is None else before.scopes).fill()
    return scope


def own_nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes of a body in order, with the definitions in it, without what is inside of those."""
    waiting = list(body)[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _SCOPES):
            waiting += _children(node)[::-1]


def _children(node: ast.AST) -> list[ast.AST]:
    """Return the nodes of `ast.iter_child_nodes` without contexts and operators: a third of all, and without parts."""
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            if value._fields:
                found.append(value)
        elif isinstance(value, list):
            found += [each for each in value if isinstance(each, ast.AST)]
    return found


def stored(targets: Iterable[ast.AST]) -> Iterator[ast.Name]:
    """Yield the names that assignment targets bind."""
    for target in targets:
        for node in ast.walk(target):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node


class _Filler:
    """Notes what the nodes of one scope bind."""

    def __init__(self, scope: Scope, package: str, known: Mapping[Definition, Scope] = MappingProxyType({})) -> None:
        self.scope = scope
        self.package = package
        self.known = known
        self.noted: set[ast.Name] = set()

    def fill(self) -> None:
        for node in self.scope.nodes:
            self._bind(node)

    def _assigned(self, target: ast.Name, value: ast.expr | None) -> None:
        self.noted.add(target)
        self.scope.variables.setdefault(target.id, []).append(value)

    def _bind(self, node: ast.AST) -> None:
        scope = self.scope
        if isinstance(node, ast.Name):  # most nodes
            if isinstance(node.ctx, ast.Store) and node not in self.noted:
                self._assigned(node, None)
            return
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                scope.definitions[node.name] = node
                scope.scopes[node] = self._inner(node)
            case ast.Import(names=names):
                for each in names:
                    target = each.name if each.asname else each.name.partition(".")[0]
                    scope.imports.setdefault(each.asname or target, set()).add(target)
            case ast.ImportFrom():
                self._import(node)
            case ast.Assign(targets=targets, value=value):
                for name in targets:
                    if isinstance(name, ast.Name):
                        self._assigned(name, value)
            case ast.AnnAssign(target=ast.Name() as target, value=value):
                self.noted.add(target)
                if value is not None:
                    self._assigned(target, value)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                scope.outside |= frozenset(names)

    def _import(self, node: ast.ImportFrom) -> None:
        module = self._absolute(node)
        for each in node.names:
            if each.name == "*":
                self.scope.stars.append(module)
            else:
                self.scope.imports.setdefault(each.asname or each.name, set()).add(f"{module}.{each.name}")

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.package.split(".") if self.package else []
        kept = parts[: len(parts) - node.level + 1]
        return ".".join([*kept, *([node.module] if node.module else [])])

    def _inner(self, node: Definition) -> Scope:
        if node in self.known:
            return self.known[node].inside(self.scope)
        parameters: frozenset[str] = frozenset()
        if not isinstance(node, ast.ClassDef):
            parameters = frozenset(each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg))
        inner = Scope(node, self.scope, parameters=parameters)
        _Filler(inner, self.package).fill()
        return inner
