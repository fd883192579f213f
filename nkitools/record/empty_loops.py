"""Loops of the author that have run no time, and would have written to a tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import FrameType

import numpy as np

from nkitools.authors_code.source_text import nodes_of, shown_text, text_of
from nkitools.chip.tensor import NkiTensor
from nkitools.record.columns import Columns
from nkitools.record.loop_counters import author_frames
from nkitools.record.record import Record
from nkitools.record.tensor_names import names_in_kernel
from nkitools.rules.finding import authors_frame

_PLAIN = (ast.Constant, ast.Name, ast.Attribute, ast.BinOp, ast.UnaryOp, ast.Subscript, ast.operator, ast.unaryop,
          ast.expr_context)  # fmt: skip


def empty_loop(tensor: NkiTensor | int) -> str:
    """Return the remedy for a tensor, or the number of its storage, that a loop without turns should fill; else ''."""
    frame, storage = authors_frame(), tensor if isinstance(tensor, int) else tensor.storage.id
    names = set(names_in_kernel(frame, storage))
    for each in author_frames(frame):
        for node in nodes_of(text_of(each.f_code)):
            if isinstance(node, ast.For) and _lies_in(node, each) and _writes(node, names) and _turns(node, each) == 0:
                return _sentence(node)
    return ""


def loop_of_no_turn(record: Record, storage: int) -> str:
    """Return the remedy for a result whose loop has issued no instruction; '' if there is no such loop."""
    made, name = record.sites[record.storages[storage].site], record.name_of(storage)
    columns = Columns(record)
    sites = [record.sites[number] for number in np.unique(columns.sites[: record.count]).tolist()]
    lines = {each.line for each in sites if each.file == made.file}
    for function in nodes_of(shown_text(made.file)):
        if isinstance(function, ast.FunctionDef) and function.lineno <= made.line <= (function.end_lineno or 0):
            for node in _loops(function.body):
                turned = not lines.isdisjoint(range(node.lineno, (node.end_lineno or 0) + 1))
                if node.lineno > made.line and not turned and _writes(node, {name}):
                    loops = _not_told_apart(node)
                    return _sentence(*([each for each in loops if not _is_constant(each)] or loops))
    return ""


def return_in_loop(record: Record, storage: int) -> str:
    """Return the remedy for a result that is returned at the end of a loop's first turn; else ''."""
    made = record.sites[record.storages[storage].site]
    for function in nodes_of(shown_text(made.file)):
        if isinstance(function, ast.FunctionDef) and function.lineno <= made.line <= (function.end_lineno or 0):
            for node in _loops(function.body):
                ends = [each.lineno for each in node.body if isinstance(each, ast.Return)]
                if ends:
                    turn = f"ends the loop of line {node.lineno} in its first turn"
                    return f"The `return` at line {ends[0]} {turn}: put it behind the loops."
    return ""


def _loops(body: list[ast.stmt]) -> Iterator[ast.For]:
    """Yield the loops that no condition guards, each before those in it."""
    for each in body:
        if isinstance(each, ast.For):
            yield each
            yield from _loops(each.body)


def _not_told_apart(node: ast.For) -> list[ast.For]:
    """Return a loop and those in it that may be the ones without turns: nothing in front of them issues anything."""
    inner = next((each for each in node.body if isinstance(each, ast.For)), None)
    if inner is None:
        return [node]
    before = (part for each in node.body[: node.body.index(inner)] for part in ast.walk(each))
    issues = any(isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) for part in before)
    return [node] if issues else [node, *_not_told_apart(inner)]


def _is_constant(node: ast.For) -> bool:
    return isinstance(node.iter, ast.Call) and all(isinstance(each, ast.Constant) for each in node.iter.args)


def _sentence(node: ast.For, *others: ast.For) -> str:
    if others:
        told = ", ".join(f"line {each.lineno}, `{ast.unparse(each.iter)}`" for each in (node, *others))
        return f"One of these loops runs zero times: {told}. Look which range is empty, and mend its bounds."
    return (
        f"The loop at line {node.lineno} runs zero times: `{ast.unparse(node.iter)}` is empty. Mend its bounds; a "
        "number of tiles that was rounded down is (size + tile - 1) // tile."
    )


def _lies_in(node: ast.For, frame: FrameType) -> bool:
    return frame.f_code.co_firstlineno <= node.lineno <= frame.f_lineno


def _writes(node: ast.For, names: set[str]) -> bool:
    """Return whether a call in a loop names the tensor."""
    calls = (
        each
        for part in node.body
        if not isinstance(part, ast.If)
        for each in ast.walk(part)
        if isinstance(each, ast.Call)
    )
    return any(isinstance(each, ast.Name) and each.id in names for call in calls for each in ast.walk(call))


def _turns(node: ast.For, frame: FrameType) -> int:
    """Return the number of turns of a loop over a range, by the current values of variables; -1 if unknown."""
    call = node.iter
    named = isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2].endswith("range")
    if not isinstance(call, ast.Call) or not named or call.keywords:
        return -1
    if not all(isinstance(each, _PLAIN) for argument in call.args for each in ast.walk(argument)):
        return -1
    try:
        values = (eval(ast.unparse(each), frame.f_globals, frame.f_locals) for each in call.args)
        return len(range(*values))
    except Exception:
        return -1
