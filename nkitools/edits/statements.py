"""Something forgotten: a statement, an initial value, a mask, an argument."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nkitools.edits.kinds import kind
from nkitools.edits.source import Edit, Source, assigned, callee, dropped, keyword, last_word, replaced, room

_COPIES = ("dma_copy", "tensor_copy", "store", "copy")
_MEMSETS = ("memset", "iota")
_BARRIERS = ("core_barrier",)
_FILLED = ("zeros", "ones", "full")

# Optional arguments whose absence is a different instruction, not a different way to write it.
_OPTIONAL = (
    "negate", "scale", "bias", "offset", "channel_multiplier", "reverse0", "reverse1", "accumulate", "reduce_cmd",
    "oob_mode", "is_stationary_onezero", "scalar_offset", "vector_offset", "indirect_dim", "dtype", "keepdims",
)  # fmt: skip


@kind("drop-copy", "a copy, load or store is forgotten", ast.Expr)
def drop_copy(source: Source, node: ast.Expr) -> Iterator[Edit]:
    """Statements that move data."""
    if callee(node.value) in _COPIES:
        yield dropped(node)


@kind("drop-memset", "a buffer is left without its initial value", ast.Module)
def drop_memset(source: Source, _: ast.Module) -> Iterator[Edit]:
    """``nisa.memset``, and ``nl.zeros`` and its kin that become ``nl.ndarray``."""
    yield from (dropped(each) for each in source.nodes if isinstance(each, ast.Expr) and callee(each.value) in _MEMSETS)
    for node in source.nodes:
        if isinstance(node, ast.Call) and callee(node) in _FILLED and room(node) == "nl":
            kept = [node.args[0], *([] if callee(node) == "full" else node.args[1:])]
            arguments = ", ".join([*map(source.says, kept), *map(source.says, node.keywords)])
            if keyword(node, "dtype") is None and callee(node) != "full" and len(node.args) < 2:
                arguments += ", dtype=nl.float32"
            if keyword(node, "buffer") is None:
                arguments += ", buffer=nl.sbuf"
            yield replaced(node, f"nl.ndarray({arguments})")


@kind("drop-barrier", "cores or ranks do not wait for each other", ast.Expr)
def drop_barrier(source: Source, node: ast.Expr) -> Iterator[Edit]:
    """Barriers."""
    if callee(node.value) in _BARRIERS:
        yield dropped(node)


@kind("drop-instruction", "an instruction, or a call of the kernel's own function, is forgotten", ast.Expr)
def drop_instruction(source: Source, node: ast.Expr) -> Iterator[Edit]:
    """Drop a call that stands alone and is no copy, memset or barrier."""
    if isinstance(node.value, ast.Call) and callee(node.value) not in (*_COPIES, *_MEMSETS, *_BARRIERS):
        yield dropped(node)


@kind("drop-assignment", "a variable keeps its old value", ast.Module)
def drop_assignment(source: Source, _: ast.Module) -> Iterator[Edit]:
    """Assignments to names that are all bound already, earlier in the function or in the loop before."""
    for function in source.functions:
        bound = {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)}
        for node in (each for each in ast.walk(function) if isinstance(each, ast.Assign)):
            names = {each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)}
            targets = [each for target in node.targets for each in getattr(target, "elts", [target])]
            if names <= bound and all(isinstance(each, ast.Name) for each in targets):
                yield dropped(node)
            bound |= names


@kind("drop-wrapper", "a call that changes its first argument is forgotten", ast.Call)
def drop_wrapper(source: Source, node: ast.Call) -> Iterator[Edit]:
    """``nl.exp(x)`` becomes ``x``: functions of one tensor that give one of its shape."""
    if room(node) == "nl" and callee(node) in _ELEMENTWISE:
        yield replaced(node, source.says(node.args[0]))


_ELEMENTWISE = ("exp", "log", "square", "abs", "rsqrt", "reciprocal", "copy", "negative")


@kind("drop-mask", "a mask, a predicate or one of its conditions is forgotten", ast.AST)
def drop_mask(source: Source, node: ast.AST) -> Iterator[Edit]:
    """``mask=``, one side of ``&``, ``nl.where`` and predicated copies."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
        for side in (node.left, node.right):
            yield replaced(node, source.says(side))
    elif not isinstance(node, ast.Call):
        return
    elif callee(node) == "where":
        yield replaced(node, source.says(node.args[1]))
    elif callee(node) == "tensor_copy_predicated":
        dst, src = (source.says(each) for each in node.keywords if each.arg in ("dst", "src"))
        yield replaced(node, f"nisa.tensor_copy({dst}, {src})")
    elif (mask := keyword(node, "mask")) is not None:
        yield source.without_argument(node, mask)


@kind("drop-keyword", "an optional argument is forgotten", ast.Call)
def drop_keyword(source: Source, node: ast.Call) -> Iterator[Edit]:
    """Optional arguments of instructions and of ``nl`` functions, but the dtype of a buffer, which it must have."""
    for argument in node.keywords:
        if argument.arg in _OPTIONAL and callee(node) not in ("ndarray", *_FILLED):
            yield source.without_argument(node, argument)


@kind("forget-accumulate", "a sum, or a running maximum, starts anew at each step", ast.AST)
def forget_accumulate(source: Source, node: ast.AST) -> Iterator[Edit]:
    """``+=`` becomes ``=``; matmuls overwrite; the engines' own registers are reset each time."""
    if isinstance(node, ast.AugAssign):
        yield assigned(node.target, node.value, "=")
    elif isinstance(node, ast.Call) and _may_accumulate(node):
        yield source.with_argument(node, "accumulate=False")
    elif last_word(node) == "reduce" and isinstance(node, ast.Attribute):
        yield replaced(node, "nisa.reduce_cmd.reset_reduce")


def _may_accumulate(call: ast.Call) -> bool:
    """Return whether a call is a matmul that leaves open whether it accumulates."""
    is_matmul = room(call) == "nisa" and callee(call) in ("nc_matmul", "nc_matmul_mx")
    return is_matmul and keyword(call, "dst") is not None and keyword(call, "accumulate") is None


@kind("wrong-accumulate", "the first step adds to what was never set", ast.AST)
def wrong_accumulate(source: Source, node: ast.AST) -> Iterator[Edit]:
    """Matmuls that always accumulate; registers that are never reset; ``=`` of a known name that becomes ``+=``."""
    if isinstance(node, ast.Call) and _may_accumulate(node):
        yield source.with_argument(node, "accumulate=True")
    elif last_word(node) == "reset_reduce" and isinstance(node, ast.Attribute):
        yield replaced(node, "nisa.reduce_cmd.reduce")
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        yield assigned(node.targets[0], node.value, "+=")


@kind("forget-return", "the result is not returned", ast.Return)
def forget_return(source: Source, node: ast.Return) -> Iterator[Edit]:
    """Drop the ``return`` of a kernel or of a function that it calls."""
    if node.value is not None:
        yield dropped(node)
