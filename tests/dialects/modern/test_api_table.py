"""The modern dialect against the table of NKI 0.6's public names (api.tsv): present or refused, and called alike.

The table holds facts of AWS's reference: module, name, kind, and the form: of what is called its parameters in order
with their defaults, of an enum member its value, of a constant the class that it is of.
"""

from __future__ import annotations

import csv
import inspect
import re
from enum import Enum
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from nkitools.dialects import modern as nki
from nkitools.dialects.modern import collectives
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.dialects.version_forms import signature_in
from nkitools.engines.operators import Operator
from nkitools.facts import versions

MODULES: dict[str, Any] = {"nki": nki, "nki.isa": nisa, "nki.language": nl, "nki.collectives": collectives}
CALLED = ("constructor", "function", "method")

# What this version refuses with NK607: when it models one of these, the line goes.
NOT_MODELLED: dict[str, set[str]] = {}  # of NKI 0.6; tests/dialects/modern/test_api_0_7.py has those of 0.7
UNSAID = re.escape("=...")  # a default that the reference has and does not name
# What public kernels pass beyond the reference's form; each still takes the documented call.
WIDER = {
    "NkiInstruction.depends_on": "*producers, kind=None",
    "NkiTensor": "shape, dtype, storage, buffer=sbuf, name='', address=None",
    "NkiTensor.reshape": "shape, *more",
    "scalar_tensor_tensor": (
        "dst, data, op0, operand0, op1, operand1, reverse0=False, reverse1=False, name=None, dtype=None"
    ),
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
        return self.name not in NOT_MODELLED.get(self.module, ())

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
    if isinstance(default, nl.MemoryRegion):
        return default.name
    if isinstance(default, Enum):
        return f"{type(default).__name__}.{default.name}"
    if isinstance(default, (Operator, nl.DType)):
        return default.name
    return repr(default)


def form_of(signature: inspect.Signature, *, bound: bool) -> str:
    """A signature as the table writes it; of a method without self."""
    parameters = list(signature.parameters.values())[0 if bound else 1 :]
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    written = [
        stars.get(each.kind, "") + each.name + ("" if each.default is each.empty else f"={shown(each.default)}")
        for each in parameters
    ]
    named = [number for number, each in enumerate(parameters) if each.kind is each.KEYWORD_ONLY]
    if named and not any(each.kind is each.VAR_POSITIONAL for each in parameters):
        written.insert(named[0], "*")
    return ", ".join(written)


def test_the_table_is_whole() -> None:
    """A table cut short would check nothing: NKI 0.6 documents 52 functions of nki.isa."""
    assert len({entry.name for entry in ENTRIES if entry.module == "nki.isa" and entry.kind == "function"}) == 52
    assert all(
        names <= {entry.name for entry in ENTRIES if entry.module == module} for module, names in NOT_MODELLED.items()
    )


@of_kind(*CALLED)
def test_what_is_called_takes_the_documented_arguments(entry: Entry) -> None:
    """The same parameter names in the same order with the same defaults."""
    documented = WIDER.get(entry.name, entry.form)
    ours = form_of(signature_in(entry.found(), versions.language_of("0.6")), bound=entry.kind != "method")
    assert re.fullmatch(re.escape(documented).replace(UNSAID, "=[^,]+"), ours), f"{ours} is not {documented}"


def test_wider_forms_take_the_documented_call() -> None:
    """By keyword too."""
    tensor = nl.NkiTensor((4, 6), nl.float32, None)
    assert tensor.reshape(shape=(4, 2, 3)).shape == tensor.reshape(4, 2, 3).shape == (4, 2, 3)


@of_kind("member")
def test_members_of_enums_have_the_documented_values(entry: Entry) -> None:
    """Under their name and by their value."""
    assert repr(entry.found().value) == entry.form


@pytest.mark.parametrize("name", [entry.name for entry in ENTRIES if entry.kind == "class" and entry.modelled])
def test_enums_have_no_other_members(name: str) -> None:
    """A member of ours would be one that AWS's compiler does not know."""
    entry = next(entry for entry in ENTRIES if entry.name == name and entry.kind == "class")
    found = entry.found()
    assert isinstance(found, type)
    if issubclass(found, Enum):
        documented = {each.name for each in ENTRIES if each.kind == "member" and each.name.startswith(f"{name}.")}
        assert {f"{name}.{member}" for member in found.__members__} == documented


@of_kind("constant")
def test_constants_are_of_the_documented_class(entry: Entry) -> None:
    """Engines, memories, dtypes, operators."""
    assert entry.form in ("", type(entry.found()).__name__)


@of_kind("attribute")
def test_attributes_are_there(entry: Entry) -> None:
    """Those of a tensor, and the sizes of a tile that only a running kernel has."""
    owner, name = entry.name.split(".")
    found = getattr(nl, owner)
    assert hasattr(found if isinstance(found, type) else type(found), name)


def test_each_module_refuses_those_names_and_no_others() -> None:
    """What a module says that it refuses is the list above."""
    older = versions.language_of("0.6")
    refused = {
        name: {row.name for row in versions.names_of(name).values() if row.home == "-" and row.is_in(older)}
        for name in MODULES
    }
    assert {name: names for name, names in refused.items() if names} == NOT_MODELLED
