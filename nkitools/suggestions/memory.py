"""The memory and dtype of a tensor, and what an engine takes: NK201, NK206, NK303, NK606."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nkitools.edits.source import keyword, replaced
from nkitools.suggestions.site import Site, Suggestion, given, wrapped

_ON_CHIP = {"SBUF": "sbuf", "PSUM": "psum"}


def in_another_memory(site: Site) -> Iterator[Suggestion]:
    """NK201: load an operand out of HBM, copy one out of PSUM, or make the destination in the memory that is asked."""
    parameter, call, wanted = site.text_fact("argument"), site.call, site.finding.facts.get("memories", ())
    if not parameter or not isinstance(wanted, tuple) or not wanted or call is None or not site.language:
        return
    name, where = site.variable, site.text_fact("memory")
    made = site.made(name) if name else None
    if parameter in ("dst", "out") and made is not None:
        buffer = keyword(made, "buffer")
        memory = _ON_CHIP.get(str(wanted[0]), "")
        if buffer is not None and memory:
            edit = replaced(buffer.value, f"{site.language}.{memory}")
            yield Suggestion(f"Make `{name}` in {site.language}.{memory}", (edit,))
        return
    operand = given(call, parameter, _position(site, call, parameter))
    if operand is None:
        return
    if where.endswith("HBM") and "SBUF" in wanted:
        yield Suggestion(f"Load `{site.text(operand)}` first", (wrapped(site, operand, f"{site.language}.load"),))
    elif where == "PSUM" and "SBUF" in wanted:
        yield Suggestion(
            f"Copy `{site.text(operand)}` to SBUF first", (wrapped(site, operand, f"{site.language}.copy"),)
        )


def _position(site: Site, call: ast.Call, parameter: str) -> int:
    """Return the position of a parameter in calls without keywords; beyond the last argument if unknown."""
    from nkitools.suggestions.lint_interface import parameters_of

    names = parameters_of(site.scope.qualified(call.func))
    return names.index(parameter) if parameter in names else len(call.args)


def in_float32(site: Site) -> Iterator[Suggestion]:
    """NK303: make the tile that a matmul writes in float32."""
    name = site.text_fact("tensor")
    made = site.made(name)
    dtype = given(made, "dtype", 1) if made is not None else None
    if dtype is not None and site.language:
        edit = replaced(dtype, f"{site.language}.float32")
        yield Suggestion(f"Make `{name}` in {site.language}.float32", (edit,))


def without_engine(site: Site) -> Iterator[Suggestion]:
    """NK206, NK606: leave the argument out that the chip does not have here."""
    from nkitools.suggestions.lint_interface import required_of

    name, call = site.text_fact("argument"), site.call
    if call is None or not name or name in required_of(site.scope.qualified(call.func)):
        return
    given_so = keyword(call, name)
    if given_so is not None:
        yield Suggestion(f"Leave `{name}` out", (site.module.source.without_argument(call, given_so),))


def without_broadcast(site: Site) -> Iterator[Suggestion]:
    """NK111: bring the only row to every partition while it is loaded."""
    partitions, made = site.whole_fact("partitions"), site.made(site.text_fact("tensor"))
    if partitions < 0 or made is None or site.is_legacy:
        return
    if site.qualified(made) != "nki.language.load" or not made.args:
        return
    row = made.args[0]
    edit = replaced(row, f"{site.text(row)}.broadcast(0, {partitions})")
    yield Suggestion(f"Load the row into each of {partitions} partitions", (edit,))


def with_division(site: Site) -> Iterator[Suggestion]:
    """NK615: multiply by the reciprocal."""
    call = site.call
    if call is None or site.qualified(call) != "nki.language.divide" or len(call.args) != 2 or call.keywords:
        return
    left, right = (site.text(each) for each in call.args)
    text = f"{site.language}.multiply({left}, {site.language}.reciprocal({right}))"
    yield Suggestion("Multiply by the reciprocal", (replaced(call, text),))


def zeroed(site: Site) -> Iterator[Suggestion]:
    """NK401: set the whole tile before the first instruction writes to it."""
    made = site.made(site.variable) if site.whole_fact("unwritten") > 0 and site.text_fact("memory") == "SBUF" else None
    if made is None or not site.language or site.qualified(made) != "nki.language.ndarray":
        return
    edit = replaced(made.func, f"{site.language}.zeros")
    yield Suggestion(f"Make `{site.variable}` with zeros", (edit,))


def keyword_given(site: Site, call: ast.Call, name: str, text: str) -> Suggestion:
    """Return the suggestion to give a call a keyword, in the place of the one that it has."""
    old = keyword(call, name)
    edit = replaced(old.value, text) if old is not None else site.module.source.with_argument(call, f"{name}={text}")
    return Suggestion(f"Say {name}={text}", (edit,))
