"""What a finding suggests to write mends the bad examples of its rule, and stays silent where nothing follows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nkitools.lint.engine import lint as lint_files
from nkitools.rules.catalogue import RULES
from nkitools.rules.finding import Finding
from nkitools.suggestions.catalogue import MECHANICAL, mended, suggestions
from nkitools.suggestions.lint_interface import Dialects
from tests.rules.test_examples import chips_of

PlayExample = Callable[..., Any]

# rule: what is suggested for each of its bad examples, '' where the source does not show what is meant.
SUGGESTED = {
    "NK101": ("Handle 128 rows in each turn of a loop", "Handle 128 rows in each turn of a loop"),
    "NK103": ("Contract 128 rows in each turn of a loop", ""),
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
