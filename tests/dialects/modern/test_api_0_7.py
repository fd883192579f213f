"""The modern dialect against the table of what NKI 0.7 documents (api_0_7.tsv): there under 0.7, with its signature.

The table has facts of AWS's reference of NKI 0.7 as far as its pages show them: module, name, kind, form as in api.tsv
(of a default that no page shows ``...``), and what became of the name since 0.6.
"""

from __future__ import annotations

import csv
import inspect
import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import nkitools
from nkitools.dialects import modern as nki
from nkitools.dialects.modern import collectives, compiler
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.dialects.version_forms import signature_in
from nkitools.facts import options, versions
from nkitools.rules.finding import KernelError
from nkitools.suggestions.lint_interface import Dialects
from tests.dialects.modern.test_api_table import UNSAID, WIDER, form_of

MODULES: dict[str, Any] = {
    "nki": nki,
    "nki.isa": nisa,
    "nki.language": nl,
    "nki.collectives": collectives,
    "nki.compiler": compiler,
}
CALLED = ("constructor", "function", "method")
VERSIONS = {name: versions.language_of(name) for name in ("0.6", "0.7", "auto")}
# What is documented and refused with NK607: where nkitools models one of these, the name goes.
NOT_MODELLED: set[str] = set()


class Entry(NamedTuple):
    """One line of the table."""

    module: str
    name: str
    kind: str
    form: str
    status: str

    @property
    def full(self) -> str:
        """The name with its module."""
        return f"{self.module}.{self.name}"

    @property
    def is_modelled(self) -> bool:
        """Return whether nkitools models the name and the class that has it."""
        return not {self.full, f"{self.module}.{self.name.partition('.')[0]}"} & NOT_MODELLED

    def found(self) -> Any:
        """Return what the dialect has under the name, in the NKI version that the option says."""
        return attrgetter(self.name)(MODULES[self.module])


with Path(__file__).with_name("api_0_7.tsv").open(newline="") as table:
    ENTRIES = [Entry(**row) for row in csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE)]  # type: ignore[arg-type]
NEW = [entry for entry in ENTRIES if entry.status == "new"]


def each(*entries: Entry) -> Any:
    """Entries as a test's parameter."""
    return pytest.mark.parametrize("entry", entries, ids=[f"{entry.full}-{entry.kind}" for entry in entries])


@contextmanager
def said(version: str) -> Iterator[None]:
    """Name an NKI version."""
    with options.override(nki_version=version):
        yield


def test_the_table_is_whole() -> None:
    """A table cut short would check nothing; what is not modelled is in it."""
    assert len([entry for entry in ENTRIES if entry.status != "removed"]) > 120
    assert {entry.full for entry in ENTRIES} >= NOT_MODELLED


@each(*(entry for entry in ENTRIES if entry.status != "removed" and entry.is_modelled))
def test_it_is_there_under_0_7(entry: Entry) -> None:
    """Also where no version is said; members have the values that a page shows."""
    for version in ("0.7", "auto"):
        with said(version):
            if entry.kind in ("attribute", "field"):
                owner = attrgetter(entry.name.rpartition(".")[0])(MODULES[entry.module])
                assert hasattr(owner, entry.name.rpartition(".")[2]) or entry.name.rpartition(".")[2] in fields(owner)
                continue
            found = entry.found()
        if entry.kind == "member":
            assert entry.form in ("", repr(found.value))
        if entry.kind == "constant":
            assert type(found).__name__ == entry.form
        if entry.kind == "class":
            assert isinstance(found, type)


def fields(owner: type) -> set[str]:
    """Return the names of the attributes that instances of a class have."""
    return {*inspect.signature(owner).parameters, *getattr(owner, "__slots__", ()), *owner.__annotations__}


@each(*(entry for entry in ENTRIES if entry.kind in CALLED and entry.status != "removed" and entry.is_modelled))
def test_its_signature_under_0_7_is_the_documented_one(entry: Entry) -> None:
    """The same parameter names in the same order with the same defaults, keyword-only ones marked."""
    with said("0.7"):
        found = entry.found()
    documented = re.escape(WIDER_0_7.get(entry.name, entry.form)).replace(UNSAID, "=[^,]+")
    bound = entry.kind != "method" or inspect.ismethod(found)
    ours = form_of(signature_in(found, VERSIONS["0.7"]), bound=bound)
    assert re.fullmatch(documented, ours), f"{ours} is not {documented}"


# What public kernels pass beyond the reference's form; each still takes the documented call.
WIDER_0_7 = {
    "scalar_tensor_tensor": WIDER["scalar_tensor_tensor"].replace(
        "name=None", "reduce_cmd=reduce_cmd.reset_reduce, reduce_op=add, reduce_res=None, name=None"
    )
}


@each(*(entry for entry in NEW if "." not in entry.name))
def test_it_is_refused_under_0_6(entry: Entry) -> None:
    """NK608 in a run of 0.6, where the option says 0.6 and by lint: since when, and what to write instead."""

    def kernel() -> None:
        entry.found()

    with pytest.raises(KernelError) as run:
        nkitools.simulate(kernel, nki_version="0.6")
    with said("0.6"), pytest.raises(KernelError) as option:
        entry.found()
    with said("0.6"):
        lint = Dialects().missing(entry.full)
    for finding in (run.value.finding, option.value.finding):
        assert (finding.rule, finding.message, finding.remedy) == lint
        assert finding.rule == "NK608"
        assert finding.message == f"{entry.full} is public since NKI 0.7; this is NKI 0.6"
        assert finding.remedy == versions.by_full_name()[entry.full].instead


def test_what_0_6_lacks_is_not_among_its_names() -> None:
    """hasattr, dir and ``import *`` of a module."""
    for entry in NEW:
        if "." not in entry.name:
            with said("0.6"):
                assert not hasattr(MODULES[entry.module], entry.name)
            with said("0.7"):
                assert hasattr(MODULES[entry.module], entry.name)


PARAMETERS = [row for row in versions.rows() if row.parameter and row.since and "." not in row.owner]


@pytest.mark.parametrize("row", PARAMETERS, ids=lambda row: row.shown)
def test_a_new_parameter_is_refused_under_0_6(row: versions.Row) -> None:
    """NK609 that says since when there is the parameter, and what to write instead."""
    if f"{row.module}.{row.owner}" in NOT_MODELLED:
        pytest.skip("not modelled yet")

    def kernel() -> None:
        function = getattr(MODULES[row.module], row.owner)
        required = [name for name, each in signature_in(function, VERSIONS["0.6"]).parameters.items()]
        function(**dict.fromkeys(required), **{row.parameter: None})

    with pytest.raises(KernelError) as caught:
        nkitools.simulate(kernel, nki_version="0.6")
    finding = caught.value.finding
    assert finding.rule == "NK609"
    assert finding.message.endswith(f"the argument `{row.parameter}` is public since NKI 0.7; this is NKI 0.6")
    assert finding.remedy == row.instead


def test_what_0_7_removed() -> None:
    """``nl.dynamic_range``: NK608 where 0.7 is said, NK618 as a warning where nothing is, nothing under 0.6."""

    def kernel() -> None:
        for _ in nl.dynamic_range(2):
            pass

    with pytest.raises(KernelError) as caught:
        nkitools.simulate(kernel, nki_version="0.7")
    finding = caught.value.finding
    assert (finding.rule, finding.message) == ("NK608", "nki.language.dynamic_range was removed in NKI 0.7")
    assert "nl.fori_loop" in finding.remedy
    found = [each for each in nkitools.simulate(kernel).findings if each.rule == "NK618"]
    assert [(each.severity, each.message) for each in found] == [
        ("warning", "nl.dynamic_range was removed in NKI 0.7; it runs because no version is said")
    ]
    announced = [each for each in nkitools.simulate(kernel, nki_version="0.6").findings if each.rule == "NK618"]
    assert [(each.severity, each.message) for each in announced] == [
        ("hint", "nl.dynamic_range is deprecated since NKI 0.6")
    ]


@pytest.mark.parametrize("name", ["affine_range", "sequential_range", "static_range"])
def test_what_0_7_announces_to_remove(name: str) -> None:
    """A hint once a line, and the range of Python's numbers."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
        for i in range(4):
            for j in getattr(nl, name)(2):
                nl.store(out[32 * i : 32 * i + 32, j : j + 1], nl.load(x[32 * i : 32 * i + 32, j : j + 1]))
        return out

    x = np.arange(256, dtype=np.float32).reshape(128, 2)
    for version in ("0.7", "auto"):
        run = nkitools.simulate(kernel, x, nki_version=version)
        np.testing.assert_array_equal(run.outputs, x)
        found = [(each.severity, each.message, each.remedy) for each in run.findings if each.rule == "NK618"]
        assert found == [("hint", f"nl.{name} is deprecated since NKI 0.7", "Use Python's range.")]
    run = nkitools.simulate(kernel, x, nki_version="0.6")
    assert [each for each in run.findings if each.rule == "NK618"] == []


def test_members_are_enums() -> None:
    """Those whose values no page shows too."""
    assert isinstance(nisa.dependency.runtime, Enum)
