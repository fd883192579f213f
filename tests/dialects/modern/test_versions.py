"""NKI versions as data: names, signatures, lint, documents and messages follow the table of versions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import FrozenInstanceError
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
import nkitools.isa
from nkitools.dialects import legacy
from nkitools.facts import options, versions
from nkitools.issue.instruction import Instruction
from nkitools.lint.engine import lint
from nkitools.suggestions.lint_interface import Dialects
from tests.cases import each
from tests.nki_versions import SINCE_0_7

REPOSITORY = Path(__file__).parents[3]
EARLY = "is public since NKI 0.99; this is NKI 0.6"


@cache
def imaginary() -> dict[str, Any]:
    """Return the answers of a process whose table has NKI 0.99, which tests/dialects/imaginary/versions.tsv adds."""
    command = [sys.executable, "-m", "tests.dialects.imaginary.session"]
    environment = {name: value for name, value in os.environ.items() if name != "NKITOOLS_NKI_VERSION"}
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.process
class TestImaginaryVersion:
    """A version that brings a function, a parameter and a constant, changes a default, and takes names away."""

    def test_it_is_a_choice_of_the_option_and_the_newest(self) -> None:
        """``auto`` means it, and a run keeps which version it used."""
        assert imaginary()["choices"] == ["auto", "0.6", "0.7", "0.99"]
        assert imaginary()["settings"] == "0.99"

    @pytest.mark.parametrize("version", ["0.99", "auto"])
    def test_its_function_runs(self, version: str) -> None:
        """By the module's attribute, and imported before the run."""
        assert imaginary()[version]["doubled"] == imaginary()[version]["doubled_by_name"] == [2, 4, 6, 8]

    @pytest.mark.parametrize(("kernel", "name"), [("doubled", "nki.isa.double"), ("doubled_by_name", "nisa.double")])
    def test_its_function_is_refused_in_a_run_of_an_earlier_version(self, kernel: str, name: str) -> None:
        """NK608 says since when there is the function."""
        rule, message, remedy = imaginary()["0.6"][kernel]
        assert rule == "NK608"
        assert message == f"{name} {EARLY}"
        assert "nki_version=" in remedy

    def test_its_parameter_is_refused_in_a_run_of_an_earlier_version(self) -> None:
        """NK609 says since when there is the parameter, and shows the version's own form."""
        assert imaginary()["0.99"]["copied"] == imaginary()["auto"]["copied"] == [1, 2, 3, 4]
        assert imaginary()["0.6"]["copied"] == [
            "NK609",
            f"nisa.tensor_copy: the argument `engine` {EARLY}",
            "The call form is nisa.tensor_copy(dst, src, name=None).",
        ]

    @pytest.mark.parametrize("version", ["0.6", "0.99", "auto"])
    def test_positions_are_those_of_the_version(self, version: str) -> None:
        """``name`` stands behind the new parameter in the version that has it."""
        assert imaginary()[version]["copied_by_position"] == [1, 2, 3, 4]

    @pytest.mark.parametrize(("version", "total"), [("0.6", -10), ("0.99", 10), ("auto", 10)])
    def test_a_default_is_that_of_the_version(self, version: str, total: int) -> None:
        """``negate`` is True before 0.99 and False from then on."""
        assert imaginary()[version]["reduced"] == [total]

    def test_what_it_takes_away_is_refused_with_what_to_write_instead(self) -> None:
        """A function and a parameter, NK608."""
        assert imaginary()["0.99"]["largest"] == ["NK608", "nki.isa.max8 was removed in NKI 0.99", "Use nisa.topk."]
        message = "nl.softmax: the argument `dtype` was removed in NKI 0.99"
        assert imaginary()["0.99"]["softmaxed"] == ["NK608", message, "Cast with nl.copy."]

    def test_what_it_takes_away_runs_where_no_version_is_said(self) -> None:
        """With a warning (NK618); the earlier version says nothing."""
        softmax = np.exp([1, 2, 3, 4]) / np.exp([1, 2, 3, 4]).sum()
        for version in ("0.6", "auto"):
            assert imaginary()[version]["largest"] == [1] * 8
            np.testing.assert_allclose(imaginary()[version]["softmaxed"], softmax, rtol=1e-6)
        warning = "nisa.max8 was removed in NKI 0.99; it runs because no version is said"
        assert imaginary()["findings"] == [["NK618", "warning", warning]]

    def test_a_constant_is_refused_where_it_is_read(self) -> None:
        """``nl.float9`` in a run of the earlier version."""
        assert imaginary()["0.99"]["ninth"] == [1, 2, 3, 4]
        assert imaginary()["0.6"]["ninth"][:2] == ["NK608", f"nki.language.float9 {EARLY}"]

    @pytest.mark.parametrize(
        ("version", "names", "has"),
        [
            ("0.6", ["max8", "topk"], [False, True, False]),
            ("0.99", ["double", "topk"], [True, False, True]),
            ("auto", ["double", "max8", "topk"], [True, True, True]),
        ],
    )
    def test_the_modules_show_the_names_of_the_version_that_is_said(
        self, version: str, names: list[str], has: list[bool]
    ) -> None:
        """``__all__``, ``import *`` and hasattr."""
        assert imaginary()[version]["names"] == imaginary()[version]["starred"] == names
        assert imaginary()[version]["has"] == has

    def test_an_import_is_refused_where_an_earlier_version_is_said(self) -> None:
        """``from nki.isa import double``."""
        assert imaginary()["0.99"]["imported"] is imaginary()["auto"]["imported"] is True
        assert imaginary()["0.6"]["imported"][:2] == ["NK608", f"nki.isa.double {EARLY}"]

    def test_signatures_are_those_of_the_version(self) -> None:
        """What help shows is the newest version's."""
        older, newer = imaginary()["0.6"]["signatures"], imaginary()["0.99"]["signatures"]
        assert older[0] == "(dst, src, name=None)"
        assert newer[0] == imaginary()["help"] == "(dst, src, engine=<engine.unknown: 0>, name=None)"
        assert ("negate=True" in older[1], "negate=False" in newer[1]) == (True, True)
        assert ("dtype" in older[2], "dtype" in newer[2]) == (True, False)

    def test_lint_reads_the_version_of_the_option(self) -> None:
        """What a run of the version would refuse, and under ``auto`` what the newest has removed."""
        assert imaginary()["0.6"]["lint"] == [
            f"9 NK608 nki.isa.double {EARLY}",
            f"10 NK609 nisa.tensor_copy: the argument `engine` {EARLY}",
        ]
        assert imaginary()["0.99"]["lint"] == [
            "11 NK608 nki.isa.max8 was removed in NKI 0.99",
            "12 NK608 nki.language.dynamic_range was removed in NKI 0.99",
            "13 NK608 nl.softmax: the argument `dtype` was removed in NKI 0.99",
        ]
        assert imaginary()["auto"]["lint"] == [
            "11 NK618 nisa.max8 was removed in NKI 0.99; it runs because no version is said",
            "12 NK618 nl.dynamic_range was removed in NKI 0.99; it runs because no version is said",
        ]

    def test_the_page_of_what_is_modelled_shows_what_differs(self) -> None:
        """Each row of the table, and the versions."""
        page = imaginary()["page"]
        assert page[0].endswith("The modern `nki` is that of NKI 0.6, 0.7, 0.99,")
        assert "| `tensor_copy(engine)` | 0.99 |  |  |  |  |" in page
        assert "| `tensor_reduce(negate)` |  | 0.99 |  | True |  |" in page
        assert "| `max8` |  | 0.99 |  |  | Use nisa.topk. |" in page


@pytest.mark.nki_version("auto")
def test_a_run_says_its_version() -> None:
    """The argument decides before the option; another text is refused with the choices."""

    def kernel() -> None: ...

    newest = versions.versions_of()[-1]
    assert nkitools.simulate(kernel).settings["nki_version"] == newest
    assert nkitools.simulate(kernel, nki_version="0.6").settings["nki_version"] == "0.6"
    with options.override(nki_version="0.6"):
        assert nkitools.simulate(kernel).settings["nki_version"] == "0.6"
    with pytest.raises(ValueError, match=r"nki_version: must be one of auto, 0\.6, 0\.7, it is '0\.1'"):
        nkitools.simulate(kernel, nki_version="0.1")


class TestFormerFrontEnd:
    """``NKI_COMPILER_FRONTEND``: 0.7 with the language rules of 0.6."""

    @pytest.mark.parametrize("front_end", ["custom", "parser"])
    @pytest.mark.parametrize("version", ["0.7", "auto"])
    def test_it_undoes_what_came_with_the_tracer(
        self, version: str, front_end: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The loops of 0.6 run, with its hint; scalars are not there; the instructions are those of 0.7."""
        monkeypatch.setenv("NKI_COMPILER_FRONTEND", front_end)
        language = options.language(version)
        assert (language.traced, language.snake_topk) == (False, True)

        def kernel() -> None:
            assert not hasattr(nisa, "scalar_load")
            assert hasattr(nisa, "dependency")
            for _ in nl.dynamic_range(2):
                pass

        first = kernel.__code__.co_firstlineno
        found = [each for each in nkitools.simulate(kernel, nki_version=version).findings if each.rule == "NK618"]
        assert [(each.line, each.severity, each.message) for each in found] == [
            (first, "hint", "NKI_COMPILER_FRONTEND=custom is deprecated since NKI 0.7"),
            (first + 3, "hint", "nl.dynamic_range is deprecated since NKI 0.6"),
        ]
        assert found[0].remedy.startswith("The next release drops it")

    def test_0_6_has_no_other_front_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Its kernels were parsed anyway: nothing is said."""
        monkeypatch.setenv("NKI_COMPILER_FRONTEND", "custom")
        assert options.language("0.6").former_front_end is False
        assert options.language("0.7").former_front_end is True

    def test_a_front_end_that_there_is_not(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """ValueError with the choice that AWS documents."""
        monkeypatch.setenv("NKI_COMPILER_FRONTEND", "costum")
        with pytest.raises(ValueError, match="NKI_COMPILER_FRONTEND is 'costum'; choose custom"):
            nkitools.simulate(lambda: None)

    @SINCE_0_7
    def test_lint_says_so_at_the_kernel(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """The same hint."""
        path = tmp_path / "kernel.py"
        path.write_text("import nki\n\n\n@nki.jit\ndef kernel(x):\n    return x\n")
        assert lint([path], interface=Dialects()).findings == []
        monkeypatch.setenv("NKI_COMPILER_FRONTEND", "custom")
        (found,) = lint([path], interface=Dialects()).findings
        assert (found.rule, found.severity, found.message) == (
            "NK618",
            "hint",
            "NKI_COMPILER_FRONTEND=custom is deprecated since NKI 0.7",
        )


def test_a_version_is_a_record() -> None:
    """The same one each time, which cannot be changed; ``auto`` is the newest one, not named."""
    newest = versions.language_of("0.7")
    assert versions.language_of("0.7") is newest
    assert (versions.language_of().name, versions.language_of().is_said) == ("0.7", False)
    assert versions.language_of().strict.name == "0.7"
    with pytest.raises(FrozenInstanceError):
        newest.traced = False  # type: ignore[misc]
    older = versions.language_of("0.6")
    assert {(getattr(older, each), getattr(newest, each)) for each in versions.MEANINGS} == {(False, True)}
    legacy_language = versions.language_of(dialect=versions.LEGACY)
    assert not any(getattr(legacy_language, each) for each in versions.MEANINGS)


def test_a_legacy_run_says_the_version_of_its_dialect() -> None:
    """Whatever the option says of the modern one."""

    @legacy.jit
    def kernel() -> None: ...

    assert nkitools.simulate(kernel, nki_version="0.7", rules="off").settings["nki_version"] == "2.26"


@each("row", [row for row in versions.rows() if row.is_modelled], lambda row: row.short)
def test_every_public_name_has_a_home(row: versions.Row) -> None:
    """The module that the table names defines it, under its own name or the one behind the colon."""
    home, _, inside = row.home.partition(":")
    found: Any = import_module(home)
    for name in (inside or row.name).split("."):
        found = getattr(found, name)


def test_the_cells_of_the_table_mean_something() -> None:
    """Versions are numbers, names of a module come once, and what is gone says what to write instead."""
    rows = versions.rows()
    assert len({(row.module, row.name) for row in rows}) == len(rows)
    for row in rows:
        assert all(each in ("", "?") or each.replace(".", "").isdigit() for each in (row.since, row.until))
        assert row.is_known or row.instead, row


def instructions(modules: Iterable[ModuleType]) -> Iterator[tuple[str, Instruction]]:
    """The instructions that modules define, by their modules and the names that the record has for them."""
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, Instruction) and value.function.__module__ == module.__name__:
                yield f"{module.__name__}.{value.name}", value


def unexported(modules: Iterable[ModuleType]) -> list[str]:
    """The instructions that no row of the table makes public."""
    public = {f"{row.home.partition(':')[0]}.{row.home.partition(':')[2] or row.name}" for row in versions.rows()}
    return [name for name, _ in instructions(modules) if name not in public]


ISA = [import_module(found.name) for found in walk_packages(nkitools.isa.__path__, "nkitools.isa.")]


def test_an_instruction_is_exported() -> None:
    """What is defined in isa/ is public under some version."""
    assert len(list(instructions(ISA))) >= 48
    assert unexported(ISA) == []


def test_an_instruction_that_is_exported_nowhere_is_found() -> None:
    """The test above can fail."""
    source = "def forgotten(check: Check, dst: Dst, src: Src, name=None):\n    ...\n"
    module = ModuleType("nkitools.isa.forgotten")
    exec(source, vars(module))
    vars(module)["forgotten"] = Instruction(vars(module)["forgotten"])
    assert unexported([*ISA, module]) == ["nkitools.isa.forgotten.forgotten"]
