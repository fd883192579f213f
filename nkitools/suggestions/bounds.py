"""The last tile: NK402, NK403."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from nkitools.edits.source import Edit, callee, keyword, replaced
from nkitools.suggestions.memory import keyword_given
from nkitools.suggestions.site import Site, Suggestion, given, in_brackets

_MASKED = frozenset({"load", "store", "load_transpose2d", "dma_copy", "atomic_rmw"})


def smaller_last_tile(site: Site) -> Iterator[Suggestion]:
    """NK402: end the last tile at the tensor's end, or, in the legacy dialect, mask what lies beyond it."""
    dimension, name = site.whole_fact("axis"), site.text_fact("tensor")
    if dimension < 0 or not name:
        return
    for index in _subscripts(site, name):
        part = _part(index, dimension)
        if part is None:
            continue
        span = _span(site, part)
        if span is not None and not site.is_legacy:
            yield from _ended(site, span, f"{name}.shape[{dimension}]")
        elif span is None and site.is_legacy:
            yield from _masked(site, part, f"{name}.shape[{dimension}]")
        return


def rounded_up(site: Site) -> Iterator[Suggestion]:
    """NK403: as many tiles as cover the tensor, the last one in part."""
    if site.text_fact("cause") != "last tile":
        return
    edits = []
    for node in site.inside(site.scope.node.body):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv) and _counts_tiles(site, node):
            left, right = site.text(node.left), site.text(node.right)
            more = str(node.right.value - 1) if isinstance(node.right, ast.Constant) else f"{right} - 1"  # type: ignore[operator]
            edits.append(replaced(node, f"({left} + {more}) // {in_brackets(right, node.right)}"))
    if edits:
        yield Suggestion("Round the number of tiles up", tuple(edits))


def _counts_tiles(site: Site, node: ast.BinOp) -> bool:
    """Return whether a quotient is a number of turns, itself or by a name, and is not rounded up already."""
    if any(isinstance(each, ast.Constant) and each.value == 0 for each in (node.left, node.right)):
        return False
    if isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.Add):
        return False
    steered = [each.iter for each in site.inside(site.scope.node.body) if isinstance(each, ast.For)]
    inside = [part for each in steered for part in ast.walk(each)]
    if node in inside:
        return True
    names = {name for name, values in site.scope.variables.items() if node in values}
    return any(isinstance(each, ast.Name) and each.id in names for each in inside)


@dataclass(frozen=True)
class _Span:
    """The range of an index: where it starts, how long it is, and the node that says its end or its length."""

    start: ast.expr
    size: ast.expr | None
    said: ast.expr
    by_length: bool  # nl.ds


def _subscripts(site: Site, name: str) -> Iterator[ast.Subscript]:
    for node in site.inside([site.blocks[-1]] if site.blocks else []):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == name:
            yield node


def _part(index: ast.Subscript, dimension: int) -> ast.expr | None:
    parts = index.slice.elts if isinstance(index.slice, ast.Tuple) else [index.slice]
    return parts[dimension] if dimension < len(parts) else None


def _span(site: Site, part: ast.expr) -> _Span | None:
    """Return the range that ``a:b``, ``nl.ds(a, n)`` or a name of the latter stands for."""
    if isinstance(part, ast.Slice):
        if part.upper is None or part.step is not None:
            return None
        start = part.lower or ast.Constant(0)
        return _Span(start, _size(start, part.upper), part.upper, by_length=False)
    if isinstance(part, ast.Name):
        made = site.made(part.id)
        return None if made is None else _span(site, made)
    if isinstance(part, ast.Call) and callee(part) == "ds" and len(part.args) == 2:
        return _Span(part.args[0], part.args[1], part.args[1], by_length=True)
    return None


def _size(start: ast.expr, end: ast.expr) -> ast.expr | None:
    """Return n of ``a : a + n`` and of ``i * n : (i + 1) * n``."""
    if isinstance(end, ast.BinOp) and isinstance(end.op, ast.Add) and ast.dump(end.left) == ast.dump(start):
        return end.right
    if isinstance(end, ast.BinOp) and isinstance(end.op, ast.Mult) and isinstance(start, ast.BinOp):
        for size, other in ((end.right, end.left), (end.left, end.right)):
            sides = (ast.dump(start.left), ast.dump(start.right))
            if isinstance(other, ast.BinOp) and isinstance(other.op, ast.Add) and ast.dump(size) in sides:
                return size
    return None


def _ended(site: Site, span: _Span, limit: str) -> Iterator[Suggestion]:
    """Yield the suggestion to end a range at a limit, in all indices of its block, with the tiles that it fills."""
    around = site.loops[-1].body if site.loops else site.scope.node.body
    left = f"{limit} - {in_brackets(site.text(span.start), span.start)}" if site.text(span.start) else limit
    edits: list[Edit] = []
    for node in site.inside(around):
        if isinstance(node, ast.Slice) and node.upper is not None and not span.by_length:
            if _same(node.upper, span.said):
                edits.append(replaced(node.upper, f"min({site.text(node.upper)}, {limit})"))
        elif span.by_length and isinstance(node, ast.Call) and _is_range(node, span):
            edits.append(replaced(node.args[1], f"min({site.text(node.args[1])}, {left})"))
    if span.size is not None:
        edits += _shorter_tiles(site, around, span.size, left)
    if edits:
        yield Suggestion(f"End the last tile at {limit}", tuple(dict.fromkeys(edits)))


def _same(one: ast.expr, other: ast.expr) -> bool:
    return ast.dump(one) == ast.dump(other)


def _is_range(call: ast.Call, span: _Span) -> bool:
    """Return whether a call is nl.ds of the span's start and length."""
    return (
        callee(call) == "ds"
        and len(call.args) == 2
        and _same(call.args[0], span.start)
        and _same(call.args[1], span.said)
    )


def _shorter_tiles(site: Site, around: list[ast.stmt], size: ast.expr, left: str) -> Iterator[Edit]:
    """Yield the edits of tiles that a block makes with as many rows as its range has."""
    for node in site.inside(around):
        if not isinstance(node, ast.Call) or callee(node) not in ("ndarray", "zeros", "ones", "full"):
            continue
        shape, buffer = given(node, "shape", 0), keyword(node, "buffer")
        on_chip = buffer is None or site.text(buffer.value).rpartition(".")[2] in ("sbuf", "psum")
        if isinstance(shape, ast.Tuple) and shape.elts and on_chip and _same_size(site, shape.elts[0], size):
            yield replaced(shape.elts[0], f"min({site.text(shape.elts[0])}, {left})")


def _same_size(site: Site, one: ast.expr, other: ast.expr) -> bool:
    return ast.dump(_known(site, one)) == ast.dump(_known(site, other))


def _known(site: Site, node: ast.expr) -> ast.expr:
    """Return the number behind a name or nl.tile_size.pmax, else the node itself."""
    if isinstance(node, ast.Attribute) and site.text(node).endswith("tile_size.pmax"):
        return ast.Constant(128)
    if isinstance(node, ast.Name):
        owner = site.scope.owner(node.id)
        values = owner.variables.get(node.id, []) if owner is not None else []
        if len(values) == 1 and isinstance(values[0], ast.Constant | ast.Attribute):
            return _known(site, values[0])
    return node


def _masked(site: Site, part: ast.expr, limit: str) -> Iterator[Suggestion]:
    """Yield the suggestion to mask the positions of an index beyond a limit, in all accesses of its block."""
    around = site.loops[-1].body if site.loops else site.scope.node.body
    condition = f"{site.text(part)} < {limit}"
    edits = []
    for node in site.inside(around):
        if not isinstance(node, ast.Call) or callee(node) not in _MASKED:
            continue
        indices = [each for each in ast.walk(node) if isinstance(each, ast.Subscript)]
        parts = [one for each in indices for one in (each.slice.elts if isinstance(each.slice, ast.Tuple) else [])]
        if not any(ast.dump(one) == ast.dump(part) for one in parts):
            continue
        mask = keyword(node, "mask")
        if mask is None:
            edits.append(site.module.source.with_argument(node, f"mask=({condition})"))
        else:
            text = f"({condition}) & ({site.text(mask.value)})"
            edits.append(keyword_given(site, node, "mask", text).edits[0])
    if edits:
        yield Suggestion(f"Mask with {condition}", tuple(edits))
