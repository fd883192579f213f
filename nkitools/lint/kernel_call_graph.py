"""The functions that are kernel code: kernels, the project's functions that they call, and issuers of instructions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nkitools.lint.module import Module
from nkitools.lint.project import Found, Project, dialect_of
from nkitools.lint.return_types import MAKES_TILE, parts
from nkitools.lint.scope import Scope

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# Calls that take a function and run it as a kernel, besides those that make kernels.
_RUNNERS = frozenset({"compile_kernel", "cpu_simulate", "simulate", "simulate_kernel"})
# Of nki.isa: what is asked on the host too.
_ASKED = frozenset({"get_nc_sub_version", "get_nc_version"})
_ALWAYS = ("__call__", "__init__", "__post_init__")


def kernel_code(project: Project, modules: list[Module]) -> list[tuple[Found, str]]:
    """Return the functions of kernel code in some files and in all that they call, without nested functions.

    Each comes with its dialect: its own where the source shows one, else that of its caller.
    """
    return _Reach(project).from_roots([root for module in modules for root in _roots(module, project)])


def _roots(module: Module, project: Project) -> Iterator[Found]:
    if not module.dialects and "nki" not in module.text:
        return
    for scope in module.scope.all():
        for node in scope.scopes:
            if not isinstance(node, ast.ClassDef):
                found = Found(module, scope, node)
                if module.is_kernel(node, scope) or _issues(found):
                    yield found
        for call in scope.calls:
            yield from _handed_over(module, scope, project, call)


def _handed_over(module: Module, scope: Scope, project: Project, call: ast.Call) -> Iterator[Found]:
    """Yield the function in ``nki.jit(function)``, ``nkitools.simulate(function, ...)``."""
    name = scope.qualified(call.func)
    runs = name.rpartition(".")[2] in _RUNNERS and name.partition(".")[0] in ("nki", "neuronxcc", "nkitools")
    if call.args and (runs or _is_fixture(scope, call.func) or module.makes_kernel(call.func, scope)):
        first = call.args[0]
        target = first.value if isinstance(first, ast.Subscript) else first  # kernel[2]
        found = project.resolve(module, scope, target)
        if found is not None and isinstance(found.node, _FUNCTIONS):
            yield found


def _is_fixture(scope: Scope, function: ast.expr) -> bool:
    """Return whether a call is one of pytest's ``run_kernel``, a parameter of the test."""
    owner = scope.owner(function.id) if isinstance(function, ast.Name) and function.id == "run_kernel" else None
    return owner is not None and "run_kernel" in owner.parameters


def _issues(found: Found) -> bool:
    """Return whether a function issues instructions itself, as only kernel code can (and tests of refusals)."""
    node = found.node
    if node.name.startswith("test_"):
        return False
    for call in found.inner.calls:
        _, module, member = parts(found.inner.qualified(call.func))
        if (module == "isa" and member not in _ASKED) or (module == "language" and member in MAKES_TILE):
            return True
    return False


class _Reach:
    """Follows names from function to function."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.found: dict[ast.AST, tuple[Found, str]] = {}
        self.classes: dict[ast.AST, tuple[Found, str]] = {}
        self.methods: set[str] = set(_ALWAYS)  # that kernel code calls, of whatever

    def from_roots(self, roots: list[Found]) -> list[tuple[Found, str]]:
        waiting = [(each, "") for each in reversed(roots)]
        while waiting:
            each, caller = waiting.pop()
            if each.node in self.found or each.node in self.classes:
                waiting = waiting or list(self._called_methods())
                continue
            dialect = dialect_of(each) or caller
            if isinstance(each.node, ast.ClassDef):
                self.classes[each.node] = each, dialect
            else:
                self.found[each.node] = each, dialect
                waiting += [(named, dialect) for named in self._named(each)]
            waiting = waiting or list(self._called_methods())
        nested = {inner.node for each, _ in self.found.values() for inner in list(_functions(each.inner))[1:]}
        outermost = [each for each in self.found.values() if each[0].node not in nested]
        return sorted(outermost, key=lambda each: (each[0].module.path, each[0].node.lineno))

    def _named(self, found: Found) -> Iterator[Found]:
        """Yield the functions that a function names in its body, whether it calls them or hands them on."""
        scope = found.inner
        for inner in _functions(scope):
            self.methods |= {node.attr for node in inner.nodes if isinstance(node, ast.Attribute)}
            for node in inner.reads:
                target = self.project.resolve(found.module, inner, node)
                if target is not None:
                    yield target

    def _called_methods(self) -> Iterator[tuple[Found, str]]:
        for each, dialect in self.classes.values():
            for name, node in each.inner.definitions.items():
                if name in self.methods and isinstance(node, _FUNCTIONS) and node not in self.found:
                    yield Found(each.module, each.inner, node), dialect


def _functions(scope: Scope) -> Iterator[Scope]:
    """Yield the scope of a function and those of the functions in it (those of classes are reached by their names)."""
    yield scope
    for node, inner in scope.scopes.items():
        if isinstance(node, _FUNCTIONS):
            yield from _functions(inner)
