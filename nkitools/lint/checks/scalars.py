"""NK301, NK609: scalars of two widths, integers of 64 bits where there are none, and results of comparisons."""

from __future__ import annotations

import ast

from nkitools.lint.abstract_values import (
    UNKNOWN,
    Api,
    Constant,
    Number,
    Register,
    Scalar,
    Span,
    Tensor,
    Value,
    is_float,
    whole,
)
from nkitools.lint.context import Context
from nkitools.lint.return_types import COMPARING, CREATING, REDUCING, Arguments, called, parts

_COMPUTES = (ast.Add, ast.Sub, ast.Mult, ast.USub, ast.UAdd)
_COMPARES = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_BITS = {"int32": 32, "int64": 64}
# Functions of nl.* that compute on tiles.
_COMPUTING = COMPARING | REDUCING | {"add", "copy", "exp", "maximum", "minimum", "multiply", "subtract", "where"}
# By function, the parameters that take a scalar of 32 bits.
_SHORT = {
    "language.fori_loop": ("lower", "upper"),
    "language.while_loop": ("init",),
    "isa.iota": ("offset",),
    "isa.register_move": ("src",),
}
_SCALAR_STORE = "Store a scalar with nisa.scalar_store, and compute with the tensor."
_LOAD_32 = "Load the scalar from a tensor of nl.int32."
_FLAG = "Compare in a tensor (nl.less), and load the 0 or 1 with nisa.scalar_load."
_IN_HBM = "Integers of 64 bits lie in HBM, and one of nl.int64 in SBUF, where nisa.scalar_load reads it."


def computed(context: Context, node: ast.BinOp | ast.UnaryOp | ast.AugAssign, *operands: Value) -> None:
    """``scalar + other``, ``-scalar``."""
    if isinstance(node.op, _COMPUTES):
        _unfit(context, node, *operands)


def compared(context: Context, node: ast.Compare, *values: Value) -> None:
    """``scalar < other``."""
    for left, right, sign in zip(values, values[1:], node.ops, strict=False):
        if isinstance(sign, _COMPARES) and not _unfit(context, node, left, right) and _is_long(left, right):
            message = f"`{ast.unparse(node)}` compares scalars of int64; the device has no comparison of 64 bits"
            context.find("NK301", node, message, _LOAD_32)


def _is_long(*values: Value) -> bool:
    return any(isinstance(each, Scalar) and each.dtype == "int64" for each in values)


def _unfit(context: Context, node: ast.expr | ast.stmt, *operands: Value) -> bool:
    """Report operands that do not go together; return whether there are such."""
    scalars = [each for each in operands if isinstance(each, Scalar)]
    others = [each for each in operands if not isinstance(each, Scalar)]
    widths = {each.dtype for each in scalars} - {""}
    shown = ast.unparse(node)
    if len(widths) == 2:
        message = f"`{shown}` has scalars of int32 and int64; no scalar changes its width"
        context.find("NK301", node, message, "Load both from tensors of one dtype.")
    elif any(each.compared for each in scalars):
        context.find(
            "NK609", node, f"`{shown}` uses the result of a comparison of scalars, which cannot be used", _FLAG
        )
    elif "int64" in widths and any(isinstance(each, Register) for each in others):
        context.find("NK301", node, f"`{shown}` computes with a register, of 32 bits, and a scalar of int64", _LOAD_32)
    elif scalars and any(is_float(each) for each in others):
        remedy = "The other operand is a Python integer or a scalar of the same dtype."
        context.find("NK609", node, f"`{shown}` has a scalar of the device and a float", remedy)
    elif widths and not scalars[0].maybe_register and any(not _fits(each, min(widths)) for each in others):
        message = f"`{shown}` has an integer that does not fit into the scalar's {min(widths)}"
        context.find("NK609", node, message, "Load the number from a tensor of nl.int64 with nisa.scalar_load.")
    else:
        return False
    return True


def _fits(value: Value, dtype: str) -> bool:
    number, half = whole(value), 1 << _BITS[dtype] - 1
    return number is None or -half <= number < half


def given_to(context: Context, node: ast.Call, function: Api, given: Arguments) -> None:
    """Look at the scalars and at the tensors of 64 bits that a function is given."""
    legacy, module, member = parts(function.name)
    if legacy or context.interface is None or module not in ("isa", "language"):
        return
    bound = context.interface.bound(function.name, given)
    if (module, member) == ("isa", "scalar_load"):
        _loaded(context, node, bound.get("src", UNKNOWN))
    elif (module, member) == ("isa", "scalar_store"):
        _stored(context, node, bound.get("dst", UNKNOWN), bound.get("value", UNKNOWN))
    elif f"{module}.{member}" in _SHORT:
        if isinstance(bound.get("step"), Scalar):
            message = f"{function.short}: step must be known when the kernel is built, it is a scalar of the device"
            context.find("NK609", node, message)
        for name in _SHORT[f"{module}.{member}"]:
            _used(context, node, bound.get(name, UNKNOWN), f"{function.short}: `{name}`", short=True)
    elif module == "isa" or member in _COMPUTING:
        _operands(context, node, function, bound)


def _used(context: Context, node: ast.AST, value: Value, what: str, *, short: bool) -> None:
    """Report a scalar that is the result of a comparison, or that has 64 bits where ``short`` ones are taken."""
    if isinstance(value, Scalar) and value.compared:
        context.find("NK609", node, f"{what} is the result of a comparison of scalars, which cannot be used", _FLAG)
    elif short and _is_long(value):
        context.find("NK301", node, f"{what} needs an integer of 32 bits, it is a scalar of int64", _LOAD_32)


def _loaded(context: Context, node: ast.Call, src: Value) -> None:
    if isinstance(src, Tensor) and src.dtype and src.dtype not in _BITS:
        context.find("NK301", node, f"nisa.scalar_load: `src` must be of nl.int32 or nl.int64, it is of {src.dtype}")


def _stored(context: Context, node: ast.Call, dst: Value, value: Value) -> None:
    """Check that nisa.scalar_store stores a scalar, and into a tensor of its dtype."""
    if isinstance(value, (Constant, Number, Register, Tensor)):
        remedy = "Write a number that is known when the kernel is built with nisa.memset."
        context.find("NK609", node, "nisa.scalar_store: argument `value` must be a scalar", remedy)
    elif isinstance(value, Scalar) and isinstance(dst, Tensor) and dst.dtype and value.dtype not in ("", dst.dtype):
        message = f"nisa.scalar_store: `value` is a scalar of {value.dtype}, and `dst` is of {dst.dtype}"
        context.find("NK301", node, f"{message}; nothing is cast", f"Give `dst` the dtype nl.{value.dtype}.")
    else:
        _used(context, node, value, "nisa.scalar_store: `value`", short=False)


def _operands(context: Context, node: ast.Call, function: Api, bound: dict[str, Value]) -> None:
    """Check the operands of an engine: no scalars, and no integers of 64 bits but where they are moved."""
    for name, value in bound.items():
        if isinstance(value, Scalar) and not value.maybe_register:
            message = f"{function.short}: argument `{name}` is a scalar of the device"
            context.find("NK609", node, message, _SCALAR_STORE)
    wide = [name for name, each in bound.items() if _is_wide(context, each)]
    dtypes = {each.dtype for each in bound.values() if isinstance(each, Tensor) and each.dtype}
    if wide and function.short != "nisa.dma_copy":
        context.find("NK301", node, f"{function.short}: `{wide[0]}` holds integers of 64 bits", _IN_HBM)
    elif wide and len(dtypes) > 1:
        context.find("NK301", node, f"{function.short}: integers of 64 bits are copied, not converted", _IN_HBM)


def _is_wide(context: Context, value: Value) -> bool:
    """Return whether a tensor holds integers of 64 bits, in a version that has them."""
    known = context.interface is not None and context.interface.missing("nki.language.int64") is None
    return isinstance(value, Tensor) and value.dtype in ("int64", "uint64") and known


def made(context: Context, node: ast.Call, function: Api, given: Arguments) -> None:
    """Check tensors of 64 bits: not on chip, but for one signed element in SBUF, and never filled."""
    legacy, module, member = parts(function.name)
    if legacy or module != "language" or member not in CREATING:
        return
    tensor = called(function.name, given)
    if not isinstance(tensor, Tensor) or not _is_wide(context, tensor):
        return
    one = tensor.shape is None or all(size in (1, None) for size in tensor.shape)
    if member != "ndarray":
        context.find("NK301", node, f"{function.short} fills a tensor of {tensor.dtype}; no engine does", _IN_HBM)
    elif tensor.memory == "psum" or (tensor.memory == "sbuf" and not (one and tensor.dtype == "int64")):
        place = tensor.memory.upper()
        context.find(
            "NK301", node, f"a tensor of {tensor.dtype} lies in {place}; no engine computes on 64 bits", _IN_HBM
        )


def indexed(context: Context, node: ast.Subscript, base: Value, *keys: Value) -> None:
    """``tile[scalar]``, ``tile[nl.ds(scalar, n)]``."""
    for key in keys if isinstance(base, Tensor) else ():
        _address(context, node, base, key.start if isinstance(key, Span) else key)


def viewed(context: Context, node: ast.Call, base: Tensor, method: str, given: Arguments) -> None:
    """``tile.ap(scalar_offset=scalar)``, ``tile.select(dim, scalar)``."""
    if method == "ap":
        _address(context, node, base, given.named.get("scalar_offset", UNKNOWN))
    elif method == "select":
        _address(context, node, base, given.get("index", 1) or UNKNOWN)


def _address(context: Context, node: ast.AST, base: Value, value: Value) -> None:
    on_chip = isinstance(base, Tensor) and base.on_chip
    _used(context, node, value, "an address", short=on_chip)


LISTENS = {
    "binary": (computed,),
    "unary": (computed,),
    "update": (computed,),
    "compare": (compared,),
    "call": (given_to, made),
    "subscript": (indexed,),
    "view": (viewed,),
}
