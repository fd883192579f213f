"""Names that people invent for NKI, and the calls that do what these names say.

The table is ``invented_names.tsv``. Its rows are about functions (``multiply mul``), keywords (``scr=``) or, with an
``@``, the calls that several rows share. ``operator`` is the operator of nki.language (with the function's own name
where that differs), of a keyword the place that it fills in the calls. The calls have places in braces, ``{axis=1}``
with what stands there if the author's call has nothing:

- ``value``: the call that returns a tile; of a keyword the parameters that it may mean, the likeliest first;
- ``into``: the call that writes to a destination, ``number`` the one whose second operand is a number or a column;
- ``legacy``: the call in the legacy dialect, where it is not ``value``;
- ``says``: a sentence beside the call, or in the place of one.

The module needs the standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import NamedTuple

from nkitools.facts.tsv import rows_of

_TABLE = Path(__file__).with_name("invented_names.tsv")
_PLACE = re.compile(r"\{(\w+)(?:=([^}]*))?\}")
# What people put around the name of a meaning: the tensor_ of tensor_add, the _arith of tensor_tensor_arith.
_BEFORE = ("tensor_", "vector_", "scalar_", "elementwise_", "nc_", "tile_", "dma_")
_BEHIND = ("_arith", "_op", "_tile", "_tiles", "_tensor", "_scalar", "_bitvec", "_inplace", "_sbuf", "_")


class Meaning(NamedTuple):
    """One row of the table; see the module's docstring for its cells."""

    names: str
    operator: str
    value: str
    into: str
    number: str
    legacy: str
    says: str

    def call(self, places: dict[str, str], *, into: bool, number: bool = False, legacy: bool = False) -> str:
        """Return the call with its gaps filled; '' if the table has no such call."""
        if legacy:
            form = self.legacy or self.value or self.into
        elif into:
            form = self.number if number and self.number else self.into
        else:
            form = self.value
        operator, _, name = self.operator.partition(" ")
        return filled(form, {**places, "op": operator, "name": name} if operator else places)

    def places(self, *, into: bool, legacy: bool = False) -> tuple[str, ...]:
        """Return the names of the places in the order of the call's arguments."""
        form = (self.legacy or self.value) if legacy else (self.into or self.number) if into else self.value
        taken = ("op", "name") if self.operator else ()
        return tuple(dict.fromkeys(each for each, _ in _PLACE.findall(form) if each not in taken))


def filled(form: str, places: dict[str, str]) -> str:
    """Return a form with its places filled; an empty place without a value of its own becomes ``...``."""
    return _PLACE.sub(lambda place: places.get(place[1]) or place[2] or "...", form)


@cache
def meanings() -> dict[str, Meaning]:
    """Return the rows of functions and keywords by each of their names."""
    rows = [Meaning(*row.values()) for row in rows_of(_TABLE)]
    shared = {row.names: row for row in rows if row.names.startswith("@")}
    whole = [row._replace(**_of(shared[row.value])) if row.value in shared else row for row in rows]
    return {name: row for row in whole if row.names not in shared for name in row.names.split()}


def _of(shared: Meaning) -> dict[str, str]:
    return {"value": shared.value, "into": shared.into, "number": shared.number}


def meaning_of(name: str) -> Meaning | None:
    """Return the meaning of a name of a function, without what people put around it; None for an unknown one."""
    return next((meanings()[each] for each in bare_names(name) if each in meanings()), None)


def bare_names(name: str) -> list[str]:
    """Return a name in small letters, and what is left of it without the words that people put around a name."""
    found = [name.lower()]
    for each in found:
        found += [each.removeprefix(word) for word in _BEFORE if each.startswith(word) and each != word]
        found += [each.removesuffix(word) for word in _BEHIND if each.endswith(word) and each != word]
    return list(dict.fromkeys(found))


def place_of(keyword: str) -> str:
    """Return the place that an author's keyword fills, the keyword itself if the table does not have it."""
    row = meanings().get(f"{keyword}=")
    return (row.operator if row is not None else "") or keyword


def parameter_meant(keyword: str, parameters: Collection[str], given: Collection[str] = ()) -> str:
    """Return the parameter of a function that an unknown keyword means; '' if the table has none."""
    row = meanings().get(f"{keyword}=")
    meant = row.value.split() if row is not None else ()
    return next((each for each in meant if each in parameters and each not in given and each != keyword), "")


def keyword_remedy(keyword: str, parameters: Collection[str], given: Collection[str] = ()) -> str:
    """Return the sentence about an unknown keyword of a function, with a space behind it; '' for an unknown one."""
    row = meanings().get(f"{keyword}=")
    meant = parameter_meant(keyword, parameters, given)
    if meant:
        return f"Write `{meant}=` for `{keyword}=`. "
    fits = {"stationary", "moving"} <= set(parameters)  # what a row says is about nc_matmul
    return f"{row.says} " if row is not None and row.says and fits else ""


def keyword_explained(name: str) -> str:
    """Return the remedy for an invented keyword (``scr=``); '' for an unknown one."""
    row = meanings().get(name)
    meant = [f"`{each}=`" for each in row.value.split() if f"{each}=" != name] if row is not None else []
    return f"Write the parameter that the function has: {', '.join(meant)}." if meant else row.says if row else ""


def attribute_remedy(name: str, *, legacy: bool = False) -> str:
    """Return the remedy for an attribute that a tensor ``x`` does not have; '' for an unknown one."""
    row = meanings().get(f".{name}")
    if row is not None:
        return f"Call {row.legacy}." if legacy and row.legacy else row.says
    meaning = meaning_of(name)
    call = meaning.call({"x": "x"}, into=False, legacy=legacy) if meaning is not None else ""
    return f"Call {call}." if call else meaning.says if meaning is not None else ""


def shape_remedy(sizes: Iterable[object]) -> str:
    """Return the sentence about a shape that is given in pieces, as in ``nl.zeros(128, 64)``."""
    return f"Write the shape as one tuple, ({', '.join(map(str, sizes))})."


def size_remedy(name: str, sizes: type) -> str:
    """Return the sentence about a size that ``nl.tile_size``, of the class ``sizes``, does not have."""
    there = [
        key for key, each in vars(sizes).items()
        if isinstance(each, property) and not re.search("deprecated|NK607", str(each.__doc__))
    ]  # fmt: skip
    near = get_close_matches(name, [each for each in there if each[0] == name[0]], 1, 0.8)
    return (f"Did you mean {near[0]}? " if near else "") + f"It has {', '.join(there)}."
