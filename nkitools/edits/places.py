"""The wrong place: slices, loops, tile sizes and constants that are off."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from nkitools.edits.kinds import kind
from nkitools.edits.source import Edit, Source, callee, last_word, replaced, room

_RANGES = ("range", "affine_range", "sequential_range", "static_range", "dynamic_range")
_TILE_SIZES = {"pmax": "psum_bank_fmax", "psum_bank_fmax": "pmax", "gemm_moving_fmax": "pmax"}
_TILE_SIZES["gemm_stationary_fmax"] = "gemm_moving_fmax"


def _slices(source: Source) -> Iterator[ast.Slice]:
    for node in source.nodes:
        if isinstance(node, ast.Slice) and (node.lower is not None or node.upper is not None):
            yield node


def _windows(source: Source) -> Iterator[ast.Call]:
    """Yield the calls ``nl.ds(start, size)``."""
    for node in source.nodes:
        if isinstance(node, ast.Call) and callee(node) == "ds":
            yield node


def _plus(source: Source, node: ast.expr, step: int) -> str:
    """Return an expression plus a number; a constant is added up."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return str(node.value + step)
    text = source.says(node)
    if isinstance(node, (ast.IfExp, ast.Compare, ast.BoolOp, ast.Lambda)):
        text = f"({text})"
    return f"{text} {'+' if step > 0 else '-'} {abs(step)}"


def _slice_text(source: Source, node: ast.Slice, by_lower: int, by_upper: int) -> str:
    lower = "" if node.lower is None else source.says(node.lower)
    upper = "" if node.upper is None else source.says(node.upper)
    if by_lower:
        lower = str(by_lower) if node.lower is None else _plus(source, node.lower, by_lower)
    if by_upper and node.upper is not None:
        upper = _plus(source, node.upper, by_upper)
    step = "" if node.step is None else f":{source.says(node.step)}"
    return f"{lower}:{upper}{step}"


@kind("shift-slice", "a slice, window or index is one further", ast.Module)
def shift_slice(source: Source, _: ast.Module) -> Iterator[Edit]:
    """Shift by one: both ends of a slice, the start of a window, a number or an affine index among the indices."""
    for part in _slices(source):
        yield replaced(part, _slice_text(source, part, 1, 1))
    for window in _windows(source):
        yield replaced(window.args[0], _plus(source, window.args[0], 1))
    windows = _names_of_windows(source)
    for node in source.nodes:
        if isinstance(node, ast.Subscript):
            for index in getattr(node.slice, "elts", [node.slice]):
                names_one = isinstance(index, (ast.BinOp, ast.Name)) or _is_number(index)
                if names_one and last_word(index) not in windows:
                    yield replaced(index, _plus(source, index, 1))


def _names_of_windows(source: Source) -> set[str]:
    """Return the names of slices and windows, to which no number can be added."""
    return {
        last_word(target)
        for node in source.nodes
        if isinstance(node, ast.Assign) and callee(node.value) in ("ds", "slice")
        for target in node.targets
    }


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


@kind("narrow-slice", "a slice or window is one shorter", ast.Module)
def narrow_slice(source: Source, _: ast.Module) -> Iterator[Edit]:
    """End a slice or a window one element earlier."""
    for part in _slices(source):
        if part.upper is not None:
            yield replaced(part, _slice_text(source, part, 0, -1))
    for window in _windows(source):
        yield replaced(window.args[1], _plus(source, window.args[1], -1))


@kind("widen-slice", "a slice or window is one longer", ast.Module)
def widen_slice(source: Source, _: ast.Module) -> Iterator[Edit]:
    """End a slice or a window one element later."""
    for part in _slices(source):
        if part.upper is not None:
            yield replaced(part, _slice_text(source, part, 0, 1))
    for window in _windows(source):
        yield replaced(window.args[1], _plus(source, window.args[1], 1))


def _turns(node: ast.AST) -> ast.expr | None:
    """Return the iterable of a loop or a comprehension; None for other nodes."""
    return node.iter if isinstance(node, (ast.For, ast.comprehension)) else None


def _range(node: ast.AST) -> ast.Call | None:
    """Return the range of a loop; None for other loops and nodes."""
    turns = _turns(node)
    return turns if isinstance(turns, ast.Call) and callee(turns) in _RANGES else None


@kind("shorten-loop", "the last turn of a loop is left out", ast.AST)
def shorten_loop(source: Source, node: ast.AST) -> Iterator[Edit]:
    """Let a range stop a step earlier, or a list end an element earlier."""
    if (of_range := _range(node)) is not None:
        yield _range_until(source, of_range, -1)
    elif (turns := _turns(node)) is not None:
        yield replaced(turns, f"list({source.says(turns)})[:-1]")


@kind("lengthen-loop", "a loop takes one turn too many", ast.AST)
def lengthen_loop(source: Source, node: ast.AST) -> Iterator[Edit]:
    """Let a range stop a step later."""
    if (turns := _range(node)) is not None:
        yield _range_until(source, turns, 1)


def _range_until(source: Source, turns: ast.Call, sign: int) -> Edit:
    stop = turns.args[1 if len(turns.args) > 1 else 0]
    if len(turns.args) < 3:
        return replaced(stop, _plus(source, stop, sign))
    return replaced(stop, f"{source.says(stop)} {'+' if sign > 0 else '-'} {source.says(turns.args[2])}")


@kind("start-late", "the first turn of a loop is left out", ast.AST)
def start_late(source: Source, node: ast.AST) -> Iterator[Edit]:
    """Let a range begin a step later, or a list an element later."""
    turns, of_range = _turns(node), _range(node)
    if turns is not None and of_range is None:
        yield replaced(turns, f"list({source.says(turns)})[1:]")
    elif of_range is not None and len(of_range.args) > 1:
        step = source.says(of_range.args[2]) if len(of_range.args) > 2 else "1"
        yield replaced(of_range.args[0], f"{source.says(of_range.args[0])} + {step}")
    elif of_range is not None and callee(of_range) == "range":
        yield replaced(of_range.args[0], f"1, {source.says(of_range.args[0])}")


@kind("wrong-range", "a loop whose steps depend on each other is declared independent", ast.AST)
def wrong_range(source: Source, node: ast.AST) -> Iterator[Edit]:
    """Replace ``sequential_range`` by ``affine_range``."""
    if (turns := _range(node)) is not None and callee(turns) == "sequential_range":
        yield replaced(turns.func, "nl.affine_range")


@kind("floor-division", "a size is rounded down to whole tiles", ast.BinOp)
def floor_division(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """Replace ``(size + tile - 1) // tile`` by ``size // tile``."""
    if (
        isinstance(node.op, ast.FloorDiv)
        and isinstance(node.left, ast.BinOp)
        and isinstance(node.left.op, ast.Sub)
        and isinstance(node.left.left, ast.BinOp)
        and _is_number(node.left.right)
    ):
        yield replaced(node.left, source.says(node.left.left.left))


@kind("drop-minimum", "the last, shorter tile is taken for a whole one", ast.Call)
def drop_minimum(source: Source, node: ast.Call) -> Iterator[Edit]:
    """Replace ``min(tile, rest)``, or a ``max``, by one of its arguments."""
    if isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
        for argument in node.args:
            yield replaced(node, source.says(argument))


@kind("wrong-tile-size", "another limit of the chip, or twice a tile", ast.Attribute)
def wrong_tile_size(source: Source, node: ast.Attribute) -> Iterator[Edit]:
    """Replace ``nl.tile_size.pmax`` by ``psum_bank_fmax``, its double or its half."""
    if node.attr in _TILE_SIZES and last_word(node.value) == "tile_size":
        yield replaced(node, f"nl.tile_size.{_TILE_SIZES[node.attr]}")
        yield replaced(node, f"(2 * nl.tile_size.{node.attr})")


@kind("change-constant", "a number is off by one, or another one", ast.Module)
def change_constant(source: Source, _: ast.Module) -> Iterator[Edit]:
    """Add one to an integer; double a float or a constant of the module, or change its sign."""
    for node in source.nodes:
        if isinstance(node, ast.Constant) and not _is_index(source, node):
            if type(node.value) is int:
                yield replaced(node, _number(node.value + 1))
            elif isinstance(node.value, float):
                yield replaced(node, _number(-node.value if node.value else 1.0))
    for constant in source.constants:
        if isinstance(constant.value, ast.Constant) and isinstance(constant.value.value, (int, float)):
            if not _is_used(source, constant.targets[0]):
                continue
            yield replaced(constant.value, _number(constant.value.value * 2))
            if isinstance(constant.value.value, int):
                yield replaced(constant.value, _number(constant.value.value - 1))


def _number(value: float) -> str:
    return repr(value)


def _is_used(source: Source, constant: ast.expr) -> bool:
    """Return whether a module's functions compute with a constant, and do not only assert with it."""
    name = last_word(constant)
    used = [*source.nodes, *(node for other in source.constants for node in ast.walk(other.value))]
    return any(isinstance(node, ast.Name) and node.id == name for node in used)


def _is_index(source: Source, node: ast.Constant) -> bool:
    """Return whether the kind shift-slice changes a node already."""
    around = source.parents[node]
    if isinstance(around, ast.Tuple):
        around = source.parents[around]
    return isinstance(around, (ast.Subscript, ast.Slice))


@kind("change-axis", "the other axis", ast.keyword)
def change_axis(source: Source, node: ast.keyword) -> Iterator[Edit]:
    """Replace ``axis=1`` by ``axis=0``."""
    if node.arg in ("axis", "indirect_dim") and isinstance(node.value, ast.Constant) and _is_number(node.value):
        yield replaced(node.value, str(1 - int(str(node.value.value))))


@kind("swap-indices", "rows and columns mixed up", ast.AST)
def swap_indices(source: Source, node: ast.AST) -> Iterator[Edit]:
    """Exchange neighbours among the indices of a tensor, or among the numbers of a shape."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        pairs = node.slice.elts
    elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Tuple) and _takes_shape(node):
        pairs = node.args[0].elts
    else:
        return
    for first, second in pairwise(pairs):
        if source.says(first) != source.says(second):
            yield source.swap(first, second)


def _takes_shape(call: ast.Call) -> bool:
    return callee(call) in ("reshape", "permute") or (room(call) == "nl" and callee(call) != "ds")
