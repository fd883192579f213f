"""Rules that only the source of a legacy kernel shows: tensors used outside of the block that made them (NK605), while
loops that test before they run (NK601), and shared_hbm tensors made under a condition (NK208).

AWS's compiler reads the kernel's source: an ``if`` on a loop counter or program id, and every loop over a range, is
control flow to the compiler, a scope of its own. An ``if`` on anything else (a flag, a dtype, ``x is None``) is decided
by the compiler and leaves no scope behind, so that AWS's own kernels choose a tensor by such an ``if`` and use the
tensor below.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from nkitools.lint.scope import Function, Scope, stored

_LANGUAGE = "neuronxcc.nki.language."
_ISA = "neuronxcc.nki.isa."
_RANGES = frozenset({"range", f"{_LANGUAGE}affine_range", f"{_LANGUAGE}sequential_range"})
_SCALAR = "neuronxcc.nki.typing.scalar"
_SHARED = f"{_LANGUAGE}shared_hbm"
_LOOP_REDUCE = f"{_LANGUAGE}loop_reduce"

# Functions of nl and nisa that return no tile.
_NO_TILE = frozenset(
    {f"{_LANGUAGE}{name}" for name in (
        "affine_range", "arange", "device_print", "ds", "finfo", "nc", "num_programs", "par_dim", "program_id",
        "program_ndim", "sequential_range", "spmd_dim", "static_cast", "static_range", "store",
    )}
    | {f"{_ISA}{name}" for name in ("dma_copy", "get_nc_version")}
)  # fmt: skip
_METHODS = frozenset({"astype", "broadcast_to", "expand_dims", "reshape", "view"})


@dataclass(frozen=True)
class SourceFinding:
    """A broken rule and its place in the source; columns count from 1."""

    rule: str
    message: str
    line: int
    column: int
    remedy: str
    code: str  # AWS's, which the message has too


# A block: the statements that open it and the ones around that; only those count that are a scope to the compiler.
Path = tuple[ast.AST, ...]


@dataclass(frozen=True)
class _Binding:
    path: Path
    line: int


@dataclass
class _Names:
    """The abstract values of the variables at one point of a function."""

    tensors: dict[str, _Binding] = field(default_factory=dict)
    varying: set[str] = field(default_factory=set)  # differ between iterations or programs
    scalars: dict[str, bool] = field(default_factory=dict)  # made of nt.scalar; whether it is scalar(True)


class Scopes:
    """The analysis of one function by its scope."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.names = _Names()
        self.findings: list[SourceFinding] = []
        self.told: set[tuple[str, _Binding]] = set()

    def function(self) -> list[SourceFinding]:
        """Return the findings in the function."""
        assert isinstance(self.scope.node, Function)
        self._block(self.scope.node.body, ())
        return self.findings

    def _resolved(self, node: ast.expr) -> str:
        """Return the dotted name that an expression stands for, the name of a builtin, or ''."""
        return self.scope.qualified(node) or (node.id if isinstance(node, ast.Name) else "")

    # --- statements ------------------------------------------------------------------------------------------------

    def _block(self, body: list[ast.stmt], path: Path) -> None:
        for statement in body:
            self._statement(statement, path)

    def _statement(self, node: ast.stmt, path: Path) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return  # runs elsewhere, with names of its own
            case ast.Assign(targets=targets, value=value):
                self._read(node, path)
                for target in targets:
                    self._bind(target, value, path)
            case ast.AnnAssign(target=target, value=value):
                self._read(node.value, path)
                if value is not None:
                    self._bind(target, value, path)
            case ast.For(target=target, iter=iterated, body=body, orelse=orelse):
                self._read(iterated, path)
                self._loop(node, target, iterated, path)
                self._block(orelse, path)
            case ast.While():
                self._while(node, path)
            case ast.If(test=test, body=body, orelse=orelse):
                self._read(test, path)
                varies = self._varies(test)
                self._block(body, (*path, node) if varies else path)
                self._block(orelse, (*path, test) if varies else path)
            case ast.With(body=body) | ast.AsyncWith(body=body):
                for item in node.items:
                    self._read(item.context_expr, path)
                self._block(body, path)
            case ast.Try():
                for part in (node.body, *(each.body for each in node.handlers), node.orelse, node.finalbody):
                    self._block(part, path)
            case _:
                self._read(node, path)

    def _loop(self, node: ast.For, target: ast.expr, iterated: ast.expr, path: Path) -> None:
        is_range = isinstance(iterated, ast.Call) and self._resolved(iterated.func) in _RANGES
        for name in stored([target]):
            self._forget(name.id)
            if is_range:
                self.names.varying.add(name.id)
        self._block(node.body, (*path, node) if is_range else path)

    def _while(self, node: ast.While, path: Path) -> None:
        self._read(node.test, path)
        scalars = [name for name in _loaded(node.test) if name in self.names.scalars]
        direct = [each for each in ast.walk(node.test) if self._is_scalar_call(each)]
        enters = isinstance(node.test, ast.Name) and bool(self.names.scalars.get(node.test.id))
        if (scalars or direct) and not enters:
            self._find(
                "NK601",
                node,
                "a while loop tests a scalar before its first iteration",
                "Begin with cond = nt.scalar(True), loop with `while cond:`, and assign cond at the end of the body.",
                "err_while_loop_requires_unconditional_entry",
            )
        self._block(node.body, (*path, node) if scalars or direct else path)
        self._block(node.orelse, path)

    # --- names -----------------------------------------------------------------------------------------------------

    def _forget(self, name: str) -> None:
        self.names.tensors.pop(name, None)
        self.names.varying.discard(name)
        self.names.scalars.pop(name, None)

    def _bind(self, target: ast.expr, value: ast.expr, path: Path) -> None:
        tensor, varies, scalar = self._is_tensor(value), self._varies(value), self._scalar(value)
        is_update = isinstance(value, ast.Call) and self._resolved(value.func) == _LOOP_REDUCE
        for name in (each.id for each in stored([target])):
            if name in self.names.tensors and is_update:
                continue  # b = nl.loop_reduce(x, ...) is an update of the tile that b is
            self._forget(name)
            if not isinstance(target, ast.Name):
                continue
            if tensor:
                self.names.tensors[name] = _Binding(path, target.lineno)
            elif scalar is not None:
                self.names.scalars[name] = scalar
            elif varies:
                self.names.varying.add(name)

    def _read(self, node: ast.AST | None, path: Path) -> None:
        """Look at the names that a statement or expression reads."""
        if node is None:
            return
        hidden = own_names(node)
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and each.id not in hidden:
                self._use(each, path)
            if isinstance(each, ast.Call):
                self._call(each, path)

    def _use(self, node: ast.Name, path: Path) -> None:
        binding = self.names.tensors.get(node.id)
        if binding is None or path[: len(binding.path)] == binding.path or (node.id, binding) in self.told:
            return
        self.told.add((node.id, binding))
        block = "loop" if isinstance(binding.path[-1], (ast.For, ast.While)) else "`if` or `else`"
        message = f"tensor `{node.id}` is used outside of the {block} in which line {binding.line} makes it"
        remedy = f"Create `{node.id}` in front of the block, and assign to its elements in it: {node.id}[...] = ..."
        self._find("NK605", node, message, remedy, "err_local_variable_used_out_of_scope")

    def _call(self, node: ast.Call, path: Path) -> None:
        """NK208: a creation in shared_hbm in a scope of its own."""
        buffers = [each.value for each in node.keywords if each.arg == "buffer"]
        shared = any(
            self._resolved(each) == _SHARED or (isinstance(each, ast.Constant) and each.value == "shared_hbm")
            for each in buffers
        )
        if shared and path:
            in_loop = any(isinstance(each, (ast.For, ast.While)) for each in path)
            where = "in a loop" if in_loop else "under a condition that differs between programs"
            message = f"a shared_hbm tensor is created {where}; only the top level of a kernel may create one"
            remedy = f"Create it in front of the {'loop' if in_loop else '`if`, in every program'}."
            self._find("NK208", node, message, remedy, "err_shared_hbm_must_in_kernel_level")

    def _find(self, rule: str, node: ast.AST, message: str, remedy: str, code: str) -> None:
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0) + 1
        self.findings.append(SourceFinding(rule, f"{message} ({code})", line, column, remedy, code))

    # --- values ----------------------------------------------------------------------------------------------------

    def _is_tensor(self, value: ast.expr) -> bool:
        """Return whether an expression makes a new tile, as far as the source shows it."""
        match value:
            case ast.Call(func=function):
                name = self._resolved(function)
                if name.startswith((_LANGUAGE, _ISA)):
                    return name not in _NO_TILE
                return isinstance(function, ast.Attribute) and function.attr in _METHODS and self._holds(function.value)
            case ast.BinOp(left=left, right=right):
                return self._holds(left) or self._holds(right)
            case ast.UnaryOp(operand=operand):
                return not isinstance(value.op, ast.Not) and self._holds(operand)
            case ast.IfExp(body=body, orelse=orelse):
                return self._is_tensor(body) and self._is_tensor(orelse)
        return False

    def _holds(self, value: ast.expr) -> bool:
        """Return whether an expression is a tile: a variable that holds one, a part of that, or a new one."""
        if isinstance(value, ast.Name):
            return value.id in self.names.tensors
        if isinstance(value, ast.Subscript):
            return self._holds(value.value)
        return self._is_tensor(value)

    def _varies(self, value: ast.expr) -> bool:
        """Return whether a value differs between iterations of a range or between programs."""
        calls = (self._resolved(each.func) for each in ast.walk(value) if isinstance(each, ast.Call))
        return any(name in self.names.varying for name in _loaded(value)) or f"{_LANGUAGE}program_id" in calls

    def _is_scalar_call(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Call) and self._resolved(node.func) == _SCALAR

    def _scalar(self, value: ast.expr) -> bool | None:
        """Return whether a value is ``scalar(True)``; None if it is not made of scalars."""
        if isinstance(value, ast.Call) and self._is_scalar_call(value):
            first = value.args[0] if value.args else None
            return isinstance(first, ast.Constant) and first.value is True
        made = any(self._is_scalar_call(each) for each in ast.walk(value))
        return False if made or any(name in self.names.scalars for name in _loaded(value)) else None


def _loaded(value: ast.AST) -> Iterator[str]:
    hidden = own_names(value)
    for node in ast.walk(value):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in hidden:
            yield node.id


def own_names(node: ast.AST) -> set[str]:
    """Names that comprehensions and lambdas in a node bind for themselves."""
    found: set[str] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.comprehension):
            found.update(name.id for name in stored([each.target]))
        elif isinstance(each, ast.Lambda):
            found.update(argument.arg for argument in ast.walk(each.args) if isinstance(argument, ast.arg))
    return found
