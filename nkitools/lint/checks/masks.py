"""NK603, NK604: indices and masks of the legacy dialect, and float indices of both."""

from __future__ import annotations

import ast

from nkitools.lint.abstract_values import (
    UNKNOWN,
    Api,
    Constant,
    Index,
    Mask,
    Number,
    Piece,
    Sequence,
    Span,
    Tensor,
    Value,
    is_float,
)
from nkitools.lint.context import Context
from nkitools.lint.return_types import Arguments

_JOIN = "Join the comparisons with &, each in parentheses: (i_p < h) & (i_f < w)."
_CODE = "err_unsupported_expression_in_mask"
_ONE_D = "Give it the dimensions of the tile: nl.arange(128)[:, None] for partitions, nl.arange(512)[None, :] beside."


def joined(context: Context, node: ast.expr, value: Value) -> None:
    """Report masks joined by ``or`` or negated: ``a < h or b < w``, ``not a < h``."""
    if isinstance(value, Mask) and not context.testing:
        message = f"`{ast.unparse(node)}` is a mask, and `and`, `or`, `not` ask for one truth value of it ({_CODE})"
        context.find("NK604", node, message, _JOIN, code=_CODE)


def joined_by_and(context: Context, node: ast.BoolOp, left: Value, right: Value) -> None:
    """Hint at masks joined by ``and``: ``a < h and b < w``, which one of AWS's own tests has."""
    if isinstance(node.op, ast.And) and isinstance(left, Mask) and isinstance(right, Mask):
        context.find("NK620", node, f"the mask `{ast.unparse(node)}` is joined by `and`", _JOIN)


def combined(context: Context, node: ast.BinOp, left: Value, right: Value) -> None:
    """Report masks combined by ``|``: ``(a < h) | (b < w)``."""
    masked = isinstance(left, Mask) or isinstance(right, Mask)
    if masked and not isinstance(node.op, ast.BitAnd):
        context.find("NK604", node, f"a mask is combined by something else than & ({_CODE})", code=_CODE)


def compared(context: Context, node: ast.Compare, *values: Value) -> None:
    """``i // 2 < 4``, and chains of comparisons."""
    if any(isinstance(each, Index) and not each.affine for each in values):
        message = f"`{ast.unparse(node)}` is not affine: it holds // or % ({_CODE})"
        context.find("NK604", node, message, code=_CODE)
    elif len(node.ops) > 1 and any(isinstance(each, Index) for each in values):
        message = f"`{ast.unparse(node)}` is a chain of comparisons, which asks for the truth value of a mask ({_CODE})"
        context.find("NK604", node, message, _JOIN, code=_CODE)


def given(context: Context, node: ast.Call, function: Api, arguments: Arguments) -> None:
    """``mask=(a < h, b < w)``, ``mask=(h, w)``, ``mask=5``."""
    value = arguments.named.get("mask")
    if value is None or not function.legacy:
        return
    wrong = isinstance(value, (Sequence, Index, Number, Tensor))
    if wrong or (isinstance(value, Constant) and value.value is not None and not isinstance(value.value, bool)):
        at = next(each.value for each in node.keywords if each.arg == "mask")
        kind = "a tuple" if isinstance(value, Sequence) else "no comparison of indices"
        context.find("NK604", at, f"{function.short}: the mask is {kind} ({_CODE})", _JOIN, code=_CODE)


def indexed(context: Context, node: ast.Subscript, base: Value, *keys: Value) -> None:
    """Report a tensor indexed by one-dimensional nl.arange, or by index tiles and slices at once."""
    if not isinstance(base, (Tensor, type(UNKNOWN), Piece)):
        return
    if any(isinstance(key, Index) and key.ndim == 1 for key in keys):
        message = (
            f"`{ast.unparse(node.value)}` is indexed with an nl.arange of one dimension (err_1d_arange_not_supported)"
        )
        context.find("NK603", node, message, _ONE_D, code="err_1d_arange_not_supported")
    elif any(isinstance(key, Index) for key in keys) and any(isinstance(key, Span) for key in keys):
        context.find(
            "NK603",
            node,
            f"an index of `{ast.unparse(node.value)}` mixes slices with indices made of nl.arange or nl.mgrid "
            "(err_unsupported_mixing_basic_advanced_tensor_indexing)",
            code="err_unsupported_mixing_basic_advanced_tensor_indexing",
        )
    elif isinstance(base, Tensor) and any(is_float(key) for key in keys):
        context.find("NK603", node, f"an index of `{ast.unparse(node.value)}` is a float", "Divide with //.")


def sliced(context: Context, node: ast.Slice, *ends: Value) -> None:
    """``x[0 : n / 2]``: no list and no tensor takes floats."""
    if any(is_float(each) for each in ends):
        context.find("NK603", node, f"the slice `{ast.unparse(node)}` has a float in it", "Divide with //.")


def counted(context: Context, node: ast.expr, value: Value) -> None:
    """``range(n / 128)``: Python takes no float as a count."""
    context.find(
        "NK609", node, f"range: the count `{ast.unparse(node)}` is a float", "Compute it with // instead of /."
    )


LISTENS = {
    "count": (counted,),
    "truth": (joined,),
    "join": (joined_by_and,),
    "binary": (combined,),
    "compare": (compared,),
    "call": (given,),
    "subscript": (indexed,),
    "slice": (sliced,),
}
