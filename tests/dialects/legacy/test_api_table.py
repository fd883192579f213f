"""The legacy dialect against the table of SDK 2.26's public names (api.tsv): present or refused, and called alike.

The table holds facts of AWS's reference: module, name, kind, and the form: of what is called its parameters in order
with their defaults, of an enum member its value, of a constant what it is.
"""

from __future__ import annotations

import csv
import inspect
from collections.abc import Callable
from enum import Enum, IntEnum
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import neuronxcc.nki as nki
import neuronxcc.nki.compiler as ncc
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt
import numpy as np
import pytest

import nkitools
from nkitools.facts import versions

MODULES: dict[str, Any] = {
    "nki": nki,
    "nki.isa": nisa,
    "nki.language": nl,
    "nki.typing": nt,
    "nki.compiler": ncc,
    "nki.compiler.sbuf": ncc.sbuf,
    "nki.compiler.psum": ncc.psum,
}
# What this version refuses with NK607 when it is used.
NOT_MODELLED = {"nki": {"FrameworkKernel"}, "nki.compiler": {"allocation_scope"}}
CONSTANTS: dict[str, Any] = {
    "np.dtype('bfloat16')": np.dtype(ml_dtypes.bfloat16),
    "np.dtype('float8_e4m3')": np.dtype(ml_dtypes.float8_e4m3),
    "np.dtype('float8_e5m2')": np.dtype(ml_dtypes.float8_e5m2),
    "np.dtype('|V4')": np.dtype("|V4"),
    **{
        f"np.{each.__name__}": each
        for each in (np.float16, np.float32, np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32)
    },
    "np.bool_": np.bool_,
}


class Entry(NamedTuple):
    """One line of the table."""

    module: str
    name: str
    kind: str
    form: str

    @property
    def modelled(self) -> bool:
        """Whether this version models it."""
        return self.name.split(".")[0] not in NOT_MODELLED.get(self.module, ())

    def found(self) -> Any:
        """What the dialect has under that name."""
        return attrgetter(self.name)(MODULES[self.module])


with Path(__file__).with_name("api.tsv").open(newline="") as table:
    ENTRIES = [Entry(**row) for row in csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE)]  # type: ignore[arg-type]


def of_kind(*kinds: str) -> Any:
    """The modelled entries of some kinds as a test's parameter."""
    entries = [entry for entry in ENTRIES if entry.kind in kinds and entry.modelled]
    return pytest.mark.parametrize("entry", entries, ids=[f"{entry.module}.{entry.name}" for entry in entries])


def shown(default: Any) -> str:
    """A default as the table writes it."""
    if isinstance(default, Enum):
        return f"{type(default).__name__}.{default.name}"
    if isinstance(default, type):
        return default.__name__ if default is bool else f"np.{default.__name__}"
    if default is np.amax:
        return "np.amax"
    return "fp32.min" if isinstance(default, float) and default == np.finfo(np.float32).min else repr(default)


def form(function: Callable[..., Any], *, bound: bool) -> str:
    """A function's parameters as the table writes them; of a method without self."""
    parameters = list(inspect.signature(function).parameters.values())[0 if bound else 1 :]
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    written = [
        stars.get(each.kind, "") + each.name + ("" if each.default is each.empty else f"={shown(each.default)}")
        for each in parameters
    ]
    keywords = [index for index, each in enumerate(parameters) if each.kind is inspect.Parameter.KEYWORD_ONLY]
    if keywords and not any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters):
        written.insert(keywords[0], "*")
    return ", ".join(written)


def test_the_table_is_whole() -> None:
    """A table cut short would check nothing: SDK 2.26 documents 151 functions, 34 of them in nki.isa."""
    functions = [entry for entry in ENTRIES if entry.kind == "function"]
    assert len(functions) == len(set(functions)) == 151
    assert sum(entry.module == "nki.isa" for entry in functions) == 34
    assert all(
        names <= {entry.name for entry in ENTRIES if entry.module == module} for module, names in NOT_MODELLED.items()
    )


# What public kernels pass beyond the reference's form; each still takes the documented call.
WIDER = {"tensor.reshape": "shape, *more"}


@of_kind("function", "method")
def test_what_is_called_takes_the_documented_arguments(entry: Entry) -> None:
    """The same parameters in the same order with the same defaults, by keyword only where the reference says so."""
    assert form(entry.found(), bound=entry.kind != "method") == WIDER.get(entry.name, entry.form)


@of_kind("member")
def test_members_of_enums_have_the_documented_values(entry: Entry) -> None:
    """They are integers: nisa.engine.vector == 5."""
    assert isinstance(entry.found(), IntEnum)
    assert entry.found() == int(entry.form)


@pytest.mark.parametrize("entry", [each for each in ENTRIES if each.form == "IntEnum"], ids=lambda each: each.name)
def test_enums_have_no_other_members(entry: Entry) -> None:
    """A member of ours would be one that AWS's compiler does not know."""
    documented = {each.name for each in ENTRIES if each.kind == "member" and each.name.startswith(f"{entry.name}.")}
    assert {f"{entry.name}.{member}" for member in entry.found().__members__} == documented


@of_kind("constant")
def test_constants_are_the_documented_ones(entry: Entry) -> None:
    """Dtypes are NumPy's; of engines, memories and grids the reference says no more than that they are there."""
    found = entry.found()
    assert found is not None
    if entry.form:
        assert found == CONSTANTS[entry.form]
        assert isinstance(found, type) == isinstance(CONSTANTS[entry.form], type)


@of_kind("attribute")
def test_attributes_are_there(entry: Entry) -> None:
    """Those of a tensor, of the two formats' limits, and the sizes of a tile."""
    owner, name = entry.name.split(".")
    found = getattr(MODULES[entry.module], owner)
    assert hasattr(type(found), name) or name in vars(found)


@of_kind("class", "annotation")
def test_classes_and_annotations_are_there(entry: Entry) -> None:
    """Under their names."""
    assert entry.found() is not None


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in NOT_MODELLED.items() for name in sorted(names)]
)
def test_what_is_not_modelled_is_refused_by_name(module: str, name: str) -> None:
    """NK607, and only when it is used."""
    with pytest.raises(nkitools.NotModelled, match=f"{name} is documented"):
        getattr(MODULES[module], name)()


def test_nothing_else_is_refused() -> None:
    """The modules' own lists of documented names without a model are those above."""
    for name in ("nki", "nki.isa", "nki.language", "nki.compiler"):
        refused = {row.name for row in versions.names_of(f"neuronxcc.{name}").values() if row.home == "-"}
        assert refused == NOT_MODELLED.get(name, set())
