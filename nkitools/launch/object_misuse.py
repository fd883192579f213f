"""Objects of NKI that a kernel uses as something else: a dtype that is called, a range in a `with`.

Python says only that an object is not callable, or has no such attribute.
"""

from __future__ import annotations

import ast
from types import FrameType
from typing import Any, NamedTuple

from nkitools.authors_code.positions import span, span_of
from nkitools.authors_code.source_text import nodes_of, text_of
from nkitools.chip.dtypes import DType
from nkitools.chip.memory_region import MemoryRegion
from nkitools.facts.invented_names import shape_remedy, size_remedy

_UNKNOWN = object()


class Misuse(NamedTuple):
    """A rule, the message, and the remedy."""

    rule: str
    message: str
    remedy: str


def misuse_at(frame: FrameType, instruction: int) -> Misuse | None:
    """Return the mistake in a call or `with` that failed with a TypeError; None for other causes."""
    place = span_of(frame.f_code, instruction)
    for node in nodes_of(text_of(frame.f_code)):
        if isinstance(node, ast.With) and node.lineno == place[0]:
            found = (_entered(item, frame) for item in node.items)
            return next((each for each in found if each is not None), None)
        if isinstance(node, ast.Call) and span(node) == place:
            return _called(node, frame)
    return None


def _called(node: ast.Call, frame: FrameType) -> Misuse | None:
    function, shown = _value(node.func, frame), ast.unparse(node.func)
    if isinstance(function, DType):
        given = ast.unparse(node.args[0]) if node.args else "0"
        is_number = not node.args or isinstance(_value(node.args[0], frame), int | float)
        remedy = f"Write the number itself, `{given}`." if is_number else f"Write `nl.copy({given}, dtype={shown})`."
        return Misuse("NK609", f"{shown} is a dtype, and no function", remedy)
    if isinstance(function, MemoryRegion):
        return Misuse("NK609", f"{shown} is a memory, and no function", f"Write `{_allocated(node, shown)}`.")
    if _is_sizes(function):
        return Misuse("NK609", f"{shown} holds the sizes of tiles, and is no function", _pmax(shown))
    sizes = next((each for each in node.args if _is_sizes(_value(each, frame))), None)
    if sizes is not None:
        message = f"{ast.unparse(sizes)} holds the sizes of tiles, and is no number"
        return Misuse("NK609", message, _pmax(ast.unparse(sizes)))
    if getattr(function, "__name__", "") == "ndarray" and len(node.args) > 1:
        return Misuse("NK609", f"{shown} takes a shape as one tuple", shape_remedy(map(ast.unparse, node.args)))
    return None


def _allocated(node: ast.Call, memory: str) -> str:
    given = {each.arg: ast.unparse(each.value) for each in node.keywords}
    given |= dict(zip(("shape", "dtype"), map(ast.unparse, node.args), strict=False))
    return f"nl.ndarray({given.get('shape', '...')}, dtype={given.get('dtype', 'nl.float32')}, buffer={memory})"


def _is_sizes(value: Any) -> bool:
    return type(value).__name__ == "TileSize"  # of a room above


def _pmax(shown: str) -> str:
    return f"Write `{shown}.pmax`, the partitions of a tile."


def _entered(item: ast.withitem, frame: FrameType) -> Misuse | None:
    """``with nl.affine_range(2) as i:``, whose range has been made and is gone."""
    call = item.context_expr
    if not isinstance(call, ast.Call) or not getattr(_value(call.func, frame), "__name__", "").endswith("range"):
        return None
    counter = ast.unparse(item.optional_vars) if item.optional_vars is not None else "i"
    shown = ast.unparse(call)
    return Misuse("NK609", f"{shown} is a range for a loop", f"Write `for {counter} in {shown}:`.")


def _value(node: ast.expr, frame: FrameType) -> Any:
    """Return the value of a name or of an attribute, without any call."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp):
        return _value(node.operand, frame)
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id, frame.f_globals.get(node.id, _UNKNOWN))
    return getattr(_value(node.value, frame), node.attr, _UNKNOWN) if isinstance(node, ast.Attribute) else _UNKNOWN


def attribute_misuse(owner: Any, name: str) -> Misuse | None:
    """Return the mistake in a missing attribute of an object of NKI that is no tensor."""
    if _is_sizes(owner):
        return Misuse("NK607", f"nl.tile_size has no `{name}`", size_remedy(name, type(owner)))
    if isinstance(owner, MemoryRegion):
        remedy = f"Write `nl.ndarray(shape, dtype=nl.float32, buffer={owner!r})`."
        return Misuse("NK607", f"{owner!r} is a memory, without `{name}`", remedy)
    return None
