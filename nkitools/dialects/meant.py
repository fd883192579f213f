"""The call that an author means by a name which NKI does not have, with the arguments of the line."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from types import FrameType
from typing import Any, NamedTuple

from nkitools.authors_code.positions import span, span_of
from nkitools.authors_code.source_text import nodes_of, text_of
from nkitools.facts import versions
from nkitools.facts.invented_names import Meaning, bare_names, meaning_of, meanings, parameter_meant, place_of

_SHORT = {"language": "nl", "isa": "nisa", "collectives": "nki.collectives"}
_SPELLING = 0.85  # of the letters that a misspelt name shares with the one that is meant


class Use(NamedTuple):
    """The use of a name in a line: its call, and the expression that holds the name or the call."""

    call: ast.Call | None = None
    around: ast.AST | None = None
    alone: bool = False  # the call is a statement, its result is dropped
    in_line: bool = False  # the line is known
    is_number: Callable[[ast.expr], bool] = lambda node: _is_literal(node)


_UNKNOWN = Use()
Parameters = Callable[[str, str], Mapping[str, inspect.Parameter]]


def remedy_for(module: str, name: str, public: Iterable[str], parameters: Parameters, use: Use = _UNKNOWN) -> str:
    """Return the remedy for ``module.name``, which NKI does not have; '' if none is certain.

    ``public``: the names of the module; ``parameters`` returns the parameters of a function by its module and name.
    """
    root, _, here = module.rpartition(".")
    for word in bare_names(name):
        meaning = meanings().get(word)
        if meaning is not None:
            number = "scalar" in name or _second_is_number(meaning, use)
            return _by_meaning(_of_two(meaning, use), root == versions.LEGACY, use, number=number)
        home = _home_of(root, here, word, public)
        if home:
            there = parameters(f"{root}.{home}", word)
            return f"Write `{_renamed(home, word, there, use)}`."
    whole = _rearranged(root, here, name, public)
    if whole:
        home, word = whole
        return f"Write `{_renamed(home, word, parameters(f'{root}.{home}', word), use)}`."
    near = _respelled(name, public)
    return f"Did you mean {near}?" if near else ""


def _of_two(meaning: Meaning, use: Use) -> Meaning:
    """Return the meaning for two operands: ``tensor_max(data1=a, data2=b)`` is no reduction."""
    operator, _, reduction = meaning.operator.partition(" ")
    if not reduction or use.call is None:
        return meaning
    last = use.call.args[-1] if len(use.call.args) > 1 else None
    is_axis = last is None or _is_literal(last) or isinstance(last, ast.Tuple | ast.List) or use.alone
    named = any(place_of(each.arg or "") == "y" for each in use.call.keywords)
    return meaning if is_axis and not named else meanings()[operator]


def _home_of(root: str, here: str, word: str, public: Iterable[str]) -> str:
    """Return the module of NKI that has a name, the one that was asked for it first; '' for none."""
    if word in public:
        return here
    rows = {home: versions.names_of(f"{root}.{home}").get(word) for home in _SHORT if home != here}
    return next((home for home, row in rows.items() if row is not None and row.is_modelled and not row.until), "")


def _rearranged(root: str, here: str, name: str, public: Iterable[str]) -> tuple[str, str] | None:
    """Return the module and the only function with the words of a name in another order, or with one more in front."""
    words = name.lower().split("_")
    if len(words) < 2:
        return None
    asked = {home: versions.names_of(f"{root}.{home}").items() for home in _SHORT if home != here}
    others = [(home, each) for home, names in asked.items() for each, row in names if row.is_modelled and not row.until]
    found = [
        (home, each)
        for home, each in [*((here, each) for each in public), *others]
        if sorted(each.split("_")) == sorted(words) or each.split("_")[1:] == words
    ]
    return found[0] if len(found) == 1 else None


def _renamed(home: str, word: str, parameters: Mapping[str, inspect.Parameter], use: Use) -> str:
    """Return the author's call with the right name, and the keywords of its function."""
    called = f"{_SHORT[home]}.{word}"
    if not parameters or (use.call is None and use.in_line):
        return f"{called}(...)" if use.call is not None else called
    call = use.call or ast.Call(ast.Name(called), [], [])
    given = [each.arg or "" for each in call.keywords if each.arg in parameters]
    shown = [ast.unparse(each) for each in call.args]
    for each in call.keywords:
        named = each.arg or ""
        meant = named if named in parameters else parameter_meant(named, parameters, given)
        given.append(meant)
        shown += [f"{meant}={ast.unparse(each.value)}"] if meant else []
    positional = list(parameters)[: len(call.args)]
    needed = [
        key for key, each in parameters.items() if each.default is each.empty and each.kind is not each.VAR_KEYWORD
    ]
    shown += [f"{each}=..." for each in needed if each not in given and each not in positional]
    return f"{called}({', '.join(shown)})"


def _operator(meaning: Meaning, use: Use) -> str:
    """Return the operator that `nisa.multiply` or `nisa.arith_op.Multiply` means as an argument."""
    operator = meaning.operator
    if not operator and isinstance(use.around, ast.Attribute):
        member = meaning_of(use.around.attr)
        operator = member.operator if member is not None and member.operator else use.around.attr.lower()
    return f"nl.{operator.partition(' ')[0] or '...'}"


def _by_meaning(meaning: Meaning, legacy: bool, use: Use, *, number: bool = False) -> str:
    if use.in_line and use.call is None and (meaning.operator or "{member}" in meaning.value):
        return f"Write `{_operator(meaning, use)}`."
    calls = list(_calls(meaning, legacy, use, number))
    if not calls:
        return meaning.says
    sentence = f"Write `{calls[0]}`" + (f"; with a destination `{calls[1]}`" if calls[1:] else "")
    if not use.in_line and meaning.number and not number and not legacy:
        column = meaning.call({each: each for each in ("dst", "x", "y")}, into=True, number=True)
        sentence += f", for a number or a column y `{column}`"
    return f"{sentence}. {meaning.says}".strip()


def _calls(meaning: Meaning, legacy: bool, use: Use, number: bool) -> Iterator[str]:
    """Yield the call that does it, and in the modern dialect the one that writes to a destination."""
    into = not legacy and use.call is not None and _has_destination(meaning, use)
    for kind in [into] if into or legacy else [False, True]:
        places = _given(use, meaning.places(into=kind, legacy=legacy))
        if kind and not into:  # the second form: what the author gave goes to the same places
            first = _given(use, meaning.places(into=False)) if use.call is not None else {}
            places = {"dst": "...", **first} if use.in_line else _given(use, meaning.places(into=True))
        call = meaning.call(places, into=kind, number=number, legacy=legacy)
        if call:
            yield call


def _given(use: Use, places: tuple[str, ...]) -> dict[str, str]:
    """Return the author's arguments for the gaps of a form; without a call the gaps' own names."""
    if use.call is None:
        return {} if use.in_line else {each: each for each in places if each not in ("axis", "dtype", "op")}
    named = {place_of(each.arg): ast.unparse(each.value) for each in use.call.keywords if each.arg}
    free = [each for each in places if each not in named]
    return named | dict(zip(free, map(ast.unparse, use.call.args), strict=False))


def _has_destination(meaning: Meaning, use: Use) -> bool:
    assert use.call is not None
    if any(place_of(each.arg or "") == "dst" for each in use.call.keywords):
        return True
    needed = len([each for each in meaning.places(into=True) if each != "axis"])
    more = len(use.call.args) > len(meaning.places(into=False))
    return needed > 0 and (more or (use.alone and len(use.call.args) >= needed))


def _second_is_number(meaning: Meaning, use: Use) -> bool:
    """Return whether the second operand is a number or a column, which tensor_scalar takes."""
    call = use.call
    if call is None:
        return False
    named = next((each.value for each in call.keywords if place_of(each.arg or "") == "y"), None)
    places = meaning.places(into=_has_destination(meaning, use))
    place = places.index("y") if "y" in places else len(call.args)
    node = named or (call.args[place] if place < len(call.args) else None)
    return node is not None and use.is_number(node)


def _is_literal(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp | ast.Constant | ast.BinOp) and not any(
        isinstance(each, ast.Name) for each in ast.walk(node)
    )


def _respelled(name: str, public: Iterable[str]) -> str:
    """Return the only public name that differs by a slip of the pen; a digit is no slip."""
    digits = re.sub(r"\D", "", name)
    near = get_close_matches(name, [each for each in public if re.sub(r"\D", "", each) == digits], 1, _SPELLING)
    return near[0] if near and near[0][0] == name[0] else ""


def use_at(frame: FrameType, name: str) -> Use:
    """Return the use of ``name``, an attribute of a module, in the current line of a frame."""
    wanted = span_of(frame.f_code, frame.f_lasti)
    nodes = list(nodes_of(text_of(frame.f_code)))
    around = {id(child): node for node in nodes for child in ast.iter_child_nodes(node)}
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr == name and span(node) == wanted:
            outer = around.get(id(node))
            call = outer if isinstance(outer, ast.Call) and outer.func is node else None
            alone = call is not None and isinstance(around.get(id(call)), ast.Expr)
            return Use(call, outer, alone, True, lambda each: _is_small(each, frame))
    return Use()


def _is_small(node: ast.expr, frame: FrameType) -> bool:
    """Return whether an operand is a number, or a tile of one column."""
    if not isinstance(node, ast.Name):
        return _is_literal(node)
    value: Any = frame.f_locals.get(node.id, frame.f_globals.get(node.id))
    return isinstance(value, int | float) or tuple(getattr(value, "shape", ()))[1:] == (1,)
