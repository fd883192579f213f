"""Single edits of a Pallas kernel's relation to its grid: the place of a block, the turns of a condition."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from nkitools.edits.kinds import kind
from nkitools.edits.names import Names
from nkitools.edits.remedies import REMEDIES
from nkitools.edits.source import FUNCTIONS, Edit, Source, callee, replaced, says_closed

_AXES = range(3)


@kind("place-of-block", "a counter where the block's place belongs", ast.Name, REMEDIES)
def place_of_block(source: Source, node: ast.Name) -> Iterator[Edit]:
    """A counter becomes an expression of an index map: ``near`` becomes ``table[i * NEAR + near]``."""
    if "pallas" not in source.text or not isinstance(node.ctx, ast.Load):
        return
    names = Names.of(source, node)
    is_counter = node.id in names.sizes and not node.id.isupper() and isinstance(names.function, FUNCTIONS)
    if is_counter and not any(isinstance(each, ast.Lambda) for each in source.enclosing(node)):
        yield from (replaced(node, each) for each in dict.fromkeys(_places(source, names)))


def _places(source: Source, names: Names) -> Iterator[str]:
    """Yield what the index maps compute, in the names of a kernel's body."""
    counters = dict(_counters(names.function))
    for spec in (each for each in ast.walk(source.tree) if isinstance(each, ast.Call) and callee(each) == "BlockSpec"):
        for index_map in (each for each in spec.args if isinstance(each, ast.Lambda)):
            rank = min(_ranks(source), default=len(index_map.args.args))
            own = [each.arg for each in index_map.args.args]
            known = {name: counters.get(axis, f"pl.program_id({axis})") for axis, name in enumerate(own[:rank])}
            known |= dict(zip(own[rank:], names.arguments, strict=False))  # the prefetched tables come first
            parts = index_map.body.elts if isinstance(index_map.body, ast.Tuple) else [index_map.body]
            for part in (each for each in parts if isinstance(each, ast.BinOp | ast.Subscript)):
                yield re.sub(r"\b[A-Za-z_]\w*\b", lambda found: known.get(found[0], found[0]), source.says(part))  # noqa: B023


def _counters(function: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the dimensions of the grid whose places have names in a function."""
    for node in (each for each in ast.walk(function) if isinstance(each, ast.Assign)):
        targets, values = (getattr(each, "elts", [each]) for each in (node.targets[0], node.value))
        for target, value in zip(targets, values, strict=False):
            axis = value.args[0] if callee(value) == "program_id" and value.args else None
            if isinstance(axis, ast.Constant) and isinstance(target, ast.Name):
                yield int(str(axis.value)), target.id


def _ranks(source: Source) -> Iterator[int]:
    """Yield the numbers of dimensions of the grids of a file."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.keyword) and node.arg == "grid":
            yield len(node.value.elts) if isinstance(node.value, ast.Tuple) else 1


@kind("other-condition", "a block that runs in other turns of the grid", ast.FunctionDef, REMEDIES)
def other_condition(source: Source, node: ast.FunctionDef) -> Iterator[Edit]:
    """``pl.when(a)`` becomes ``pl.when(True)``, or has the first or last turn of a dimension as another condition."""
    for call in node.decorator_list:
        if isinstance(call, ast.Call) and callee(call) == "when" and len(call.args) == 1:
            condition = call.args[0]
            for axis in _AXES:
                for turn in ("0", f"pl.num_programs({axis}) - 1"):
                    more = f"(pl.program_id({axis}) == {turn})"
                    yield replaced(condition, f"{says_closed(source, condition)} & {more}")
                    yield replaced(condition, more)
            yield replaced(condition, "True")


@kind("other-value", "another combination of tensors is stored", ast.Assign, REMEDIES)
def other_value(source: Source, node: ast.Assign) -> Iterator[Edit]:
    """``out[...] = a`` becomes ``out[...] = b * c``."""
    if "pallas" in source.text and isinstance(node.targets[0], ast.Subscript) and isinstance(node.value, ast.Name):
        names = Names.of(source, node)
        known = [each for each in names.tensors_before(node.lineno) if names.line_of(each)]
        for place, one in enumerate(known):
            for other in known[place:]:
                yield from (replaced(node.value, f"{one} {sign} {other}") for sign in "*+")
                yield from (replaced(node.value, f"{one} - {other}"), replaced(node.value, f"{other} - {one}"))
