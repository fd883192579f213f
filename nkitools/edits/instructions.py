"""The wrong instruction: operands, operators, dtypes, engines, memories and buffers mixed up."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import combinations, pairwise

from nkitools.edits.kinds import kind
from nkitools.edits.source import Edit, Source, callee, keyword, last_word, replaced, room

_DTYPES = {
    "float32": ("bfloat16", "float16"), "bfloat16": ("float8_e4m3",), "int32": ("int16", "float32"),
    "uint32": ("int32", "uint8"), "uint8": ("float32",), "float8_e8m0fnu": ("uint16",),
}  # fmt: skip
_BUFFERS = {"sbuf": ("psum", "shared_hbm"), "psum": ("sbuf",), "shared_hbm": ("sbuf",), "private_hbm": ("sbuf",)}
_OTHER = {
    "add": ("subtract", "maximum"), "subtract": ("add",), "multiply": ("add",), "maximum": ("minimum",),
    "minimum": ("maximum",), "max": ("min", "sum"), "sum": ("max",), "equal": ("not_equal",), "not_equal": ("equal",),
    "exp": ("square",), "log": ("exp",), "square": ("abs",), "abs": ("square",), "silu": ("gelu",), "relu": ("abs",),
    "rsqrt": ("sqrt",), "right_shift": ("left_shift",),
}  # fmt: skip
_COMPARED = {"less_equal": "less", "less": "less_equal", "greater_equal": "greater", "greater": "greater_equal"}
_COMMUTATIVE = ("add", "multiply", "maximum", "minimum", "equal", "not_equal", "bypass")
# Instructions that more than one engine can run, and the engine that a reader of the manual may choose next.
_ON_ANY_ENGINE = ("tensor_tensor", "tensor_scalar", "tensor_copy", "memset", "tensor_reduce", "scalar_tensor_tensor")
_PAIRS = (("stationary", "moving"), ("stationary_scale", "moving_scale"))
_ORDERED = (("data1", "data2"), ("data0", "data1"), ("data", "operand1"), ("operand0", "operand1"), ("dst", "src"))
_SHAPED = ("ndarray", "zeros", "ones", "full")


@kind("swap-stationary", "the stationary and the moving operand mixed up", ast.Call)
def swap_stationary(source: Source, node: ast.Call) -> Iterator[Edit]:
    """Exchange the stationary and the moving operand, given by keyword or, in the legacy dialect, by position."""
    if callee(node) in ("nc_matmul", "nc_matmul_mx"):
        if len(node.args) == 2:
            yield source.swap(*node.args)
        yield from _swapped(source, node, _PAIRS)


@kind("swap-operands", "the operands of an instruction that are not interchangeable mixed up", ast.AST)
def swap_operands(source: Source, node: ast.AST) -> Iterator[Edit]:
    """Exchange two inputs, source and destination, or the sides of ``x - y``, ``x / y`` and ``x // y``."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod)):
        left, right = source.says(node.left), source.says(node.right)
        yield replaced(node, f"({right}) {_sign(node.op)} ({left})")
    elif isinstance(node, ast.Call) and room(node) == "nl" and callee(node) in ("subtract", "divide"):
        yield source.swap(node.args[0], node.args[1])
    elif isinstance(node, ast.Call) and room(node) == "nisa" and not _is_commutative(node):
        yield from _swapped(source, node, _ORDERED)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) > 1:
        yield from _swapped_neighbours(source, node)


def _swapped_neighbours(source: Source, call: ast.Call) -> Iterator[Edit]:
    """Exchange names that stand side by side in a call of one of the kernel's functions."""
    assert isinstance(call.func, ast.Name)
    if call.func.id not in {function.name for function in source.functions}:
        return
    if any(last_word(argument) in _COMMUTATIVE for argument in call.args):
        return
    for first, second in pairwise(call.args):
        if isinstance(first, (ast.Name, ast.Subscript)) and isinstance(second, (ast.Name, ast.Subscript)):
            yield source.swap(first, second)


def _is_commutative(call: ast.Call) -> bool:
    op = keyword(call, "op")
    return callee(call) == "tensor_tensor" and op is not None and last_word(op.value) in _COMMUTATIVE


def _swapped(source: Source, call: ast.Call, pairs: tuple[tuple[str, str], ...]) -> Iterator[Edit]:
    for names in pairs:
        found = [each.value for each in call.keywords if each.arg in names]
        if len(found) == 2 and source.says(found[0]) != source.says(found[1]):
            yield source.swap(*found)


def _sign(op: ast.operator) -> str:
    return {ast.Sub: "-", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Add: "+", ast.Mult: "*"}[type(op)]


@kind("change-operator", "another operator or function", ast.AST)
def change_operator(source: Source, node: ast.AST) -> Iterator[Edit]:
    """Replace an operator of numbers or tiles: ``nl.add`` by ``nl.subtract`` and so on, ``+``, ``-``, ``*``, ``//``."""
    if isinstance(node, ast.Attribute) and last_word(node.value) == "nl":
        for other in _OTHER.get(node.attr, ()):
            yield replaced(node, f"nl.{other}")
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv)):
        other = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.FloorDiv: "*"}[type(node.op)]
        left, right = source.says(node.left), source.says(node.right)
        if not _rounds_up(source, node):
            yield replaced(node, f"({left}) {other} ({right})")


def _rounds_up(source: Source, node: ast.BinOp) -> bool:
    """Return whether a node is part of ``(size + tile - 1) // tile``, which other kinds of edits change."""
    parent = source.parents[node]
    whole = parent if isinstance(parent, ast.BinOp) and isinstance(node.op, ast.Sub) else node
    return (
        isinstance(whole.op, ast.FloorDiv) and isinstance(whole.left, ast.BinOp) and isinstance(whole.left.op, ast.Sub)
    )


@kind("change-comparison", "a comparison is off by one, or the other way round", ast.AST)
def change_comparison(source: Source, node: ast.AST) -> Iterator[Edit]:
    """Replace a comparison: ``<`` by ``<=``, ``==`` by ``!=``, also among the operators of instructions."""
    other = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in other:
        left, right = source.says(node.left), source.says(node.comparators[0])
        yield replaced(node, f"{left} {other[type(node.ops[0])]} {right}")
    elif isinstance(node, ast.Attribute) and last_word(node.value) == "nl" and node.attr in _COMPARED:
        yield replaced(node, f"nl.{_COMPARED[node.attr]}")


@kind("change-dtype", "a dtype that is narrower, or of another kind", ast.AST)
def change_dtype(source: Source, node: ast.AST) -> Iterator[Edit]:
    """Replace a dtype: float32 by bfloat16 or float16, an integer by another one, a tensor's own by bfloat16."""
    if isinstance(node, ast.Attribute) and last_word(node.value) == "nl":
        for other in _DTYPES.get(node.attr, ()):
            yield replaced(node, f"nl.{other}")
    elif isinstance(node, ast.keyword) and node.arg == "dtype" and last_word(node.value) == "dtype":
        yield replaced(node.value, "nl.bfloat16")


@kind("change-engine", "an engine that is not the one for it", ast.Call)
def change_engine(source: Source, node: ast.Call) -> Iterator[Edit]:
    """Name GpSimd, which does not reach PSUM, as the engine; another engine in the place of one that is named."""
    if room(node) != "nisa":
        return
    engine = keyword(node, "engine")
    if engine is not None:
        for other in ("vector", "scalar", "tensor"):
            yield replaced(engine.value, f"nisa.engine.{other}")
    elif callee(node) in _ON_ANY_ENGINE and keyword(node, "dst") is not None:
        yield source.with_argument(node, "engine=nisa.engine.gpsimd")


@kind("change-buffer", "a tensor in the wrong memory", ast.Attribute)
def change_buffer(source: Source, node: ast.Attribute) -> Iterator[Edit]:
    """Replace a memory: SBUF by PSUM or HBM, PSUM and HBM by SBUF."""
    if last_word(node.value) == "nl":
        for other in _BUFFERS.get(node.attr, ()):
            yield replaced(node, f"nl.{other}")


@kind("alias-buffers", "one buffer for two tensors", ast.Module)
def alias_buffers(source: Source, _: ast.Module) -> Iterator[Edit]:
    """Let two names share one buffer, if a function makes both buffers by the same call."""
    for function in source.functions:
        made = list(_buffers(source, function))
        for (one, text, _first), (two, same, statement) in combinations(made, 2):
            if text == same and one != two:
                yield source.insert_after(statement, f"{two} = {one}")


def _buffers(source: Source, function: ast.FunctionDef) -> Iterator[tuple[str, str, ast.stmt]]:
    """Yield name, call and statement of each buffer that a function makes, also in tuples."""
    for node in (each for each in ast.walk(function) if isinstance(each, ast.Assign)):
        target = node.targets[0]
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        for name, value in zip(names, values, strict=False):
            if isinstance(name, ast.Name) and isinstance(value, ast.Call) and makes_buffer(value):
                yield name.id, source.says(value), node


def makes_buffer(call: ast.Call) -> bool:
    """Return True if a call makes a tensor of a shape."""
    return callee(call) in (*_SHAPED, "_column", "_new") and room(call) in ("nl", "")
