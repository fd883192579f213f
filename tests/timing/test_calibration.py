"""The model is as good as it says: its figures over the published latencies, and the number of its knobs."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from nkitools.facts.generations import GENERATIONS
from nkitools.timing.calibration import (
    OUTSIDE_FACTOR,
    UNSEEN_FACTOR,
    band,
    calibration_rows,
    family_band,
    family_bands,
    outside,
    quality,
    variant_pairs,
)
from nkitools.timing.knobs import KNOBS, Knobs, knobs_of
from nkitools.timing.likeness import Likeness


def test_eight_knobs_are_fitted_two_of_them_by_generation() -> None:
    """No knob beyond the eight, and none that belongs to a kernel."""
    assert len(fields(Knobs)) == 8
    assert len(KNOBS["common"]) == 6
    assert all(len(each) == 2 for each in KNOBS["by_generation"].values())
    assert vars(knobs_of(GENERATIONS["trn3"])) == vars(knobs_of(GENERATIONS["trn2"]))


def test_forty_rows_count_and_others_are_variants() -> None:
    """All published latencies are there, each with an estimate; of the others one is flagged."""
    rows, good = calibration_rows(), quality()
    assert len(rows) == good.rows + good.not_fitted + 1
    assert good.rows == 40
    assert [row.id for row in rows if not row.counts and not row.variants_of] == ["autocomp/4_conv1d/06"]
    assert all(row.estimate_us > 0 and row.left_out_us > 0 for row in rows)


def test_the_figures_of_the_model_hold() -> None:
    """Median error at most 12 %, nine of ten within 35 %, rank correlation at least 0.97, families left out 18 %."""
    good = quality()
    assert good.median <= 0.12
    assert good.p90 <= 0.35
    assert good.rank >= 0.97
    assert good.left_out_median <= 0.18
    assert good.not_fitted_median <= 0.15


def test_the_order_of_published_variants_is_right() -> None:
    """At least 17 of 20 pairs of variants that differ by more than a tenth, and of those that no fit has used."""
    pairs = variant_pairs()
    others = [pair for pair in pairs if not (pair.slow.counts and pair.fast.counts)]
    assert len(others) >= 30
    assert sum(pair.is_right for pair in others) >= 0.85 * len(others)
    assert all(pair.slow.published_us > 1.1 * pair.fast.published_us for pair in pairs)
    assert all((pair.slow.family, pair.slow.chip) == (pair.fast.family, pair.fast.chip) for pair in pairs)
    assert sum(pair.is_right for pair in pairs) >= 0.85 * len(pairs)


def test_the_band_holds_eight_of_ten_rows() -> None:
    """At least as many published latencies lie between its factors: of those that are fitted, and of the others."""
    lower, upper = band(GENERATIONS["trn1"])
    for counts in (True, False):
        rows = [row for row in calibration_rows() if row.counts is counts]
        assert sum(lower <= row.published_us / row.estimate_us <= upper for row in rows) >= 0.8 * len(rows)


def test_a_kernel_unlike_the_calibrated_ones_has_a_wider_band() -> None:
    """Each respect widens it on both sides by the same factor; integers, float32 and bfloat16 are none."""
    known = Likeness(
        dtypes=frozenset({"float32", "bfloat16", "int32", "uint8"}),
        cores=1,
        latency_us=100.0,
        overlap=2.0,
        tile_elements=128 * 512,
    )
    assert outside(known) == ()
    unlike = {"dtypes": frozenset({"float8_e4m3", "float16", "float32"}), "cores": 2, "latency_us": 1e6}
    assert outside(replace(known, **unlike)) == (
        "dtypes float16, float8_e4m3",
        "2 cores",
        "a latency beyond the published ones",
    )
    assert outside(replace(known, overlap=100.0)) == ("an overlap of instructions beyond the published ones",)
    assert outside(replace(known, tile_elements=1e9)) == ("sizes of tiles beyond the published ones",)
    assert all(row.overlap > 0 and row.tile_elements > 0 for row in calibration_rows())
    trn2 = GENERATIONS["trn2"]
    (lower, upper), (wide_lower, wide_upper) = band(trn2), band(trn2, 2)
    assert wide_lower == pytest.approx(lower / OUTSIDE_FACTOR**2)
    assert wide_upper == pytest.approx(upper * OUTSIDE_FACTOR**2)


def test_the_band_is_that_of_the_measured_kernels_of_the_family() -> None:
    """A family that was measured has its own band, and one that was not has a wider one than all, where others were."""
    trn1, trn2 = GENERATIONS["trn1"], GENERATIONS["trn2"]
    matmul = family_bands()["gen3", "modern, matmul"]
    lower, upper, said = family_band(trn2, "modern, matmul")
    assert (lower, upper) == (min(matmul.lower, 1) / UNSEEN_FACTOR, max(matmul.upper, 1) * UNSEEN_FACTOR)
    assert said == f"the band is that of {matmul.rows} measured kernels (modern, matmul)"
    assert lower > band(trn2)[0]
    assert upper < band(trn2)[1]
    assert family_band(trn2, "modern, matmul", 1)[:2] == pytest.approx((lower / OUTSIDE_FACTOR, upper * OUTSIDE_FACTOR))
    *wide, said = family_band(trn2, "modern, activation")
    assert tuple(wide) == band(trn2, 1)
    assert "no kernel of this family" in said
    assert family_band(trn1, "legacy, matmul") == (*band(trn1), "")
