"""What a finding suggests to write mends the bad examples of its rule, and stays silent where nothing follows."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nkitools.lint.engine import lint as lint_files
from nkitools.rules.catalogue import RULES
from nkitools.rules.finding import Finding
from nkitools.suggestions import catalogue
from nkitools.suggestions.catalogue import MECHANICAL, mended, suggestions
from nkitools.suggestions.lint_interface import Dialects
from tests.rules.test_examples import chips_of

PlayExample = Callable[..., Any]

# rule: what is suggested for each of its bad examples, '' where the source does not show what is meant.
SUGGESTED = {
    "NK101": ("Handle 128 rows in each turn of a loop", "Handle 128 rows in each turn of a loop"),
    "NK103": ("Contract 64 rows in each turn of a loop", ""),
    "NK111": ("Load the row into each of 128 partitions", "Load the row into each of 2 partitions"),
    "NK201": ("Load `x` first", "Copy `product` to SBUF first"),
    "NK206": ("Leave `engine` out", "Leave `engine` out"),
    "NK303": ("Make `product` in nl.float32", "Make `product` in nl.float32"),
    "NK401": ("Make `tile` with zeros", "Make `tile` with zeros"),
    "NK402": ("End the last tile at x.shape[0]", "Mask with i_f + 1 < x.shape[1]"),
    "NK403": ("Round the number of tiles up", ""),
    "NK407": ("Return `x`", "Return `y`"),
    "NK408": ("Return `out`", ""),
    "NK501": ("Loop over nl.sequential_range", "Loop over nl.sequential_range"),
    "NK503": ("Say accumulate=(k > 0)", ""),
    "NK506": ("Say accumulate=(k > 0)", "Say accumulate=(k > 0)"),
    "NK512": ("Say accumulate=(k > 0)", "Say accumulate=(k > 0)"),
    "NK601": ("Write `nl.add(x_tile, y_tile)`", ""),
    "NK603": ("Divide with //", ""),
    "NK606": ("Leave `engine` out", "Leave `priority` out"),
    "NK609": ("Write `op=`", ""),
    "NK618": ("Write `def loop_body(_):  # NK618`", "Write `def i_body(i):  # NK618`"),
    "NK620": ("Write `mask=(i_p < 100) & (i_f < 60)`", "Write `mask=(i_p < 100) & (i_p >= 0)`"),
}
# Rules that have a remedy for other forms than those of their examples.
ELSEWHERE = {"NK602", "NK604", "NK607", "NK608", "NK615"}


def test_every_rule_with_a_remedy_for_the_text_is_in_the_table() -> None:
    """None is forgotten, and none is claimed."""
    assert set(SUGGESTED) | ELSEWHERE == set(MECHANICAL)


def _findings(rule: str, source: str, play_example: PlayExample, path: Path) -> list[Finding]:
    path.write_text(source)
    linted = lint_files([path], interface=Dialects()).findings
    chip = chips_of(RULES[rule], source)[0]
    played = play_example(source, rules="report", chip=chip, version=RULES[rule].nki_version).findings
    return [each for each in (*linted, *played) if each.rule == rule]


@pytest.mark.parametrize("rule", SUGGESTED)
def test_what_is_suggested_mends_the_example(rule: str, play_example: PlayExample, tmp_path: Path) -> None:
    """After the first suggestion nothing breaks the rule any more; the title says what was done."""
    titles = []
    for number, example in enumerate(RULES[rule].examples[:2]):
        found = _findings(rule, example.bad, play_example, tmp_path / f"bad_{number}.py")
        offered = [each for finding in found for each in suggestions(finding, example.bad)]
        titles.append(offered[0].title if offered else "")
        if offered:
            text = mended(example.bad, offered[0])
            assert text != example.bad
            assert _findings(rule, text, play_example, tmp_path / f"mended_{number}.py") == [], text
    assert tuple(titles) == SUGGESTED[rule]


def _other_words(finding: Finding) -> Finding:
    return replace(finding, message="Whatever is written here is for people", remedy="So is this")


@pytest.mark.parametrize("rule", SUGGESTED)
def test_a_fix_does_not_depend_on_the_words_of_its_finding(
    rule: str, play_example: PlayExample, tmp_path: Path
) -> None:
    """With another message and another remedy each finding of each bad example has the same suggestions."""
    offered = 0
    for number, example in enumerate(RULES[rule].examples):
        for finding in _findings(rule, example.bad, play_example, tmp_path / f"bad_{number}.py"):
            found = suggestions(finding, example.bad)
            assert suggestions(_other_words(finding), example.bad) == found
            offered += len(found)
    assert offered


@pytest.mark.parametrize(
    ("body", "rule", "suggested"),
    [
        ("tile = nl.load(x)\n    nl.store(out, value=nl.add(tile, tile, dtyp=nl.float32))", "NK609", "Write `dtype=`"),
        ("tile = nl.load(x)\n    nisa.memset(tile, valeu=0)", "NK609", "Write `value=`"),
        ("tile = nl.lod(x)", "NK607", "Write `nl.load`"),
        ("tile = nl.load(x)\n    nl.store(out, value=nl.divide(tile, tile))", "NK615", "Multiply by the reciprocal"),
    ],
)
def test_so_it_is_with_the_forms_that_no_example_has(body: str, rule: str, suggested: str, tmp_path: Path) -> None:
    """A misspelt keyword or name, and a function of the simulation alone, as lint finds them."""
    text = (
        "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n\n\n@nki.jit\ndef kernel(x):\n"
        f"    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n    {body}\n    return out\n"
    )
    path = tmp_path / "forms.py"
    path.write_text(text)
    found = [each for each in lint_files([path], interface=Dialects()).findings if each.rule == rule]
    titles = [each.title for finding in found for each in suggestions(_other_words(finding), text)]
    assert titles == [suggested]


def test_a_form_feed_moves_no_fix(tmp_path: Path) -> None:
    """Python ends no line at one, as some editors' sections have it, and neither does the text of an edit."""
    text = (
        "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n\x0c\n# \u2028 \x1c\n@nki.jit\ndef kernel(x):\n"
        "    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n    tile = nl.load(x)\n"
        "    nisa.memset(tile, valeu=0)\n    return out\n"
    )
    path = tmp_path / "forms.py"
    path.write_text(text, encoding="utf-8")
    (found,) = [each for each in lint_files([path], interface=Dialects()).findings if each.rule == "NK609"]
    (suggestion,) = suggestions(found, text)
    assert found.line == 10
    assert mended(text, suggestion) == text.replace("valeu", "value")


@pytest.mark.parametrize("argument", ["op0", "operand0"])
def test_a_required_argument_is_not_left_out(argument: str) -> None:
    """An operator that the chip does not have is no reason to call the instruction without one."""
    call = "nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0, engine=nisa.engine.scalar)"
    text = f"import nki.isa as nisa\nimport nki.language as nl\n\n\ndef kernel(tile):\n    {call}\n"
    facts = {"instruction": "tensor_scalar", "argument": argument}
    finding = Finding.of("NK606", "too new", ("kernel.py", 6, "kernel"), facts=facts)
    assert suggestions(finding, text) == []
    optional = replace(finding, facts={**facts, "argument": "engine"})
    assert [each.title for each in suggestions(optional, text)] == ["Leave `engine` out"]


def test_no_fix_reads_a_message() -> None:
    """Nor the remedy: fixes read facts alone, and no pattern is searched for in a text of nkitools."""
    room = Path(catalogue.__file__).parent
    for path in room.glob("*.py"):
        text = path.read_text()
        names = {node.attr for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)}
        assert not names & {"remedy", "sentence"} or path.name == "lint_interface.py", path
        assert "import re\n" not in text, path
        assert "finding.message" not in text, path
