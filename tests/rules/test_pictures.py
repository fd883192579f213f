"""The data rules draw what they speak of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.chip.pictures import UNWRITTEN, picture_of
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.rules.catalogue import RULES
from nkitools.rules.finding import report

DRAWN = ["NK401", "NK402", "NK403", "NK405", "NK502", "NK505"]


@pytest.mark.parametrize(
    ("rule", "source"),
    [
        pytest.param(rule, example.bad, id=f"{rule}-{number}")
        for rule in DRAWN
        for number, example in enumerate(RULES[rule].examples, start=1)
    ],
)
@pytest.mark.parametrize("level", ["error", "report"])
def test_the_bad_examples_of_a_data_rule_are_drawn(play_example: Any, rule: str, source: str, level: str) -> None:
    """With something in it that is wrong, and every sign explained."""
    (picture, *_) = [each.picture for each in play_example(source, level).findings if each.rule == rule]
    assert picture is not None
    signs = set("".join(picture.lines))
    assert signs & {"#", "+"}  # or a mixture, of a single element
    assert signs - {" "} == {sign for sign, _ in picture.meanings}


def test_a_race_is_drawn_with_what_each_program_touches() -> None:
    """Two programs whose rows overlap by 28."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((256, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        first = nl.program_id(0) * 100
        nisa.dma_copy(dst=out[first : first + 128], src=x[first : first + 128])
        return out

    run = nkitools.simulate(kernel, np.ones((256, 8), np.float32), grid=2, rules="report")
    (picture,) = [each.picture for each in run.findings if each.rule == "NK502"]
    assert picture is not None
    assert picture.lines == ("a" * 8, "#" * 8, "b" * 8, "." * 8)
    assert picture.rows == ((0, 99), (100, 127), (128, 227), (228, 255))
    assert dict(picture.meanings) == {".": "neither", "a": "program 0 writes", "b": "program 1 writes", "#": "both"}


def test_an_index_beyond_the_end_is_drawn_along_its_dimension() -> None:
    """What is asked for inside and outside."""
    with nkitools.expect_finding("NK402") as expected:
        nkitools.simulate(lambda x: x[:, 4:10], np.ones((4, 8), np.float32))
    assert expected.finding.picture is not None
    assert expected.finding.picture.lines == ("....oooo##",)


def test_indices_of_a_gather_are_drawn() -> None:
    """Those that name no element of their partition."""

    def kernel(data: Any, indices: Any) -> Any:
        out = nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.shared_hbm)
        found = nl.ndarray((4, 4), dtype=nl.float32)
        nisa.nc_n_gather(dst=found, data=nl.load(data), indices=nl.load(indices))
        nisa.dma_copy(dst=out, src=found)
        return out

    indices = np.zeros((4, 4), np.uint32)
    indices[2, 1:3] = 8
    with nkitools.expect_finding("NK402") as expected:
        nkitools.simulate(kernel, np.ones((4, 8), np.float32), indices)
    picture = expected.finding.picture
    assert picture is not None
    assert picture.lines == ("....", ".##.", "....")
    assert picture.rows == ((0, 1), (2, 2), (3, 3))


def test_of_a_line_only_the_first_findings_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A finding has the picture of its first time; of several findings of a line the first have one."""
    monkeypatch.setattr("nkitools.record.reporter.MAX_PICTURES", 2)
    names = ("a", "a", "b", "c", "d")

    def kernel() -> None:
        for name in names:
            report("NK612", f"tile {name}", picture=lambda: picture_of(np.eye(2, dtype=bool), UNWRITTEN))

    run = nkitools.simulate(kernel, rules="report")
    assert [each.picture is not None for each in run.findings] == [True, False, False, False]
    monkeypatch.setattr("nkitools.record.reporter.MAX_PICTURES", 3)
    run = nkitools.simulate(kernel, rules="report")
    assert [each.picture is not None for each in run.findings] == [True, True, False, False]


def test_what_is_switched_off_is_not_drawn() -> None:
    """Nor is a rule without elements."""
    run = nkitools.simulate(lambda: nisa.memset(nl.ndarray((129, 4), dtype=nl.float32), 0.0), rules="report")
    assert [each.picture for each in run.findings] == [None]
