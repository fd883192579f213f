"""Tiles that are too large: NK101, NK103."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nkitools.edits.source import Edit, callee, keyword, replaced
from nkitools.lint.rewriting import new_name
from nkitools.lint.scope import Function
from nkitools.suggestions.site import Site, Suggestion, given

_ROWS = 128
# Instructions that mix partitions: a loop over tiles of rows would compute something else.
_MIXING = frozenset(
    {"matmul", "nc_matmul", "nc_matmul_mx", "nc_transpose", "transpose", "dma_transpose", "partition_all_reduce",
     "iota", "affine_select", "nc_stream_shuffle", "tensor_partition_reduce", "load_transpose2d"}
)  # fmt: skip
_MEMORIES = frozenset({"hbm", "shared_hbm", "private_hbm"})


def by_rows(site: Site) -> Iterator[Suggestion]:
    """NK101: handle 128 rows in each turn of a loop, where each row stands for itself."""
    partitions, block = site.whole_fact("partitions"), _block(site)
    if partitions < 0 or not block or site.is_legacy or _mixes(block):
        return
    tensor = _first_loaded(site, block)
    if tensor:
        rows = f"{tensor}.shape[0]"
        yield from _in_a_loop(site, block, rows, partitions, f"Handle {_ROWS} rows in each turn of a loop")


def by_contraction(site: Site) -> Iterator[Suggestion]:
    """NK101, NK103: contract as many rows as fit in each turn of a loop, and sum up in PSUM."""
    partitions, limit, call = site.whole_fact("partitions"), site.whole_fact("limit"), _product(site)
    if partitions < 0 or limit < 1 or call is None or site.is_legacy or partitions % limit or len(site.blocks) != 1:
        return
    operands = [given(call, name, place) for name, place in (("stationary", 1), ("moving", 2))]
    names = {each.id for each in operands if isinstance(each, ast.Name)}
    block = _filling(site, names, call)
    tensor = _first_loaded(site, block) if len(names) == 2 and site.blocks[0] in block else ""
    if tensor:
        counter = new_name(site.scope, "k")
        summed = site.module.source.with_argument(call, f"accumulate=({counter} > 0)")
        title = f"Contract {limit} rows in each turn of a loop"
        yield from _in_a_loop(site, block, f"{tensor}.shape[0]", partitions, title, counter, (summed,), limit)


def _product(site: Site) -> ast.Call | None:
    """Return the only matmul of the function."""
    calls = [each for each in site.inside(site.scope.node.body) if isinstance(each, ast.Call)]
    products = [each for each in calls if callee(each) == "nc_matmul"]
    return products[0] if len(products) == 1 else None


def _block(site: Site) -> list[ast.stmt]:
    """Return the statements of the function from the first tile on chip up to the return."""
    function = site.scope.node
    if not isinstance(function, Function) or len(site.blocks) != 1:
        return []
    body = list(function.body)
    if body and isinstance(body[-1], ast.Return):
        body.pop()
    on_chip = [number for number, each in enumerate(body) if _makes_tile(site, each)]
    return body[on_chip[0] :] if on_chip else []


def _makes_tile(site: Site, statement: ast.stmt) -> bool:
    value = getattr(statement, "value", None)
    if not isinstance(statement, ast.Assign) or not isinstance(value, ast.Call):
        return any(callee(each) in ("store", "load") for each in ast.walk(statement) if isinstance(each, ast.Call))
    if callee(value) in ("load", "copy"):
        return True
    return callee(value) in ("ndarray", "zeros") and not _in_hbm(site, value)


def _in_hbm(site: Site, made: ast.Call) -> bool:
    buffer = keyword(made, "buffer")
    return buffer is not None and site.text(buffer.value).rpartition(".")[2] in _MEMORIES


def _filling(site: Site, names: set[str], call: ast.Call) -> list[ast.stmt]:
    """Return the statements of the function from the first that makes one of the tiles up to the one with the call."""
    body = site.scope.node.body
    end = next((number for number, each in enumerate(body) if call in ast.walk(each)), 0)
    for number, each in enumerate(body[:end]):
        if isinstance(each, ast.Assign) and any(isinstance(one, ast.Name) and one.id in names for one in each.targets):
            return body[number : end + 1]
    return []


def _mixes(block: list[ast.stmt]) -> bool:
    calls = (each for statement in block for each in ast.walk(statement) if isinstance(each, ast.Call))
    return any(callee(each) in _MIXING for each in calls)


def _first_loaded(site: Site, block: list[ast.stmt]) -> str:
    """Return the first parameter of the kernel that the block names whole."""
    names = (each.id for statement in block for each in ast.walk(statement) if isinstance(each, ast.Name))
    return next((each for each in names if each in site.scope.parameters), "")


def _in_a_loop(
    site: Site,
    block: list[ast.stmt],
    rows: str,
    count: int,
    title: str,
    counter: str = "",
    more: tuple[Edit, ...] = (),
    limit: int = _ROWS,
) -> Iterator[Suggestion]:
    """Yield the suggestion to put a block into a loop over its rows."""
    counter = counter or new_name(site.scope, "i")
    start, end, size = (new_name(site.scope, each) for each in ("start", "end", "size"))
    edits = [*more, *_narrowed(site, block, count, f"{start}:{end}", size)]
    if _holds_long_text(block) or not edits:
        return
    turns = f"range(({rows} + {limit - 1}) // {limit})"
    head = [f"for {counter} in {turns}:", f"    {start} = {counter} * {limit}"]
    head += [f"    {end} = min({start} + {limit}, {rows})", f"    {size} = {end} - {start}"]
    before = site.before(block[0], *head)
    first, last = block[0].lineno, block[-1].end_lineno or block[-1].lineno
    edits.append(before._replace(text=f"{before.text}    "))
    edits += [
        Edit(line, 0, line, 0, "    ") for line in range(first + 1, last + 1) if site.module.lines[line - 1].strip()
    ]
    yield Suggestion(title, tuple(edits))


def _narrowed(site: Site, block: list[ast.stmt], count: int, rows: str, size: str) -> Iterator[Edit]:
    """Yield the edits that give whole tensors in HBM the rows of a turn, and tiles their number."""
    in_hbm = {
        *site.scope.parameters,
        *(name for name in site.scope.variables if (made := site.made(name)) and _in_hbm(site, made)),
    }
    for node in (each for statement in block for each in ast.walk(statement)):
        if not isinstance(node, ast.Call):
            continue
        for each in (*node.args, *(one.value for one in node.keywords)):
            if isinstance(each, ast.Name) and each.id in in_hbm and _is_access(node):
                yield replaced(each, f"{each.id}[{rows}]")
        shape = given(node, "shape", 0) if callee(node) in ("ndarray", "zeros", "ones", "full") else None
        if isinstance(shape, ast.Tuple) and shape.elts and _is_rows(site, shape.elts[0], count):
            yield replaced(shape.elts[0], size)
        elif isinstance(shape, ast.Attribute) and shape.attr == "shape":
            yield replaced(shape, f"({size}, *{site.text(shape)}[1:])")


def _is_access(call: ast.Call) -> bool:
    return callee(call) in ("load", "store", "dma_copy")


def _is_rows(site: Site, node: ast.expr, count: int) -> bool:
    if isinstance(node, ast.Constant):
        return node.value == count
    return site.text(node).endswith(".shape[0]")


def _holds_long_text(block: list[ast.stmt]) -> bool:
    """Return whether a text of several lines stands in a block, which cannot be moved to the right."""
    nodes = (each for statement in block for each in ast.walk(statement))
    return any(isinstance(each, ast.Constant | ast.JoinedStr) and each.end_lineno != each.lineno for each in nodes)
