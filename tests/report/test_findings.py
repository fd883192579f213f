"""Findings as JSON: keys that stay."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

import numpy as np

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.report.findings import finding_as_plain, finding_from_plain
from nkitools.report.run_json import described
from nkitools.rules.facts import COMMON, KNOWN
from nkitools.rules.finding import Finding, report

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "json.md"


def _half(x: np.ndarray) -> object:
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for m in range(1):
        tile = nl.ndarray((4, 6), dtype=nl.float32)
        nisa.dma_copy(dst=tile[:, 0:4], src=x[:, 0:4])
        nisa.dma_copy(dst=result, src=tile)
        del m
    return result


def test_a_finding_has_the_same_keys_always() -> None:
    """The author's place and line, the counters, and the picture of a data rule."""
    run = nkitools.simulate(_half, np.ones((4, 6), np.float32), rules="report")
    (found,) = json.loads(json.dumps(described(run)))["findings"]
    line = _half.__code__.co_firstlineno + 5
    message = found.pop("message")
    assert message.startswith("dma_copy: 8 of 24 elements of tensor `tile` (SBUF, float32 [4, 6]) are read but were")
    assert found == {
        "rule": "NK401",
        "slug": "uninitialised-read",
        "severity": "error",
        "remedy": run.findings[0].remedy,
        "file": __file__,
        "line": line,
        "column": 9,
        "function": "_half",
        "source": "        nisa.dma_copy(dst=result, src=tile)",
        "program": [],
        "loops": {"m": 0},
        "rank": None,
        "facts": {
            "tensor": "tile",
            "memory": "SBUF",
            "dtype": "float32",
            "shape": [4, 6],
            "allocated_at": f"{__file__}:{line - 2}",
            "instruction": "dma_copy",
            "unwritten": 8,
            "elements": 24,
        },
        "count": 1,
        "places": [],
        "last": None,
        "picture": {
            "lines": ["....##"],
            "rows": [[0, 3]],
            "columns": 6,
            "across": "columns",
            "first": 0,
            "meanings": {".": "written", "#": "never written"},
        },
    }


def test_a_finding_comes_back_from_its_description() -> None:
    """As an editor gets it from the process that has run the kernel, without the picture."""

    def kernel() -> None:
        for i in range(4):
            report("NK612", f"turn {i}", facts={"instruction": "load"})

    (found,) = nkitools.simulate(kernel, rules="report").findings
    assert (found.count, found.facts) == (4, {"instruction": "load"})
    assert finding_from_plain(json.loads(json.dumps(finding_as_plain(found)))) == found


def test_every_field_of_a_finding_is_in_the_json() -> None:
    """What a finding knows is told."""
    run = nkitools.simulate(_half, np.ones((4, 6), np.float32), rules="report")
    (found,) = described(run)["findings"]
    assert {field.name for field in fields(Finding)} <= set(found)


def test_the_page_tells_every_key() -> None:
    """Of a report, a run, a finding, a picture and a print."""
    run = nkitools.simulate(_half, np.ones((4, 6), np.float32), rules="report")
    plain = described(run)
    (found,) = plain["findings"]
    keys = {"schema", "test", "outcome", "runs", "reason", *plain, *found, *found["picture"]}
    assert keys <= set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), flags=re.MULTILINE))


def test_the_page_tells_every_fact() -> None:
    """Its name, its type and its meaning, as the package has them."""
    words = {int: "a whole number", float: "a number", str: "a text", tuple: "a list"}
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGE.read_text(), flags=re.MULTILINE))
    for name, (kind, meaning) in (*COMMON.items(), *KNOWN.items()):
        assert rows[name] == f"{words[kind]} | {meaning}"
