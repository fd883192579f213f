"""Answers to agents that would be too long."""

from __future__ import annotations

import json
from typing import Any

from nkitools.serve.bounded_answers import MOST_BYTES, bounded, compact


def size(plain: Any) -> int:
    return len(compact(plain).encode())


def test_a_short_answer_stays_as_it_is() -> None:
    """Nothing is left out, and nothing is said of it."""
    found = {"text": "a" * 3_900, "rows": [1, 2]}
    assert bounded(found) == found


def test_the_longest_part_loses_its_end_wherever_it_stands() -> None:
    """What is left begins as it did; bytes count, not letters, and the rest of the answer stays whole."""
    rows = [{"row": name, "why": "\u2588" * 1_000} for name in ("given", "values")]
    found = {"rows": rows, "outcome": "fail"}
    kept = bounded(found)
    assert size(found) > size(kept) <= MOST_BYTES + len('{"left_out":{"why":1000}}')
    assert [each["row"] for each in kept["rows"]] == ["given", "values"]
    assert all(each["why"] == "\u2588" * len(each["why"]) and each["why"] for each in kept["rows"])
    assert kept["left_out"] == {"why": 2_000 - sum(len(each["why"]) for each in kept["rows"])}
    assert size(found) == len(json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode())


def test_one_finding_is_never_left_out() -> None:
    """A list of one keeps it, however long the answer is then."""
    kept = bounded({"findings": [{"message": "m" * 9_000}], "text": "t" * 9_000})
    assert len(kept["findings"]) == 1
    assert len(kept["text"]) == 1
