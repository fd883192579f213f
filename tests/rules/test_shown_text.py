"""Names, prints and messages in a terminal or a log: what would command these is an escape."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest

from nkitools.record.prints.device_print import Print
from nkitools.report.prints import terminal_text
from nkitools.report.run_counts import Tally
from nkitools.rules.finding import Finding, error_of
from nkitools.rules.shown_text import shown, shown_line


def test_every_control_and_bidi_character_is_escaped() -> None:
    """The oracle is Unicode's own table; a tab and the end of a line stay."""
    bidi = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI", "BN"}
    signs = [chr(number) for number in range(0x10000)]
    wanted = [each for each in signs if unicodedata.category(each) in ("Cc", "Cs") and each not in "\t\n"]
    format_signs = [each for each in signs if unicodedata.category(each) == "Cf"]
    wanted += [each for each in format_signs if unicodedata.bidirectional(each) in bidi]
    left = [each for each in wanted if each in shown(each)]
    assert left == []
    assert shown("tile ü → [128, 4] …\t| ▒█\n") == "tile ü → [128, 4] …\t| ▒█\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("::error file=a::b", "\\x3a:error file=a::b"),
        ("a\n \t::set-output::b", "a\n \t\\x3a:set-output::b"),
        ("x[::2], at::Tensor", "x[::2], at::Tensor"),
        ("no ##[group]", "no \\x23#[group]"),
        ("##vso[task.setvariable]", "\\x23#vso[task.setvariable]"),
        ("## a heading", "## a heading"),
        ("\x1b[2J\x9b31m\r", "\\x1b[2J\\x9b31m\\x0d"),
    ],
)
def test_commands_of_logs_are_text(text: str, wanted: str) -> None:
    """GitHub takes `::` first in a line, blanks aside, and both take `##[` anywhere."""
    assert shown(text) == wanted


def test_findings_and_prints_command_nothing() -> None:
    """Neither a file's name, nor a tensor's in the message, nor the prefix of a print."""
    finding = Finding.of("NK101", "`\x1b[2J` has 256", ("a\n::error ::b.py", 3, "f"), remedy="\u202eSplit.")
    assert finding.text() == "a\\n::error ::b.py:3: NK101 `\\x1b[2J` has 256"
    assert "\\u202eSplit." in finding.sentence()
    assert "\x1b" not in str(error_of(finding))
    tally = Tally()
    tally._count(finding, "", "")
    assert not set("\x1b\u202e") & set("".join(tally.ranked()[0].lines()))
    printed = Print("::error ::\x07", np.ones(2, np.float32))
    assert printed.text().startswith("\\x3a:error ::\\x07 [program 0] float32 [2]\n")
    assert terminal_text(printed, 80, color=False).startswith("\\x3a:error ::\\x07 [program 0]")
    assert shown_line("a\nb") == "a\\nb"
