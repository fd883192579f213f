"""The reference pages are generated from the package, so they cannot fall behind it."""

from __future__ import annotations

import linecache
import re
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from docs.generate_cheat_sheet import cheat_sheet
from docs.generate_chips import chip_page
from docs.generate_coverage import MODULES, coverage_page, modelled, not_modelled
from docs.generate_gallery import files, operator_files, operator_purpose, purpose, stem, title
from docs.generate_instructions import instruction_page, names, run_example
from docs.generate_options import option_page
from docs.generate_pictures import finding_picture, timeline_picture
from docs.generate_rules import rule_page
from docs.instruction_examples import EXAMPLES
from kernels import gallery
from nkitools.cli import main
from nkitools.facts import versions
from nkitools.facts.generations import FIELDS, GENERATIONS, TABLES
from nkitools.facts.options import OPTIONS
from nkitools.launch.simulate import simulate
from nkitools.lint.engine import lint
from nkitools.pytest_plugin import fixtures
from nkitools.report.run_counts import tally_of
from nkitools.rules.catalogue import RULES
from nkitools.suggestions.lint_interface import Dialects
from nkitools.targets.imports import stand_in

PACKAGE = Path(__file__).parents[2] / "nkitools"
DOCS = PACKAGE.parent / "docs"
EXPLANATION = DOCS / "explanation"


def test_the_rule_page_tells_every_rule() -> None:
    """Every rule has a heading with its id and slug, which links can name, and its reason and remedy."""
    page = rule_page()
    for rule in RULES.values():
        assert f"({rule.id})=\n### {rule.id} {rule.slug}\n" in page
        assert rule.reason in page
        assert rule.remedy in page


def test_the_option_page_tells_every_option() -> None:
    """Every option stands there under each name that it goes by."""
    page = option_page()
    for option in OPTIONS.values():
        names = {option.ini, option.env, *([option.flag] if option.flag else [])}
        assert all(f"`{name}" in page for name in names)
        assert option.help in page


def test_the_chip_page_shows_every_field_of_every_generation() -> None:
    """Each chip stands there under all its names, and each field with its meaning and one value a generation."""
    page = chip_page()
    assert all(f"`{chip}`" in page for chip in GENERATIONS)
    for name in FIELDS:
        if name not in ("name", "chips"):
            (row,) = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
            _, _, meaning, *values, _ = (cell.strip() for cell in row.split("|"))
            assert meaning
            assert len([value for value in values if value]) == len(TABLES)
    assert "| `moving_fmax_bfloat16` | the same for a bfloat16 result | 512 | 512 | 8192 |" in page


def test_the_coverage_page_tells_what_is_there_and_what_is_not() -> None:
    """Every name of AWS's modules stands there once, as modelled or as not modelled."""
    page = coverage_page()
    for name in MODULES:
        there, refused = modelled(name), not_modelled(name)
        assert not set(there) & set(refused)
        assert all(f"`{member}`" in page for member in (*there, *refused))


def test_the_page_of_what_works_promises_no_function_that_is_refused() -> None:
    """Of the modules that it calls whole nothing is refused by name."""
    promised = (DOCS / "reference" / "status.md").read_text()
    (modules,) = re.findall(r"^\| ([^|]*) \| all public functions of NKI 0\.6", promised, flags=re.MULTILINE)
    for module in re.findall(r"`(nki\.\w+)`", modules):
        rows = versions.names_of(module)
        assert [name for name in not_modelled(module) if rows[name].is_in(versions.language_of("0.6"))] == [], module


def test_the_architecture_page_names_every_room_and_only_files_that_exist() -> None:
    """Every folder of the package is in its table and its picture, and every path on the page is there."""
    page = (EXPLANATION / "architecture.md").read_text()
    picture = (EXPLANATION / "rooms.svg").read_text()
    for room in sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py")):
        assert f"`{room}/`" in page
        assert f">{room}</text>" in picture
    named = set(re.findall(r"`((?:nkitools/|tests/)?[a-z_]+/[a-z_/]+\.(?:py|tsv|toml|json))`", page))
    assert len(named) > 30
    missing = [name for name in named if not any((top / name).exists() for top in (PACKAGE.parent, PACKAGE))]
    assert missing == []


@pytest.mark.parametrize("name", names())
def test_an_instruction_has_a_page(name: str) -> None:
    """Its call, its text, its versions, its rules as links, and an example, which was run."""
    page = instruction_page(name)
    assert page.startswith(f"({name})=\n# nisa.{name}\n")
    assert f"nisa.{name}(" in page
    assert "## NKI versions" in page
    assert set(re.findall(r"\(#((?:NK|PL|CO)\d+)\)", page)) <= set(RULES)
    assert "## Example" in page
    cost = r"[\d,]+ (ns|cycles)|no instruction of its own"
    assert re.search(rf"^\| trn3 \| [a-z]+ \| ({cost}) \|$", page, re.MULTILINE)


def test_the_example_of_an_instruction_computes() -> None:
    """The sum of two tiles, run as the page shows it."""
    run = run_example("tensor_tensor", "trn2")
    first, second = (np.random.default_rng(0) for _ in range(2))
    left, right = first.standard_normal((8, 16), np.float32), first.standard_normal((8, 16), np.float32)
    assert second.standard_normal((8, 16), np.float32).tobytes() == left.tobytes()
    np.testing.assert_array_equal(run.outputs, left + right)


def _largest(x: Any) -> Any:
    return np.sort(x.astype(np.float32).ravel())[-8:]


@pytest.mark.parametrize(
    ("name", "computed", "expected"),
    [
        ("activate2", lambda out: out, lambda x: np.exp(0.5 * x - 1)),
        ("nc_match_replace8", lambda out: out, lambda x: np.where(x >= np.sort(x)[:, -8:-7], 0, x)),
        ("nc_n_gather", lambda out: out, lambda x, indices: np.take_along_axis(x, indices.astype(int), axis=1)),
        ("range_select", lambda out: out[:, 2:9], lambda x, first, end: x[:, 2:9]),
        ("register_alloc", lambda out: out, lambda count: np.full((8, 16), 3.0)),
        ("register_move", lambda out: out, lambda count: [[3]]),
        ("scalar_load", lambda out: out, lambda number, table: table[3:4]),
        ("scalar_store", lambda out: out, lambda number: [[4]]),
        ("sendrecv", lambda out: out, lambda x: np.roll(x, 8, axis=0)),
        ("sendrecv_compute", lambda out: out, lambda x: np.tile(x[:8] + x[8:], (2, 1))),
        ("sequence_bounds", lambda out: out, lambda ids: [[[0, 0, 2, 2, 2, 6], [2, 2, 5, 5, 5, -1]]]),
        ("topk", lambda out: np.sort(out[:8, 0].astype(np.float32)), _largest),
    ],
)
def test_an_example_that_was_written_for_a_page_computes(name: str, computed: Any, expected: Any) -> None:
    """What NumPy computes of the arguments that the page shows."""
    space: dict[str, Any] = {}
    with stand_in("always"):
        exec(EXAMPLES[name].replace("@nki.jit", "").replace("kernel = kernel[2]", ""), space)
    outputs = run_example(name, "trn3").outputs
    np.testing.assert_allclose(computed(outputs), expected(*space["inputs"]), rtol=2e-6)


def test_the_gallery_lists_every_example() -> None:
    """Purpose, source and tests of each; the times are those of the demo."""
    for example in (*gallery.NKI, *gallery.LEGACY, *gallery.PALLAS):
        assert purpose(example).endswith((".", ":", "]")), example.name
        assert files(example).startswith("Source: `kernels/")
    for example in gallery.OPERATORS:
        assert operator_purpose(example).startswith(f"`{example.place.partition(':')[2]}`. "), example.name
        for path in re.findall(r"`([^`]+)`", operator_files(example)):
            assert (DOCS.parent / path).is_file(), path
    worlds = {"": gallery.NKI, "legacy": gallery.LEGACY, "Pallas": gallery.PALLAS, "C++": gallery.OPERATORS}
    stems = {stem(title(example, world)) for world, examples in worlds.items() for example in examples}
    assert len(stems) == sum(map(len, worlds.values()))  # no picture takes the place of another one


def test_the_cheat_sheet_has_limits_and_functions() -> None:
    """One row an instruction with its page, and the functions of nl that kernels call most."""
    page = cheat_sheet()
    assert all(f"| [nisa.{name}](instructions/{name}.md) | " in page for name in names())
    assert all(f"| `nl.{name}` | " in page for name in ("load", "store", "matmul", "exp", "zeros"))
    assert re.search(r"^\| `moving_fmax\w*` \| 512 \| 512 \|( \d+ \|)+$", page, re.MULTILINE)


def test_the_interface_has_the_names_that_people_type() -> None:
    """Every public name of the modules that are imported, and no name of a module behind them."""
    page = (DOCS / "reference" / "api.md").read_text()
    listed = set(re.findall(r"^\.\. auto(?:function|class|exception):: ([\w.]+)(?:\(\))?$", page, re.MULTILINE))
    modules = {
        name: import_module(name) for name in ("nkitools", "nkitools.typing", "nkitools.pallas", "nkitools.customop")
    }
    public = {f"{name}.{each}" for name, module in modules.items() for each in module.__all__}
    whole = {"nkitools.customop", "nkitools.mx", "nkitools.pallas", "nkitools.strategies", "nkitools.__version__"}
    assert listed - public == set()
    in_both = {f"nkitools.typing.{each}" for each in ("Finding", "Print", "Run")}  # under their shorter names
    assert public - listed - whole - in_both == set()


def test_the_interface_has_every_command_and_fixture() -> None:
    """A row each; the fixtures are those without an underscore."""
    page = (DOCS / "reference" / "api.md").read_text()
    assert [name for name in main.commands if f"| `nkitools {name}" not in page] == []
    given = {
        name
        for name, each in vars(fixtures).items()
        if isinstance(each, pytest.FixtureDef) or hasattr(each, "_fixture_function")
    }
    assert "run_kernel" in given
    assert [name for name in given if not name.startswith("_") and f"| `{name}" not in page] == []


def test_the_pictures_show_real_runs() -> None:
    """The finding of the demo's mistake, and a bar for each instruction that takes time; neither needs a network."""
    finding = finding_picture()
    assert (DOCS / "finding.svg").read_text() == finding
    assert "NK403 output tensor" in finding
    assert "never written" in finding
    run = run_example("tensor_tensor", "trn2")
    bars = ElementTree.fromstring(timeline_picture(run)).findall("{http://www.w3.org/2000/svg}rect")
    assert len(bars) == 1 + len(run.instructions)
    for picture in (finding, timeline_picture(run)):
        assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)", picture) == []


def test_each_step_of_the_assignment_says_what_the_page_shows(tmp_path: Path) -> None:
    """The source as it is, with its result returned, and with the last tile: a finding each."""
    page = (DOCS / "how-to" / "assignment.md").read_text()
    linted, *steps = re.findall(r"^```text\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    file = tmp_path / "assignment.py"
    text = (DOCS / "how-to" / "example" / "assignment.py").read_text()
    file.write_text(text)
    (found,) = lint([file], "auto", Dialects()).findings
    assert found.text().endswith(linted.strip())
    x, y = np.random.default_rng(0).standard_normal((2, 300, 64), np.float32)
    text += "    return out\n"
    for source, shown in zip((text, text.replace("x.shape[0] //", "(x.shape[0] + 127) //")), steps, strict=True):
        file.write_text(source)
        linecache.checkcache(str(file))
        names: dict[str, Any] = {}
        with stand_in("always"):
            exec(compile(source, str(file), "exec"), names)
            run = simulate(names["add_rows"], x, y, rules="report")
        first, *_ = tally_of([run], tmp_path).ranked()
        assert "\n".join(first.lines(blocks=True)) == shown.rstrip()


def test_the_members_that_a_page_names_are_there() -> None:
    """A missing one ends the build of the documentation."""
    text = (Path(__file__).parents[2] / "docs" / "reference" / "api.md").read_text()
    named = re.findall(r"^\.\. auto(?:class|exception):: ([\w.]+)\.(\w+).*\n   :members: (.+)", text, re.MULTILINE)
    assert named
    owners = [(getattr(import_module(module), name), members.split(", ")) for module, name, members in named]
    assert [(owner, each) for owner, members in owners for each in members if not _has(owner, each)] == []


def _has(owner: type, name: str) -> bool:
    return hasattr(owner, name) or any(name in vars(each).get("__annotations__", {}) for each in owner.__mro__)
