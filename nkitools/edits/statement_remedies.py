"""Single edits of statements that may mend a kernel: missing, superfluous, in another order, in another place."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from nkitools.edits.instructions import makes_buffer
from nkitools.edits.kinds import kind
from nkitools.edits.names import Names
from nkitools.edits.remedies import FUNCTIONS_OF_ONE, REMEDIES, is_operand
from nkitools.edits.source import Edit, Source, callee, dropped, keyword, last_word, replaced


@kind("no-statement", "a statement too much", ast.stmt, REMEDIES)
def no_statement(source: Source, node: ast.stmt) -> Iterator[Edit]:
    """Calls that stand alone, and assignments in place."""
    if isinstance(node, ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        yield dropped(node)


@kind("exchange-statements", "two statements in the wrong order", ast.stmt, REMEDIES)
def exchange_statements(source: Source, node: ast.stmt) -> Iterator[Edit]:
    """A statement and the next one, or the one after it, of a block."""
    around = source.parents[node]
    for block in (getattr(around, "body", []), getattr(around, "orelse", [])):
        if isinstance(block, list) and node in block:
            at = block.index(node)
            for other in block[at + 1 : at + 3]:
                if _acts(node) and _acts(other):
                    yield source.swap(node, other)


def _acts(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr | ast.Assign | ast.AugAssign | ast.For)


@kind("one-more-instruction", "an instruction is missing", ast.stmt, REMEDIES)
def one_more_instruction(source: Source, node: ast.stmt) -> Iterator[Edit]:
    """The tensor that a statement has made is combined with another one, or a function of it is taken."""
    target = _made_by(node)
    if target is None:
        return
    names = Names.of(source, node)
    others = [each for each in names.tensors_before(node.lineno) if each != target]
    if isinstance(node, ast.Assign) and target in names.tensors_before(node.lineno):
        others.append(target)  # it has a value already, which is not to be lost
    if isinstance(node, ast.Assign):
        if isinstance(node.value, ast.Call) and callee(node.value) not in ("ndarray", "zeros", "empty", *_NEW):
            text = source.says(node.value)
            for other in others:
                yield from (replaced(node.value, f"{text} {sign} {other}") for sign in "*+-/")
            yield from (replaced(node.value, f"{names.nl}.{each}({text})") for each in FUNCTIONS_OF_ONE[:6])
    elif isinstance(node, ast.Expr) and callee(node.value) not in ("dma_copy", "memset", "store"):
        yield from (source.insert_after(node, each) for each in _steps(names, target, others))


def _steps(names: Names, target: str, others: Sequence[str]) -> Iterator[str]:
    """Yield statements to insert that change the tensor ``target`` in place."""
    nisa, nl = names.nisa, names.nl
    for other in others:
        for op in ("multiply", "add", "subtract"):
            yield f"{nisa}.tensor_tensor(dst={target}, data1={target}, data2={other}, op={nl}.{op})"
            yield f"{nisa}.tensor_scalar(dst={target}, data={target}, op0={nl}.{op}, operand0={other})"
    for function in ("exp", "rsqrt", "sqrt", "square", "tanh", "sigmoid"):
        yield f"{nisa}.activation(dst={target}, op={nl}.{function}, data={target})"
    yield f"{nisa}.reciprocal(dst={target}, data={target})"
    for number in (each for each in names.numbers if isinstance(each, float)):
        for op in ("multiply", "add"):
            yield f"{nisa}.tensor_scalar(dst={target}, data={target}, op0={nl}.{op}, operand0={number})"


_NEW = ("sbuf", "psum", "new", "tile", "full", "ones", "load")


def _made_by(node: ast.stmt) -> str | None:
    """Return the tensor that a statement makes."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        dst = keyword(node.value, "dst")
        return dst.value.id if dst is not None and isinstance(dst.value, ast.Name) else None
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Call):
        return node.targets[0].id
    return None


@kind("other-instruction", "a copy in the place of a computation", ast.Call, REMEDIES)
def other_instruction(source: Source, node: ast.Call) -> Iterator[Edit]:
    """A copy becomes a sum, a product or a reduction of its source, or a combination with another tensor."""
    names, around = Names.of(source, node), source.parents[node]
    if names.room(node) == "nl" and callee(node) == "copy" and node.args and isinstance(around, ast.Assign):
        given = f"{source.says(around.targets[0])}, {source.says(node.args[0])}"
        yield from (replaced(node, f"{names.nl}.{op}({given})") for op in ("add", "multiply"))
    dst, src = (keyword(node, each) for each in ("dst", "src"))
    if (
        names.room(node) == "nisa"
        and callee(node) in ("tensor_copy", "dma_copy")
        and dst is not None
        and src is not None
    ):
        for text in _instead_of_copy(source, names, dst.value, src.value, callee(node)):
            yield replaced(node, text)
    if names.room(node) == "nisa" and dst is not None:
        yield from (replaced(node, each) for each in _onto(source, names, node, dst.value))


def _onto(source: Source, names: Names, call: ast.Call, dst: ast.expr) -> Iterator[str]:
    """Yield instructions that add to a tensor, or subtract from it, what a call writes over it."""
    given = {each.arg: source.says(each.value) for each in call.keywords if each.arg}
    function = given.get("op", given.get("op0", ""))
    slots = {"tensor_tensor": ("data1", "data2"), "tensor_scalar": ("data", "operand0"), "activation": ("data",)}
    operands = [given.get(each, "") for each in slots.get(callee(call), ())]
    if function and operands and all(operands) and not {"op1", "bias", "scale"} & given.keys():
        into = source.says(dst)
        value = f"{function}({', '.join(operands)})"
        values = [value, *operands[:1]] if operands[-1].lstrip("-").replace(".", "", 1).isdigit() else [value]
        for each in values:
            for op in ("add", "subtract", "maximum"):
                yield f"{names.nisa}.tensor_tensor(dst={into}, data1={into}, data2={each}, op={names.nl}.{op})"


def _instead_of_copy(source: Source, names: Names, dst: ast.expr, src: ast.expr, copy: str) -> Iterator[str]:
    """Yield instructions in the place of a copy."""
    into, given = source.says(dst), source.says(src)
    base = last_word(getattr(src, "value", src))
    for op in ("add", "multiply", "maximum") if copy == "tensor_copy" else ():
        name = f"{names.nl}.{op}"
        yield f"{names.nisa}.tensor_tensor(dst={into}, data1={into}, data2={given}, op={name})"
        if base:
            yield f"{names.nisa}.tensor_reduce(dst={into}, op={name}, data={base}, axis=1)"
        for other in names.tensors_before(dst.lineno):
            if other not in (into, given):
                yield f"{names.nisa}.tensor_tensor(dst={into}, data1={given}, data2={other}, op={name})"
                yield f"{names.nisa}.tensor_scalar(dst={into}, data={given}, op0={name}, operand0={other})"
    for mask in names.tensors_before(dst.lineno) if copy == "tensor_copy" else ():
        if mask not in (into, given):
            yield f"{names.nisa}.tensor_copy_predicated(dst={into}, src={given}, predicate={mask})"
    yield f"{names.nisa}.dma_transpose(dst={into}, src={given})"


@kind("one-more-operand", "an operand lacks a factor or an addend", ast.Name, REMEDIES)
def one_more_operand(source: Source, node: ast.Name) -> Iterator[Edit]:
    """An operand becomes its product, sum or difference with another tensor."""
    if is_operand(source, node) and not isinstance(source.parents[node], ast.Assign):
        names = Names.of(source, node)
        is_nki = names.nisa in names.rooms or names.nl in names.rooms
        for other in names.tensors_before(node.lineno):
            if other != node.id and is_nki:
                yield from (
                    replaced(node, f"{names.nl}.{op}({node.id}, {other})") for op in ("multiply", "add", "subtract")
                )
            elif other != node.id:
                yield from (replaced(node, f"({node.id} {sign} {other})") for sign in "*+-/")


@kind("clear-before", "a sum is not cleared for each turn", ast.For, REMEDIES)
def clear_before(source: Source, node: ast.For) -> Iterator[Edit]:
    """A loop begins with a `memset` of a tensor that it adds to."""
    names, first = Names.of(source, node), node.body[0]
    for tensor in dict.fromkeys(filter(None, map(_added_to, ast.walk(node)))):
        if tensor in names.tensors_before(node.lineno):
            cleared = f"{names.nisa}.memset(dst={tensor}, value=0.0)"
            yield replaced(first, f"{cleared}\n{' ' * first.col_offset}{source.says(first)}")


def _added_to(node: ast.AST) -> str:
    """Return the tensor that an instruction changes by what it holds; '' of others."""
    if not isinstance(node, ast.Call):
        return ""
    given = {each.arg: last_word(getattr(each.value, "value", each.value)) for each in node.keywords}
    into = given.get("dst", "")
    is_added = callee(node) in ("nc_matmul", "nc_matmul_mx")
    return into if is_added or into in {given.get(each) for each in ("data", "data1", "data2", "operand1")} else ""


@kind(
    "move-statement", "a statement inside of a loop that belongs before it, or the other way round", ast.For, REMEDIES
)
def move_statement(source: Source, node: ast.For) -> Iterator[Edit]:
    """The first statement of a loop goes before it; the one before it becomes its first, or one that makes a tile for
    it.
    """
    around = source.parents[node]
    block: list[ast.stmt] = next(
        (each for each in (getattr(around, "body", []), getattr(around, "orelse", [])) if node in each), []
    )
    at = block.index(node) if block else 0
    head = source.between(node, node.body[0])
    for number, statement in enumerate(node.body[:2]):
        if isinstance(statement, ast.Expr | ast.Assign) and len(node.body) > 1:
            rest = [each for place, each in enumerate(node.body) if place != number]
            before = source.says(statement)
            body = f"\n{' ' * node.body[0].col_offset}".join(map(source.says, rest))
            yield replaced(node, f"{before}\n{' ' * node.col_offset}{head}{body}")
    inside = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    for place, statement in enumerate(block[:at], 1):
        if _tile_of(statement) in inside or (place == at and isinstance(statement, ast.Expr)):
            edit, loop = replaced(statement, ""), replaced(node, "")
            first = f"{head}{source.says(statement)}\n{' ' * node.body[0].col_offset}"
            body = source.says(node).removeprefix(head)
            skipped = source.between(block[place], node)
            yield Edit(edit.line, edit.column, loop.end_line, loop.end_column, f"{skipped}{first}{body}")


def _tile_of(node: ast.stmt) -> str:
    """Return the name of the tensor that a statement makes; '' of others."""
    is_made = isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and makes_buffer(node.value)
    return last_word(node.targets[0]) if is_made and isinstance(node, ast.Assign) else ""
