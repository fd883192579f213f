"""Single edits that give an expression another form: brackets, quotients, ends, bounds, names exchanged."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import combinations

from nkitools.edits.kinds import kind
from nkitools.edits.names import Names
from nkitools.edits.remedies import REMEDIES, sign_of
from nkitools.edits.source import Edit, Source, callee, last_word, replaced, says_closed, tensor_of

_FUNCTIONS = ("exp", "log", "square", "abs", "rsqrt", "reciprocal", "negative")
_NO_TENSOR = ("ndarray", "zeros", "ones", "full", "arange", "load", "store", "ds", "program_id", "num_programs")
_OPTIONAL = (
    "mask", "bias", "scale", "offset", "vector_offset", "scalar_offset", "negate", "accumulate", "reduce_cmd",
    "channel_multiplier", "dtype", "keepdims",
)  # fmt: skip
_LOOPS = ("range", "affine_range", "sequential_range", "static_range")
_AXES = range(3)  # of a grid
_LARGE = "1e30"  # what a running minimum begins with


@kind("other-brackets", "a bracket in the wrong place", ast.BinOp, REMEDIES)
def other_brackets(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """``a / (b + c)`` becomes ``a / b + c``, and the other way round; ``f(a) + b`` becomes ``f(a + b)``."""
    sign = sign_of(node.op)
    left, right = node.left, node.right
    if not sign:
        return
    if isinstance(right, ast.BinOp) and sign_of(right.op):
        one, two, three = (says_closed(source, each) for each in (left, right.left, right.right))
        yield replaced(node, f"({one} {sign} {two}) {sign_of(right.op)} {three}")
    if isinstance(left, ast.BinOp) and sign_of(left.op):
        one, two, three = (says_closed(source, each) for each in (left.left, left.right, right))
        yield replaced(node, f"{one} {sign_of(left.op)} ({two} {sign} {three})")
    for call, other in ((left, right), (right, left)):
        if isinstance(call, ast.Call) and call.args and not isinstance(call.args[0], ast.Starred):
            first = call.args[0]
            inner = (first, other) if call is left else (other, first)
            text = f" {sign} ".join(says_closed(source, each) for each in inner)
            yield replaced(node, _with_first(source, call, text))


@kind("out-of-brackets", "what is added inside of a function belongs outside", ast.Call, REMEDIES)
def out_of_brackets(source: Source, node: ast.Call) -> Iterator[Edit]:
    """``f(a + b)`` becomes ``f(a) + b``."""
    inner = node.args[0] if node.args else None
    if isinstance(inner, ast.BinOp) and sign_of(inner.op) and callee(node) not in _LOOPS:
        call = _with_first(source, node, source.says(inner.left))
        yield replaced(node, f"({call} {sign_of(inner.op)} {says_closed(source, inner.right)})")


def _with_first(source: Source, call: ast.Call, text: str) -> str:
    rest = ", ".join(map(source.says, [*call.args[1:], *call.keywords]))
    return f"{source.says(call.func)}({', '.join(filter(None, [text, rest]))})"


@kind("other-quotient", "the number of a group, or of a member in it", ast.BinOp, REMEDIES)
def other_quotient(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """``i % n`` becomes ``i // (size // n)``, and so on."""
    if isinstance(node.op, ast.Mod | ast.FloorDiv):
        left, right = says_closed(source, node.left), says_closed(source, node.right)
        for size in Names.of(source, node).sizes:
            if size not in (left, right):
                yield from (replaced(node, f"{left} {sign} ({size} // {right})") for sign in ("//", "%"))


@kind("other-turn", "a condition of another turn", ast.Compare, REMEDIES)
def other_turn(source: Source, node: ast.Compare) -> Iterator[Edit]:
    """``k == 0`` becomes ``k == n - 1``, and the other way round."""
    if len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq | ast.NotEq | ast.Gt | ast.Lt):
        return
    last = node.comparators[0]
    if not isinstance(last, ast.Constant):
        yield replaced(last, "0")
        return
    for around in source.enclosing(node):
        if isinstance(around, ast.For) and last_word(around.target) == last_word(node.left):
            turns = around.iter
            if isinstance(turns, ast.Call) and callee(turns) in _LOOPS and turns.args:
                yield replaced(last, f"{says_closed(source, turns.args[-1 if len(turns.args) == 1 else 1])} - 1")
    if "pallas" in source.text:
        yield from (replaced(last, f"pl.num_programs({axis}) - 1") for axis in _AXES)


@kind("other-end", "the wrong end of a tile", ast.Slice, REMEDIES)
def other_end(source: Source, node: ast.Slice) -> Iterator[Edit]:
    """``0:1`` becomes ``size - 1 : size``."""
    ends = [each.value for each in (node.lower, node.upper) if isinstance(each, ast.Constant)]
    if len(ends) == 2 and ends[0] == 0 and isinstance(ends[1], int):
        yield from (replaced(node, f"{each} - {ends[1]} : {each}") for each in Names.of(source, node).sizes)


@kind("other-bound", "a bound of something else", ast.Compare, REMEDIES)
def other_bound(source: Source, node: ast.Compare) -> Iterator[Edit]:
    """Either side a size more or less, ``a + size < b``; both sides are others."""
    if len(node.ops) != 1 or not isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
        return
    names = Names.of(source, node)
    left, right = node.left, node.comparators[0]
    for side, other in ((left, right), (right, left)):
        for size in names.sizes if isinstance(side, ast.Name) else ():
            if size not in (source.says(side), source.says(other)):
                yield from (replaced(side, f"{source.says(side)} {sign} {size}") for sign in "+-")
    if isinstance(left, ast.Name) and isinstance(right, ast.Name):
        sign = source.between(left, right)[len(left.id) :]
        lefts = dict.fromkeys([left.id, *names.tensors_before(node.lineno), *names.sizes])
        pairs = [(one, other) for one in lefts for other in dict.fromkeys([right.id, *names.sizes]) if one != other]
        pairs.sort(key=lambda pair: (pair[0] != left.id) + (pair[1] != right.id))
        yield from (replaced(node, sign.join(each)) for each in pairs[1:])


@kind("swap-names", "two names mixed up wherever they stand", ast.AST, REMEDIES)
def swap_names(source: Source, node: ast.AST) -> Iterator[Edit]:
    """Exchange two names in indices, a sum or a product: ``x[a + i, b + j]`` becomes ``x[b + i, a + j]``."""
    whole = node.slice if isinstance(node, ast.Subscript) else node
    if not isinstance(whole, ast.Tuple | ast.BinOp) or isinstance(source.parents[whole], ast.BinOp):
        return
    names = sorted({each.id for each in ast.walk(whole) if isinstance(each, ast.Name)})
    text = source.says(whole)
    for one, other in combinations(names, 2):
        exchanged = {one: other, other: one}
        yield replaced(whole, re.sub(rf"\b({one}|{other})\b", lambda found: exchanged[found[0]], text))  # noqa: B023


@kind("other-counter", "an index follows another counter", ast.expr, REMEDIES)
def other_counter(source: Source, node: ast.expr) -> Iterator[Edit]:
    """A number in an index map becomes one of its arguments; an index ``i`` becomes ``i * size + j``."""
    around = source.parents[node]
    if isinstance(node, ast.Constant) and isinstance(around, ast.Tuple):
        function = source.parents[around]
        if isinstance(function, ast.Lambda):
            yield from (replaced(node, each.arg) for each in function.args.args)
    elif isinstance(node, ast.Name) and isinstance(around, ast.Subscript) and node is around.slice:
        names = Names.of(source, node)
        if node.id in names.sizes:
            others = [each for each in names.sizes if each != node.id]
            counters = [each for each in others if not each.isupper()]
            if "pallas" in source.text:
                counters += [f"pl.program_id({axis})" for axis in _AXES]
            for size in others:
                for other in counters:
                    if other != size:
                        yield replaced(node, f"{node.id} * {size} + {other}")
                        yield replaced(node, f"{other} * {size} + {node.id}")


@kind("one-step-less", "the second step of an instruction is too much", ast.Call, REMEDIES)
def one_step_less(source: Source, node: ast.Call) -> Iterator[Edit]:
    """``op1`` and ``operand1`` are left out."""
    if any(each.arg == "op1" for each in node.keywords):
        kept = [each for each in node.keywords if each.arg not in ("op1", "operand1", "reverse1")]
        given = ", ".join(map(source.says, [*node.args, *kept]))
        yield replaced(node, f"{source.says(node.func)}({given})")


@kind("no-method", "a method is called too much", ast.Call, REMEDIES)
def no_method(source: Source, node: ast.Call) -> Iterator[Edit]:
    """``x.astype(dtype).sum()`` becomes ``x.sum()``; another dtype for ``astype``."""
    function = node.func
    if not isinstance(function, ast.Attribute) or last_word(function.value) in ("jnp", "np", "lax", "pl", "nl", "nisa"):
        return
    if callee(node) == "astype" and node.args and source.says(node.args[0]) != "jnp.float32":
        yield replaced(node.args[0], "jnp.float32")
    if isinstance(function.value, ast.Name | ast.Call | ast.Subscript):
        yield replaced(node, source.says(function.value))


@kind("other-transposition", "a matrix is transposed, or is not", ast.expr, REMEDIES)
def other_transposition(source: Source, node: ast.expr) -> Iterator[Edit]:
    """``x.T`` becomes ``x``; a factor of a matrix product becomes its transpose."""
    around = source.parents[node]
    if isinstance(node, ast.Attribute) and node.attr == "T":
        yield replaced(node, source.says(node.value))
    is_factor = isinstance(around, ast.BinOp) and isinstance(around.op, ast.MatMult)
    is_factor = is_factor or (callee(around) in ("dot", "matmul") and node in getattr(around, "args", []))
    if is_factor and isinstance(node, ast.Name | ast.Subscript):
        yield replaced(node, f"{source.says(node)}.T")


@kind("first-value", "a running value begins with another number", ast.Constant, REMEDIES)
def first_value(source: Source, node: ast.Constant) -> Iterator[Edit]:
    """``0.0`` of a buffer's value becomes the least or the largest number, and 1."""
    around = source.parents[node]
    call = source.parents[around] if isinstance(around, ast.keyword) else around
    if isinstance(node.value, int | float) and callee(call) in ("memset", "full"):
        yield from (replaced(node, each) for each in (f"-{_LARGE}", _LARGE, "1.0", "0.0") if each != source.says(node))


@kind("one-more-function", "a function of a tensor is left out", ast.expr, REMEDIES)
def one_more_function(source: Source, node: ast.expr) -> Iterator[Edit]:
    """An argument of a function of tensors becomes a function of it: ``nl.sum(x)`` becomes ``nl.sum(nl.exp(x))``."""
    around, names = source.parents[node], Names.of(source, node)
    is_given = isinstance(around, ast.Call) and names.room(around) == "nl" and node in around.args
    if is_given and callee(around) not in (*_NO_TENSOR, *_LOOPS) and _is_tensor(names, node):
        yield from (replaced(node, f"{names.nl}.{each}({source.says(node)})") for each in _FUNCTIONS)


def _is_tensor(names: Names, node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return names.room(node) == "nl" and callee(node) not in _NO_TENSOR
    return tensor_of(node) in names.tensors


@kind("keyword-of-another", "a keyword that another call has", ast.Call, REMEDIES)
def keyword_of_another(source: Source, node: ast.Call) -> Iterator[Edit]:
    """A mask, an offset, a flag and so on, as another call of the file has it; a tensor as the offsets of an access."""
    names, given = Names.of(source, node), {each.arg for each in node.keywords}
    if names.room(node) not in ("nl", "nisa") and callee(node) != "ap":
        return
    found = [f"mask={each}" for each in names.masks if callee(node) in ("load", "store") or names.room(node) == "nisa"]
    found += names.keywords.get(callee(node), [])
    if callee(node) in ("ap", "iota", "affine_select"):
        found += [f"offset={each}" for each in names.sizes]
    if callee(node) == "ap":
        tensors = names.tensors_before(node.lineno)
        found += [f"{of}_offset={each}" for of in ("vector", "scalar") for each in tensors]
    for each in dict.fromkeys(found):
        name = each.partition("=")[0]
        if name in _OPTIONAL and name not in given:
            yield source.with_argument(node, each)


@kind("one-more-condition", "a condition is left out", ast.expr, REMEDIES)
def one_more_condition(source: Source, node: ast.expr) -> Iterator[Edit]:
    """Another condition of the function, or a flag among its arguments, is asked for as well, or instead; ``not``."""
    around, names = source.parents[node], Names.of(source, node)
    if isinstance(around, ast.If | ast.IfExp) and node is around.test:
        text = says_closed(source, node)
        yield replaced(node, f"not {text}")
        flags = [one for each in names.flags if each != source.says(node) for one in (f"not {each}", each)]
        yield from (replaced(node, f"{each} {word} {text}") for word in ("or", "and") for each in flags)
    elif isinstance(node, ast.Compare) and not isinstance(around, ast.BoolOp | ast.UnaryOp | ast.Assert):
        others = [each for each in names.comparisons if each != source.says(node)]
        yield from (replaced(node, f"({source.says(node)}) & ({each})") for each in others)


@kind("one-more-bound", "the last tile is taken for a whole one", ast.expr, REMEDIES)
def one_more_bound(source: Source, node: ast.expr) -> Iterator[Edit]:
    """A size becomes ``min(size, rest)``; ``rest``: an argument of another `min`, or ``rows - start``."""
    around = source.parents[node]
    is_assigned = isinstance(around, ast.Assign) and node is around.value
    is_window = isinstance(around, ast.Call) and callee(around) == "ds" and node is around.args[-1]
    if is_assigned or is_window or (isinstance(around, ast.Slice) and node is around.upper):
        names, mine = Names.of(source, node), source.says(node)
        if not isinstance(around, ast.Assign) or last_word(around.targets[0]) in names.sizes:
            yield from (replaced(node, f"min({mine}, {each})") for each in names.bounds(node.lineno) if each != mine)


@kind("one-more-program", "a program takes itself for the first or the only one", ast.Constant, REMEDIES)
def one_more_program(source: Source, node: ast.Constant) -> Iterator[Edit]:
    """``0`` becomes ``nl.program_id(axis)``, ``1`` becomes ``nl.num_programs(axis)``."""
    function = {0: "program_id", 1: "num_programs"}.get(node.value) if type(node.value) is int else None
    is_number = isinstance(source.parents[node], ast.Assign | ast.BinOp | ast.Call)
    if function and is_number and ("program_id" in source.text or "num_programs" in source.text):
        yield from (replaced(node, f"{Names.of(source, node).nl}.{function}({axis})") for axis in range(2))
