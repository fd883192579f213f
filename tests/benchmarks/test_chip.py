"""The judge by published measurements of chips: its rows, its figures, and the tables that it writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.chip import left_out, pages
from benchmarks.chip.cases import plan, subset, table
from benchmarks.chip.figures import Judged, figures, judged_rows
from benchmarks.chip.judged import Result, judged, read
from nkitools.targets.imports import stand_in

ROWS, CASES = plan()


def test_the_tables_of_the_documents_are_those_of_the_stored_results() -> None:
    """Each case has a stored result, and README.md, the page and its picture show what the tool makes of them."""
    stored = read()
    assert list(stored) == list(CASES)
    for path, text in pages.documents(judged_rows(ROWS, stored)).items():
        assert path.read_text() == text, f"{path.name}: make chip ARGS=--all"


def test_the_page_of_the_tables_counts_them() -> None:
    """Each table stands there with the number of its rows, and the judged ones are as many as it says."""
    text = (pages.ROOT / "benchmarks" / "chip" / "tables" / "README.md").read_text()
    for name in ("verdicts", "latencies", "spills", "sums"):
        assert f"| {name}.tsv | {len(table(name))} |" in text
    judged_of = {part: sum(each.part == part for each in ROWS) for part in ("verdict", "blocked", "time", "sums")}
    assert f"| {judged_of['verdict'] + judged_of['blocked']}: the others" in text
    assert f"| {judged_of['time']}: the others" in text
    assert f"| {judged_of['sums']}: three" in text


def test_the_ordinary_run_has_something_of_everything() -> None:
    """All small kernels and sums; of each family at least three rows, or all; of the whole less than a third."""
    taken = subset()
    assert taken <= set(CASES)
    assert len(taken) < len(CASES) / 3
    families: dict[Any, list[bool]] = {}
    for row in ROWS:
        families.setdefault((row.part, row.family), []).append(set(row.keys) <= taken)
    for (part, family), each in families.items():
        least = len(each) if part in ("verdict", "sums") else min(3, len(each))
        assert sum(each) >= least, family


SMALL = (
    "verdict product_of_tiles ((128, 64), (128, 512))",
    "verdict pool_window_loads ((4, 8, 8), 2)",
    "verdict pool_index_to_tile ((4, 8, 8), 2)",
    "verdict pool_wide_destination ((4, 8, 8), 2)",
    "blocked 4096x512x1024 1,2,4",
)


@pytest.mark.parametrize("key", SMALL)
def test_a_small_kernel_is_judged_as_the_device_did(key: str) -> None:
    """Right or refused as the row says; where bytes were counted, and nothing spilled, the same bytes."""
    with stand_in("always"):
        result = judged(key)
    (row, *_) = (each for each in ROWS if each.keys == (key,))
    assert result.verdict == row.cells["verdict"]
    if row.cells["bytes"].isdigit() and not row.extra_bytes:
        assert result.bytes == row.cells["bytes"]


@pytest.mark.parametrize("key", [key for key in CASES if key.startswith("sums chip")])
def test_the_published_sums_have_the_bits_of_the_chip(key: str) -> None:
    """All 104, in the order of elements."""
    with stand_in("always"):
        found = judged(key).bits.split()
    assert found == [row.cells["device_hex"] for row in ROWS if key in row.keys]
    assert found


def _timed(chip_us: float, own_us: float, extra: int = 0) -> Judged:
    (row, *_) = (each for each in ROWS if each.part == "blocked" and each.cells["verdict"] == "correct")
    cells = row.cells | {"us": str(chip_us), "floor_bytes": "100", "bytes": str(100 + extra)}
    return Judged(row._replace(cells=cells), (Result("correct", us=str(own_us), bytes="110"),))


def test_figures_of_rows_that_are_known() -> None:
    """Counts, medians and orders of four rows, worked out by hand."""
    made = figures([_timed(100, 110), _timed(200, 180), _timed(205, 300), _timed(50, 50, extra=20)])
    found = {(each.kind, each.what.split(",")[0].split(":")[0]): each for each in made}
    assert (
        found["verdicts", "settings of a blocked matmul that ran and were right"].agreement == "same verdict in 4 of 4"
    )
    assert found["bytes", "bytes that spilling added"].agreement == "median error 50%"  # 10 bytes in place of 20
    assert found["bytes", "bytes to and from HBM where nothing spilled"].agreement == "equal in 0 of 3"
    (time, _) = (each for each in made if each.kind == "time")
    # Ratios 1.1, 0.9, 1.46; of the pairs 100-200 and 100-205 both stand in the order, 200-205 are too near to count.
    assert time.agreement == "model to chip 1.10, error median 10%, 90% below 46%, order 2 of 2"
    assert np.isclose(300 / 205 - 1, 0.463, atol=1e-3)


def test_a_document_without_marks_is_refused() -> None:
    """Rather than written over or left as it is."""
    with pytest.raises(ValueError, match="no marks"):
        pages.rewritten("# A page\n", "| |")


def test_stored_estimates_of_all_structures_have_those_of_the_model() -> None:
    """Every timed case has an estimate by every combination, and the one that is in use gives the stored results."""
    found, stored = left_out.read(), read()
    timed = {key for each in left_out.timed() for key in each.row.keys}
    assert set(found) == timed
    for key, each in found.items():
        dialect = left_out.dialect_of(key)
        assert list(each) == list(left_out.models(dialect)), key
        assert each[left_out.NOW[dialect]] == pytest.approx(float(stored[key].us), rel=1e-4), key


def test_the_choice_without_a_family_or_a_problem_does_not_see_it() -> None:
    """Of two models the one that is right on the other rows is taken; the plainer one where these do not tell."""
    rows = [each for each in left_out.timed() if left_out.dialect_of(each.row.keys[0]) == "modern"]
    plain, *_, last = left_out.models("modern")
    spilled = [each for each in rows if each.row.extra_bytes > 0]
    found = {
        each.row.keys[0]: dict.fromkeys(left_out.models("modern"), 1.5 * float(each.row.cells["us"])) for each in rows
    }
    assert left_out.best(rows, found, "modern") == plain
    for each in spilled:
        found[each.row.keys[0]][last] = float(each.row.cells["us"])
    assert left_out.best(rows, found, "modern") == last
    assert left_out.best([each for each in rows if each not in spilled], found, "modern") == plain
