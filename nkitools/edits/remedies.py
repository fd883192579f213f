"""Single edits of expressions that may mend a kernel: another operand, number, index, operator, flag or dtype."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from nkitools.edits.kinds import Kind, kind
from nkitools.edits.names import Names
from nkitools.edits.source import Edit, Source, callee, last_word, replaced, room, says_closed, tensor_of

REMEDIES: dict[str, Kind] = {}

SLOTS = frozenset({
    "bias", "data", "data0", "data1", "data2", "initial", "moving", "on_false", "on_true", "on_false_tile",
    "on_true_tile", "operand0", "operand1", "pred", "predicate", "scale", "src", "stationary", "value",
})  # fmt: skip
"""Keywords of instructions that take a tensor or a number."""

FUNCTIONS_OF_ONE = (
    "log", "exp", "square", "rsqrt", "sqrt", "reciprocal", "negative", "copy", "abs", "relu", "silu", "gelu",
    "gelu_apprx_tanh", "gelu_apprx_sigmoid", "sigmoid", "tanh", "erf", "sin", "cos", "softplus", "mish", "sign",
)  # fmt: skip
"""Functions that make a tensor of one tensor."""

_CLASSES = (
    ("add", "subtract", "multiply", "divide", "maximum", "minimum", "power"),
    ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
    ("max", "min", "sum", "mean", "prod"),
    FUNCTIONS_OF_ONE,
    ("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"),
    ("left_shift", "right_shift", "logical_left_shift", "logical_right_shift"),
)  # fmt: skip
"""Names of the language that stand in each other's place."""

_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
}  # fmt: skip
_COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_ROOMS = ("nl", "nisa", "jnp", "pl", "lax", "jax", "np")
_DTYPES = ("float32", "bfloat16", "float16", "int32", "int16", "int8", "uint32", "uint16", "uint8")
_FLAGS = ("accumulate", "keepdims", "negate", "reverse0", "reverse1", "is_transpose")
_FACTORS = (0.1, 10.0, 0.01, 100.0, 0.5, 2.0, 1e-3, 1e3, -1.0)


@kind("other-number", "a number is another one", ast.Constant, REMEDIES)
def other_number(source: Source, node: ast.Constant) -> Iterator[Edit]:
    """Replace a number by a neighbour, a power of ten, its half or double, or another number of the function."""
    if isinstance(node.value, bool) or not isinstance(node.value, int | float):
        return
    value = node.value
    found = _near(value)
    found += [each for each in Names.of(source, node).numbers if isinstance(each, float) == isinstance(value, float)]
    texts = [repr(each) for each in dict.fromkeys(found) if each != value]
    if isinstance(source.parents[node], ast.BinOp | ast.keyword):
        texts += Names.of(source, node).sizes
    yield from (replaced(node, each) for each in texts)


def _near(value: float) -> list[float]:
    """Return numbers that may be meant in the place of one."""
    if isinstance(value, int):
        return [value + 1, value - 1, 2 * value, value // 2, 0, 1, -value, value + 2, value - 2]
    found = [-value, 1.0, 0.0, *(float(f"{value * each:.12g}") for each in _FACTORS)]
    return [*found, float(f"{1 / value:.12g}"), value**2] if value else found


SOLVED = "solved-number"
UNKNOWN = "?"
"""The text of an edit whose number is to be found by runs of the kernel."""


@kind(SOLVED, "a number is another one, which runs tell", ast.Constant, REMEDIES)
def solved_number(source: Source, node: ast.Constant) -> Iterator[Edit]:
    """A number that is computed with: an operand, a part of a sum or product, an argument of a function of tensors."""
    around = source.parents[node]
    if isinstance(around, ast.UnaryOp):
        around = source.parents[around]
    is_operand_of = isinstance(around, ast.keyword) and around.arg in SLOTS
    is_part = isinstance(around, ast.BinOp | ast.Assign)
    is_argument = isinstance(around, ast.Call) and Names.of(source, node).room(around) in ("nl", "jnp")
    if type(node.value) in (int, float) and (is_operand_of or is_part or is_argument):
        yield replaced(node, UNKNOWN)


@kind("other-constant", "a number of the module is another one", ast.Module, REMEDIES)
def other_constant(source: Source, _: ast.Module) -> Iterator[Edit]:
    """Numbers near a constant of the module, and the one that runs tell."""
    for node in (each.value for each in source.constants):
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            value = float(node.value) if isinstance(node.value, float) else int(str(node.value))
            found = [repr(each) for each in dict.fromkeys(_near(value)) if each != value]
            yield from (replaced(node, each) for each in (*found, UNKNOWN))


@kind("other-operand", "an operand is another tensor, or another part of it", ast.expr, REMEDIES)
def other_operand(source: Source, node: ast.expr) -> Iterator[Edit]:
    """Replace an operand of an instruction by another operand or tensor of the function."""
    if not is_operand(source, node):
        return
    names = Names.of(source, node)
    mine, tensor = source.says(node), tensor_of(node)
    tensors = names.tensors_before(node.lineno)
    others = [*names.operands, *tensors]
    if isinstance(node, ast.Name) and mine in tensors:
        others += [f"{mine}{index}" for index in names.whole_indices]
    if isinstance(node, ast.Subscript):
        index = mine[len(source.says(node.value)) :]
        others = [source.says(node.value), *(f"{each}{index}" for each in tensors), *others]
    # The same tensor first, then what was made shortly before.
    others.sort(key=lambda each: (_base(each) != tensor, abs(node.lineno - names.line_of(_base(each)))))
    yield from (replaced(node, each) for each in dict.fromkeys(others) if each != mine)


def _base(operand: str) -> str:
    return operand.partition("[")[0]


def is_operand(source: Source, node: ast.expr) -> bool:
    """Return whether a tensor or a number stands where an instruction reads one."""
    around = source.parents[node]
    if isinstance(getattr(node, "ctx", None), ast.Store):
        return False
    if isinstance(around, ast.keyword):
        is_number = isinstance(node, ast.Constant | ast.UnaryOp | ast.BinOp) and around.arg != "value"
        return around.arg in SLOTS and (is_number or isinstance(node, ast.Name | ast.Subscript))
    if not isinstance(node, ast.Name | ast.Subscript):
        return False
    if isinstance(around, ast.Call):
        is_function = isinstance(around.func, ast.Name) and callee(around) in Names.of(source, node).functions
        return node in around.args and (Names.of(source, node).room(around) in _ROOMS or is_function)
    is_sum = isinstance(around, ast.BinOp | ast.Assign | ast.AugAssign) and isinstance(node, ast.Name | ast.Subscript)
    return is_sum and (isinstance(node, ast.Subscript) or node.id in Names.of(source, node).tensors)


@kind("other-index", "an index or a slice is another one", ast.Subscript, REMEDIES)
def other_index(source: Source, node: ast.Subscript) -> Iterator[Edit]:
    """Replace an index by one that the function uses elsewhere, or bring indices into another order."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        return
    names = Names.of(source, node)
    known = list(dict.fromkeys([*names.indices, *names.turns(node.lineno)]))
    for part in parts:
        mine = source.says(part)
        yield from (replaced(part, each) for each in known if each != mine)


@kind("shift-back", "a slice, a bound or an index is off by one", ast.AST, REMEDIES)
def shift_back(source: Source, node: ast.AST) -> Iterator[Edit]:
    """Move one end of a slice, or an index, by one."""
    ends: list[ast.expr | None] = []
    if isinstance(node, ast.Slice):
        ends = [node.lower, node.upper]
    elif isinstance(node, ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        ends = [each for each in parts if isinstance(each, ast.BinOp | ast.Name)]
    elif isinstance(node, ast.Call) and callee(node) in ("ds", "dslice", "min", "max", *_RANGES):
        ends = [*node.args]
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        ends = [node.comparators[0]]
    for end in ends:
        if end is not None and not isinstance(end, ast.Constant):
            yield from (replaced(end, f"{says_closed(source, end)} {sign} 1") for sign in "-+")
    if isinstance(node, ast.Slice):
        yield from (replaced(each, "") for each in (node.lower, node.upper) if each is not None)
        yield from _moved(source, node)


_RANGES = ("range", "affine_range", "sequential_range", "static_range")


def _moved(source: Source, node: ast.Slice) -> Iterator[Edit]:
    """Return a slice that begins and ends some elements earlier or later."""
    if node.lower is None or node.upper is None:
        return
    steps = [-1, 2, -2]
    if isinstance(node.lower, ast.Constant) and isinstance(node.lower.value, int) and node.lower.value:
        steps.append(-node.lower.value)
    for step in steps:
        ends = [_plus(source, each, step) for each in (node.lower, node.upper)]
        yield replaced(node, " : ".join(ends))


def _plus(source: Source, node: ast.expr, step: int) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return str(node.value + step)
    sign = "+" if step > 0 else "-"
    is_back = isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant) and node.right.value == -step
    if is_back and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return source.says(node.left)
    return f"{says_closed(source, node)} {sign} {abs(step)}"


@kind("other-name", "another size, counter or parameter", ast.Name, REMEDIES)
def other_name(source: Source, node: ast.Name) -> Iterator[Edit]:
    """Replace the name of a number by that of another one."""
    if isinstance(node.ctx, ast.Load):
        names = Names.of(source, node)
        if node.id in names.sizes:
            yield from (replaced(node, each) for each in names.sizes if each != node.id)
            yield from (replaced(node, str(each)) for each in (0, 1, *names.unread_shapes))


@kind("part-of-expression", "one side of an expression too much", ast.expr, REMEDIES)
def part_of_expression(source: Source, node: ast.expr) -> Iterator[Edit]:
    """Replace ``a + 1`` and ``-a`` by ``a``, and a call by one of its arguments."""
    parts: list[ast.expr] = []
    if isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    elif isinstance(node, ast.UnaryOp):
        parts = [node.operand]
    elif isinstance(node, ast.Call) and (
        Names.of(source, node).room(node) in ("nl", "jnp", "math", "np") or callee(node) in ("min", "max")
    ):
        parts = [each for each in node.args if not isinstance(each, ast.Tuple | ast.List)]
    elif isinstance(node, ast.Subscript):
        is_cut = isinstance(node.value, ast.Call) and isinstance(node.slice, ast.Slice)
        parts = [node.value] if is_cut or isinstance(node.value, ast.Name) else []
    yield from (replaced(node, source.says(part)) for part in parts)


@kind("other-sign", "another operator", ast.AST, REMEDIES)
def other_sign(source: Source, node: ast.AST) -> Iterator[Edit]:
    """Replace the operator of a sum, a product or a comparison, or a function of nl by one of its class."""
    if isinstance(node, ast.BinOp) and type(node.op) in _SIGNS:
        left, right = (says_closed(source, each) for each in (node.left, node.right))
        yield from (replaced(node, f"({left} {each} {right})") for each in _SIGNS.values() if each != sign_of(node.op))
        if isinstance(node.op, ast.FloorDiv):
            yield replaced(node, f"({left} + {right} - 1) // {right}")
        if isinstance(node.op, ast.Sub | ast.Div | ast.FloorDiv):
            yield replaced(node, f"({right} {sign_of(node.op)} {left})")
    elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
        left, right = source.says(node.target), source.says(node.value)
        yield from (replaced(node, f"{left} {each}= {right}") for each in "+-*" if each != sign_of(node.op))
        yield replaced(node, f"{left} = {right}")
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
        left, right = source.says(node.left), source.says(node.comparators[0])
        mine = _COMPARISONS[type(node.ops[0])]
        yield from (replaced(node, f"{left} {each} {right}") for each in _COMPARISONS.values() if each != mine)
    elif isinstance(node, ast.Attribute) and Names.of(source, node).rooms.get(
        last_word(node.value), last_word(node.value)
    ) in ("nl", "jnp", "np", "lax"):
        alike = next((each for each in _CLASSES if node.attr in each), ())
        owner = source.says(node.value)
        near = sorted(alike, key=lambda each: abs(alike.index(each) - alike.index(node.attr)))
        yield from (replaced(node, f"{owner}.{each}") for each in near if each != node.attr)


def sign_of(op: ast.operator) -> str:
    """Return the sign of an operator; '' of one that no edit exchanges."""
    return _SIGNS.get(type(op), "")


@kind("one-more-factor", "a sum or product lacks a part", ast.expr, REMEDIES)
def one_more_factor(source: Source, node: ast.expr) -> Iterator[Edit]:
    """A number ``n`` becomes ``n - 1``, ``-n``, ``1.0 / n``; a value of a tensor function is wrapped in another one."""
    around = source.parents[node]
    is_number = isinstance(node, ast.Name) and node.id in Names.of(source, node).sizes
    if is_number and isinstance(around, ast.keyword | ast.BinOp) and isinstance(getattr(node, "ctx", None), ast.Load):
        yield from (replaced(node, f"({source.says(node)} {each})") for each in ("- 1", "+ 1", "* 2", "// 2"))
    is_slot = isinstance(around, ast.keyword) and around.arg in ("operand0", "operand1", "scale", "value", "bias")
    if is_slot and isinstance(node, ast.BinOp | ast.Name | ast.UnaryOp):
        text = says_closed(source, node)
        forms = (f"-{text}", f"1.0 / {text}", f"{text} ** 0.5", f"{text} ** -0.5", f"{text} * {text}")
        yield from (replaced(node, each) for each in forms)


@kind("other-axis", "another axis, or fewer of them", ast.keyword, REMEDIES)
def other_axis(source: Source, node: ast.keyword) -> Iterator[Edit]:
    """Yield edits of an axis argument: one axis of a list, or another axis."""
    if node.arg not in ("axis", "axes", "indirect_dim"):
        return
    if isinstance(node.value, ast.List | ast.Tuple):
        yield from (replaced(node.value, f"[{source.says(each)}]") for each in node.value.elts)
        yield replaced(node.value, "[1, 2]")
    elif isinstance(node.value, ast.Constant | ast.UnaryOp):
        yield from (
            replaced(node.value, each) for each in ("0", "1", "2", "-1", "[1, 2]") if each != source.says(node.value)
        )


@kind("exchange-nested", "two functions in the wrong order", ast.Call, REMEDIES)
def exchange_nested(source: Source, node: ast.Call) -> Iterator[Edit]:
    """Exchange nested calls: ``nl.exp(nl.sum(x, axis=1))`` becomes ``nl.sum(nl.exp(x), axis=1)``."""
    inner = node.args[0] if node.args else None
    if isinstance(inner, ast.Call) and inner.args and room(node) and room(inner):
        own = ", ".join(map(source.says, [*inner.args[1:], *inner.keywords]))
        rest = ", ".join(map(source.says, [*node.args[1:], *node.keywords]))
        first = f"{source.says(node.func)}({', '.join(filter(None, [source.says(inner.args[0]), rest]))})"
        yield replaced(node, f"{source.says(inner.func)}({', '.join(filter(None, [first, own]))})")


@kind("exchange-arguments", "two arguments mixed up", ast.AST, REMEDIES)
def exchange_arguments(source: Source, node: ast.AST) -> Iterator[Edit]:
    """Exchange neighbours among arguments and elements of tuples, or the two steps of an instruction."""
    if isinstance(node, ast.Call):
        for first, second in pairwise(node.args):
            if not isinstance(first, ast.Starred) and source.says(first) != source.says(second):
                yield source.swap(first, second)
        given = [each for each in node.keywords if each.arg in ("op0", "op1")]
        if len(given) == 2:
            yield _with_keywords(source, node, {"op0": "op1", "op1": "op0"})
            yield _with_keywords(
                source, node, {"op0": "op1", "op1": "op0", "operand0": "operand1", "operand1": "operand0"}
            )
        slots = [each.value for each in node.keywords if each.arg in SLOTS]
        for first, second in pairwise(sorted(slots, key=lambda each: (each.lineno, each.col_offset))):
            if source.says(first) != source.says(second):
                yield source.swap(first, second)
    elif isinstance(node, ast.Tuple | ast.List) and 2 <= len(node.elts) <= 4:
        for first, second in pairwise(node.elts):
            if source.says(first) != source.says(second):
                yield source.swap(first, second)


def _with_keywords(source: Source, call: ast.Call, names: dict[str, str]) -> Edit:
    """Return a call whose keywords have other names."""
    parts = [source.says(each) for each in call.args]
    parts += [f"{names.get(each.arg or '', each.arg)}={source.says(each.value)}" for each in call.keywords]
    return replaced(call, f"{source.says(call.func)}({', '.join(parts)})")


@kind("other-flag", "a flag is set, or is not", ast.Call, REMEDIES)
def other_flag(source: Source, node: ast.Call) -> Iterator[Edit]:
    """Replace ``True`` by ``False``, or leave out an optional keyword."""
    for argument in node.keywords:
        if isinstance(argument.value, ast.Constant) and isinstance(argument.value.value, bool):
            yield replaced(argument.value, str(not argument.value.value))
        elif argument.arg in (*_FLAGS, "bias", "scale", "mask"):
            yield source.without_argument(node, argument)


@kind("one-more-keyword", "an instruction lacks a keyword", ast.Call, REMEDIES)
def one_more_keyword(source: Source, node: ast.Call) -> Iterator[Edit]:
    """``reverse0``, ``negate``; ``bias`` and ``scale`` of an activation."""
    names, given = Names.of(source, node), {each.arg for each in node.keywords}
    if names.room(node) != "nisa":
        return
    more: list[str] = []
    if callee(node).startswith("tensor_scalar") or callee(node) == "scalar_tensor_tensor":
        more = ["reverse0=True", "reverse1=True"]
    elif callee(node) == "tensor_reduce":
        more = ["negate=True"]
    elif callee(node) == "activation":
        tensors = names.tensors_before(node.lineno)
        numbers = [-1.0, 2.0, 0.5, *(each for each in names.numbers if isinstance(each, float))]
        more = [f"bias={each}" for each in tensors] + [f"scale={each}" for each in (*numbers, *tensors)]
    yield from (source.with_argument(node, each) for each in more if each.partition("=")[0] not in given)


@kind("other-dtype", "a tile of another dtype", ast.AST, REMEDIES)
def other_dtype(source: Source, node: ast.AST) -> Iterator[Edit]:
    """Replace a ``dtype=``, or a dtype that is named, by float32, that of an argument, or that of whole numbers."""
    value = node.value if isinstance(node, ast.keyword) and node.arg == "dtype" else node
    is_named = isinstance(node, ast.Attribute) and node.attr in _DTYPES and last_word(node.value) == "nl"
    if value is not node or is_named:
        owner = "jnp" if "jnp" in source.says(value) else "nl"
        found = [f"{owner}.float32", *Names.of(source, node).dtypes]
        found += [f"{owner}.{each}" for each in ("int32", "uint32") if "int" in source.says(value)]
        yield from (replaced(value, each) for each in dict.fromkeys(found) if each != source.says(value))
