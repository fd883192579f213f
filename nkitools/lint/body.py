"""The statements of a function, in the order in which they run, as far as the source shows it."""

from __future__ import annotations

import ast

from nkitools.lint.abstract_values import (
    UNKNOWN,
    Comparison,
    Container,
    Local,
    Number,
    Register,
    Scalar,
    Sequence,
    Tensor,
    Value,
    joined,
)
from nkitools.lint.body_arguments import loop_calls
from nkitools.lint.context import Context
from nkitools.lint.expressions import Expressions, Names
from nkitools.lint.return_types import parts
from nkitools.lint.scope import Function, own_nodes, stored

_RANGES = frozenset({"affine_range", "range", "sequential_range", "static_range"})


def look_at(node: Function, context: Context, names: Names | None = None) -> None:
    """Let the checks see everything that a function does, and those defined in it."""
    context.tell("function", node)
    body = Body(context, _parameters(node, context, names or {}))
    body.run(node.body)
    context.tell("left", node, body.names)


def _parameters(node: Function, context: Context, names: Names) -> Names:
    """Return the parameters' values: unknown, but tensors if a kernel's required parameters are annotated so."""
    found = dict(names)
    every = [*node.args.posonlyargs, *node.args.args]
    required = every[: len(every) - len(node.args.defaults)]
    for each in ast.walk(node.args):
        if isinstance(each, ast.arg):
            found[each.arg] = UNKNOWN
    if context.loop_body and every:
        counts, traced = context.loop_body == "fori_loop", context.language.traced
        found[every[0].arg] = Scalar("int32", maybe_register=True) if counts and traced else Register(counter=counts)
        context.counters += [every[0].arg] if counts and not traced else []
    for each in required if context.kernel else ():
        annotation = each.annotation.value if isinstance(each.annotation, ast.Subscript) else each.annotation
        dotted = context.scope.qualified(annotation) if annotation is not None else ""
        if dotted.endswith(("nki.typing.tensor", "nki.typing.mutable_tensor")):
            found[each.arg] = Tensor(memory="hbm")
    return found


class Body(Expressions):
    """Runs statements: where ways part each is looked at, and what both leave behind is joined."""

    def run(self, body: list[ast.stmt]) -> bool:
        """Check statements one after the other; return False if one ends the path (a return, a break)."""
        return all(self._statement(node) for node in body)

    def _statement(self, node: ast.stmt) -> bool:
        self.context.tell("statement", node)
        method = getattr(self, f"_do_{type(node).__name__.lower()}", None)
        if method is not None:
            passed: bool | None = method(node)
            return passed is not False
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child)
        return not isinstance(node, (ast.Return, ast.Raise, ast.Break, ast.Continue))

    # --- ways ------------------------------------------------------------------------------------------------------

    def _branch(self, body: list[ast.stmt]) -> Names | None:
        """Return the names after a branch; None if the branch does not come back."""
        way = Body(self.context, dict(self.names))
        return way.names if way.run(body) else None

    def _meet(self, *ways: Names | None) -> bool:
        found = [way for way in ways if way is not None]
        if not found:
            return False
        names = {name for way in found for name in way}
        self.names = {name: joined(way.get(name, UNKNOWN) for way in found) for name in names}
        return True

    def _do_if(self, node: ast.If) -> bool:
        self.condition(node.test)
        return self._meet(self._branch(node.body), self._branch(node.orelse))

    def _do_try(self, node: ast.Try) -> bool:
        self._forget(node)
        done = self._branch([*node.body, *node.orelse])
        passed = self._meet(done, *(self._branch(each.body) for each in node.handlers), dict(self.names))
        return self.run(node.finalbody) and passed

    def _do_with(self, node: ast.With) -> bool:
        for item in node.items:
            self.value(item.context_expr)
            if item.optional_vars is not None:
                self._forget(item.optional_vars)
        self.context.tell("enter", node)
        passed = self.run(node.body)
        self.context.tell("exit", node)
        return passed

    def _do_match(self, node: ast.Match) -> bool:
        self.value(node.subject)
        self._forget(node)
        return self._meet(dict(self.names), *(self._branch(case.body) for case in node.cases))

    # --- loops -----------------------------------------------------------------------------------------------------

    def _do_for(self, node: ast.For) -> bool:
        iterated = self.value(node.iter)
        self._forget(node)
        self.context.tell("iterate", node.iter, iterated)
        counter = self.counter(node.iter, iterated)
        if isinstance(node.target, ast.Name):
            self.names[node.target.id] = counter
        self.context.tell("loop", node, counter)
        self._turn(node.body)
        self.context.tell("loop over", node)
        return self.run(node.orelse)

    def _do_while(self, node: ast.While) -> bool:
        self._forget(node)
        self.context.loop_test = node.test
        self.condition(node.test)
        self.context.loop_test = None
        self._turn(node.body)
        return self.run(node.orelse)

    def _turn(self, body: list[ast.stmt]) -> None:
        before = dict(self.names)
        self._meet(before, self._branch(body))

    def counter(self, node: ast.expr, iterated: Value) -> Value:
        """Return the abstract value of a loop's counter."""
        if isinstance(iterated, Sequence) and iterated.items:
            return joined(iterated.items)
        name = self.context.scope.qualified(node.func) if isinstance(node, ast.Call) else ""
        _, module, member = parts(name)
        if module == "language" and member == "dynamic_range":
            return Register(counter=True)
        plain = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range" and not name
        return Number(int) if plain or (module == "language" and member in _RANGES) else UNKNOWN

    def _forget(self, node: ast.AST) -> None:
        """Forget the values of all names that a statement may assign while it runs."""
        inside = node.body if isinstance(node, (ast.For, ast.While, ast.Try)) else [node]
        for each in own_nodes([*inside, *([node.target] if isinstance(node, ast.For) else [])]):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                self.names[each.id] = UNKNOWN

    # --- names -----------------------------------------------------------------------------------------------------

    def _do_assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self._bind(target, value, node)

    def _do_annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._bind(node.target, self.value(node.value), node)

    def _do_augassign(self, node: ast.AugAssign) -> None:
        left = self.names.get(node.target.id, UNKNOWN) if isinstance(node.target, ast.Name) else self.value(node.target)
        right = self.value(node.value)
        self.context.tell("update", node, left, right)
        if isinstance(node.target, ast.Name):
            # In the legacy dialect a tensor is updated in place, and so is a list.
            kept = self.context.legacy and isinstance(left, Tensor)
            from nkitools.lint.abstract_operations import combined

            self.names[node.target.id] = left if kept else combined(node.op, left, right)

    def _bind(self, target: ast.expr, value: Value, node: ast.stmt) -> None:
        match target:
            case ast.Name(id=name):
                self.context.tell("bind", target, self.names.get(name, UNKNOWN), value)
                self.names[name] = _kept(value)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                items = value.items if isinstance(value, Sequence) else None
                fits = items is not None and len(items) == len(elements)
                for each, item in zip(elements, items if items and fits else [UNKNOWN] * len(elements), strict=True):
                    self._bind(each, item, node)
            case ast.Starred(value=inner):
                self._bind(inner, UNKNOWN, node)
            case ast.Subscript():
                base = self.value(target.value)
                keys = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
                values = tuple(self.value(each) for each in keys)
                if isinstance(base, Container):
                    self.context.tell("key", target.slice, self.value(target.slice))
                self.context.tell("subscript", target, base, *values)
                if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                    self.context.tell("put", target, base, node.value, value)
            case _:
                for each in stored([target]):
                    self.names[each.id] = UNKNOWN
                self.value(target)

    def _do_return(self, node: ast.Return) -> bool:
        value = self.value(node.value)
        self.context.tell("return", node, value)
        return False

    def _do_assert(self, node: ast.Assert) -> None:
        if isinstance(node.test, ast.Call):
            asserted = self.value(node.test)
            if not isinstance(asserted, Comparison):
                self.context.tell("truth", node.test, asserted)
        else:
            self.condition(node.test)
        if node.msg is not None:
            self.value(node.msg)

    def _do_delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.names[target.id] = UNKNOWN

    # --- definitions -----------------------------------------------------------------------------------------------

    def _define(self, node: Function) -> None:
        scope = self.context.scope
        inner = scope.scopes.get(node)
        self.names[node.name] = Local(node)
        if inner is None:
            return
        once = {name: value for name, value in self.names.items() if len(scope.variables.get(name, [])) == 1}
        context = self.context.inside(inner)
        context.kernel = context.module.is_kernel(node, scope)
        bodies = {each.id: loop for loop, each in loop_calls(scope) if isinstance(each, ast.Name)}
        context.loop_body = bodies.get(node.name, "")
        look_at(node, context, once)

    _do_functiondef = _do_asyncfunctiondef = _define

    def _do_classdef(self, node: ast.ClassDef) -> None:
        return None

    def _do_expr(self, node: ast.Expr) -> None:
        self.value(node.value)


def _kept(value: Value) -> Value:
    """Return the value that a variable keeps; a list may be changed later, so its items are not kept."""
    return Sequence("list") if isinstance(value, Sequence) and value.kind == "list" else value
