"""Abstract evaluation of expressions; each operation that is met starts the checks subscribed to it."""

from __future__ import annotations

import ast
from typing import Any

from nkitools.lint.abstract_values import (
    MASK,
    UNKNOWN,
    Api,
    Constant,
    Container,
    Index,
    Mask,
    Number,
    Piece,
    Scalar,
    Sequence,
    Span,
    Tensor,
    Value,
    is_float,
    join,
    joined,
    whole,
)
from nkitools.lint.context import Context
from nkitools.lint.return_types import VIEWS, Arguments, attribute, called, element, parts, viewed
from nkitools.lint.scope import Scope

Names = dict[str, Value]
_COMPARING = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_DEEPEST = 12


class Expressions:
    """The values of expressions in one function, with ``names`` for what its variables stand for at the moment."""

    def __init__(self, context: Context, names: Names) -> None:
        self.context = context
        self.names = names
        self.depth = 0

    def value(self, node: ast.expr | None) -> Value:
        """Return the abstract value of an expression."""
        if node is None:
            return UNKNOWN
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is not None:
            found: Value = method(node)
            return found
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child)
        return UNKNOWN

    def truth(self, node: ast.expr) -> Value:
        """Return the abstract value of an expression whose truth value decides something."""
        if isinstance(node, ast.BoolOp):
            return joined(self.truth(each) for each in node.values)
        value = self.value(node)
        if not (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
            self.context.tell("truth", node, value)
        return value

    def condition(self, node: ast.expr) -> None:
        """Look at the test of a statement."""
        self.context.testing = True
        self.truth(node)
        self.context.testing = False

    # --- names -----------------------------------------------------------------------------------------------------

    def _constant(self, node: ast.Constant) -> Value:
        return Constant(node.value)

    def _name(self, node: ast.Name) -> Value:
        known = self.names.get(node.id)
        return known if known is not None else self._outer(node.id)

    def _outer(self, name: str) -> Value:
        """Return the abstract value of a name that the function does not bind: an import, a constant of the file."""
        scope = self.context.scope
        dotted = scope.named(name)
        if dotted:
            return (attribute(dotted) or Api(dotted)) if self.context.is_api(dotted) else UNKNOWN
        owner = scope.owner(name)
        if owner is None or (owner is scope and not self.depth):
            return UNKNOWN
        values = owner.variables.get(name, [])
        if len(values) != 1 or values[0] is None or self.depth > _DEEPEST or self.context.is_rebound(owner, name):
            return UNKNOWN
        return self._elsewhere(owner, values[0])

    def _elsewhere(self, owner: Scope, node: ast.expr) -> Value:
        if not isinstance(node, (ast.Constant, ast.Name, ast.Attribute, ast.BinOp, ast.UnaryOp, ast.Tuple)):
            return UNKNOWN
        there = Expressions(self.context.silent(owner), {})
        there.depth = self.depth + 1
        return there.value(node)

    def _attribute(self, node: ast.Attribute) -> Value:
        base = self.value(node.value)
        if isinstance(base, Api):
            found = attribute(f"{base.name}.{node.attr}")
            api = Api(f"{base.name}.{node.attr}")
            self.context.tell("name", node, api)
            return api if found is None else found
        if isinstance(base, Tensor):
            if node.attr == "shape":
                known = base.shape
                return Sequence("tuple", None if known is None else tuple(_size(each) for each in known))
            if node.attr in ("ndim", "size", "offset"):
                return Number(int)
            if node.attr == "dtype" and base.dtype:
                return Api(f"nki.language.{base.dtype}")
            self.context.tell("attribute", node, base)
        if isinstance(base, Index) and node.attr in "pxyzw":
            return base
        return Sequence("shape") if node.attr == "shape" else UNKNOWN

    # --- operations ------------------------------------------------------------------------------------------------

    def _binop(self, node: ast.BinOp) -> Value:
        left, right = self.value(node.left), self.value(node.right)
        self.context.tell("binary", node, left, right)
        from nkitools.lint.abstract_operations import combined

        return combined(node.op, left, right)

    def _unaryop(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            self.truth(node.operand)
            return UNKNOWN
        value = self.value(node.operand)
        self.context.tell("unary", node, value)
        number = whole(value)
        if isinstance(node.op, ast.USub) and number is not None:
            return Constant(-number)
        if isinstance(node.op, ast.USub) and isinstance(value, Constant) and isinstance(value.value, float):
            return Constant(-value.value)
        return value if isinstance(value, (Number, Index, Scalar, Tensor)) else UNKNOWN

    def _boolop(self, node: ast.BoolOp) -> Value:
        values = [self.value(each) for each in node.values]
        for each, value, following in zip(node.values, values, values[1:], strict=False):
            self.context.tell("join", node, value, following)
            if not (isinstance(value, Mask) and isinstance(following, Mask) and isinstance(node.op, ast.And)):
                self.context.tell("truth", each, value)
        return joined(values)

    def _compare(self, node: ast.Compare) -> Value:
        values = [self.value(each) for each in (node.left, *node.comparators)]
        self.context.tell("compare", node, *values)
        if any(isinstance(each, (Index, Mask)) for each in values):
            return MASK
        if self._compares_elements(node, values):
            return Tensor()
        scalar = any(isinstance(each, Scalar) for each in values) and isinstance(node.ops[0], _COMPARING)
        return Scalar("int32", compared=True) if scalar else UNKNOWN

    def _compares_elements(self, node: ast.Compare, values: list[Value]) -> bool:
        """Return whether a comparison is one of a tensor's elements: in the modern dialect, whether it was meant so."""
        if not (self.context.legacy or self.context.testing):
            return False
        from nkitools.lint.abstract_operations import compares_elements

        return any(
            compares_elements(left, right, sign)
            for left, right, sign in zip(values, values[1:], node.ops, strict=False)
        )

    def _ifexp(self, node: ast.IfExp) -> Value:
        self.condition(node.test)
        return join(self.value(node.body), self.value(node.orelse))

    def _namedexpr(self, node: ast.NamedExpr) -> Value:
        value = self.value(node.value)
        self.names[node.target.id] = value
        return value

    # --- containers ------------------------------------------------------------------------------------------------

    def _tuple(self, node: ast.Tuple) -> Value:
        return self._sequence("tuple", node.elts)

    def _list(self, node: ast.List) -> Value:
        return self._sequence("list", node.elts)

    def _sequence(self, kind: str, elements: list[ast.expr]) -> Value:
        items = tuple(self.value(each) for each in elements)
        return Sequence(kind, None if any(isinstance(each, ast.Starred) for each in elements) else items)

    def _dict(self, node: ast.Dict) -> Value:
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None:
                self.context.tell("key", key, self.value(key))
            self.value(value)
        return Container("dict")

    def _set(self, node: ast.Set) -> Value:
        for each in node.elts:
            self.value(each)
        return Container("set")

    def _comprehension(self, node: Any) -> Value:
        inner = self._inner()
        for each in node.generators:
            inner.value(each.iter)
            for name in ast.walk(each.target):
                if isinstance(name, ast.Name):
                    inner.names[name.id] = UNKNOWN
            for test in each.ifs:
                inner.truth(test)
        if isinstance(node, ast.DictComp):
            self.context.tell("key", node.key, inner.value(node.key))
            inner.value(node.value)
            return Container("dict")
        inner.value(node.elt)
        kinds = {ast.ListComp: Sequence("list"), ast.SetComp: Container("set")}
        return kinds.get(type(node), UNKNOWN)

    def _inner(self) -> Expressions:
        """Return an evaluation with names of its own, for a comprehension or a lambda."""
        inner = Expressions(self.context, dict(self.names))
        inner.depth = self.depth
        return inner

    _listcomp = _setcomp = _dictcomp = _generatorexp = _comprehension

    def _lambda(self, node: ast.Lambda) -> Value:
        inner = self._inner()
        for each in ast.walk(node.args):
            if isinstance(each, ast.arg):
                inner.names[each.arg] = UNKNOWN
        inner.value(node.body)
        return UNKNOWN

    # --- subscripts ------------------------------------------------------------------------------------------------

    def _slice(self, node: ast.Slice) -> Value:
        ends = [self.value(each) if each is not None else None for each in (node.lower, node.upper, node.step)]
        self.context.tell("slice", node, *(UNKNOWN if each is None else each for each in ends))
        if ends == [None, None, None]:
            return Span(whole=True)
        start = 0 if ends[0] is None else whole(ends[0])
        stop = None if ends[1] is None else whole(ends[1])
        if start is not None and stop is not None and ends[2] is None:
            return Span(stop - start) if 0 <= start < stop else Span()
        return Span(self._between(node.lower, node.upper) if node.step is None else None)

    def _between(self, lower: ast.expr | None, upper: ast.expr | None) -> int | None:
        if lower is None or upper is None:
            return None
        from nkitools.lint.affine import extent

        quiet = Expressions(self.context.silent(self.context.scope), self.names)
        length = extent(lower, upper, quiet.value)
        return length if length is not None and length > 0 else None

    def _subscript(self, node: ast.Subscript) -> Value:
        base = self.value(node.value)
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        keys = tuple(self.value(each) for each in items)
        self.context.tell("subscript", node, base, *keys)
        if isinstance(base, Api):
            return self._grid(base, items)
        if isinstance(base, Tensor):
            return element(base, keys)
        if isinstance(base, Index):
            return Index(len(items), base.affine)
        if isinstance(base, Sequence):
            at = whole(keys[0]) if len(keys) == 1 else None
            if at is not None and base.items is not None and -len(base.items) <= at < len(base.items):
                return base.items[at]
            return Number(int) if base.kind == "shape" and not isinstance(keys[0], Span) else UNKNOWN
        return Piece(keys) if base is UNKNOWN or isinstance(base, Piece) else UNKNOWN

    def _grid(self, base: Api, items: list[ast.expr]) -> Value:
        legacy, module, member = parts(base.name)
        if legacy and (module, member) == ("language", "mgrid"):
            index = Index(len(items))
            return Sequence("tuple", (index,) * len(items))
        return UNKNOWN

    # --- calls -----------------------------------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> Value:
        function = self.value(node.func)
        given = self.arguments(node)
        if isinstance(function, Api):
            self.context.tell("call", node, function, given)
            made = called(function.name, given, node)
            return UNKNOWN if isinstance(made, Scalar) and not self.context.language.traced else made
        dotted = self.context.scope.qualified(node.func)
        if dotted:
            self.context.tell("foreign call", node, dotted, *given.positional)
        if isinstance(node.func, ast.Attribute):
            return self._method(node, node.func, given)
        return self._builtin(node, given)

    def _method(self, node: ast.Call, function: ast.Attribute, given: Arguments) -> Value:
        quiet = Expressions(self.context.silent(self.context.scope), self.names)
        base = quiet.value(function.value)
        self.context.tell("method", node, function.value, function.attr, *given.positional)
        if not isinstance(base, Tensor) or function.attr not in VIEWS:
            return UNKNOWN
        self.context.tell("view", node, base, function.attr, given)
        return viewed(base, function.attr, given)

    def arguments(self, node: ast.Call) -> Arguments:
        """Return the values of a call's arguments."""
        positional = tuple(self.value(each) for each in node.args)
        named = {each.arg or "**": self.value(each.value) for each in node.keywords}
        hidden = any(isinstance(each, ast.Starred) for each in node.args) or "**" in named
        return Arguments(positional, named, hidden)

    def _builtin(self, node: ast.Call, given: Arguments) -> Value:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in self.names or self.context.scope.owner(name) is not None:
            return UNKNOWN
        if name in ("float", "int", "range"):
            for each, value in zip(node.args, given.positional, strict=True):
                divides = isinstance(each, ast.BinOp) and isinstance(each.op, ast.Div)
                is_count = name == "range" and (is_float(value) or divides)
                self.context.tell("count" if is_count else "number", each, value)
        if name == "len" and given.positional:
            self.context.tell("length", node, given.positional[0])
        if name == "bool" and given.positional:
            self.context.tell("truth", node.args[0], given.positional[0])
        if name in ("set", "frozenset"):
            return Container("set")
        if name == "dict":
            return Container("dict")
        if name in ("int", "len"):
            return Number(int)
        if name == "float":
            return Number(float)
        if name == "slice" and len(given.positional) == 2:
            start, stop = (whole(each) for each in given.positional)
            return Span(stop - start if start is not None and stop is not None and start < stop else None)
        if name in ("min", "max") and len(given.positional) > 1:
            numbers = [whole(each) for each in given.positional]
            if None not in numbers:
                return Constant(min(numbers) if name == "min" else max(numbers))  # type: ignore[type-var]
        return UNKNOWN


def _size(size: int | None) -> Value:
    return Number(int) if size is None else Constant(size)
