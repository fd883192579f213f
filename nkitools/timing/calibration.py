"""The quality of estimates: the published latencies that the model was fitted on, beside its estimates."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import combinations
from math import ceil
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from nkitools.facts.generations import Generation
from nkitools.record.whole_file import write_whole
from nkitools.timing.knobs import is_calibrated

if TYPE_CHECKING:
    from nkitools.timing.likeness import Likeness

UNCALIBRATED_FACTOR = 2.0  # how much wider the band of a generation without published latencies is
UNSEEN_FACTOR = 1.3  # how much wider than that of the fitted kernels a band is that holds eight of ten others
OUTSIDE_FACTOR = 1.5  # how much wider it is for each respect in which a kernel is unlike the calibrated ones
PAIR_FACTOR = 1.1  # how far apart the published latencies of two variants must be for their order to count
_SLACK = 1.05  # how far beyond the published kernels a kernel still counts as like them
CALIBRATED_DTYPES = frozenset({"float32", "bfloat16"})  # those of the published kernels


@dataclass(frozen=True, kw_only=True)
class CalibrationRow:
    """A published latency, and the estimate of its kernel."""

    id: str  # of the row, with its source's name
    family: str  # the algorithm, over all sources and shapes
    chip: str  # the chip that it was measured on
    shape: str  # of the kernel's data
    dtype: str  # of the kernel's data
    source: str  # where the kernel is published
    published_us: float  # the published latency
    estimate_us: float  # by the fitted model
    left_out_us: float  # by a model that was fitted without the row's family
    counts: bool  # whether the row is fitted and counted; others are shown, and show the order of variants
    variants_of: str  # what its source optimised in several steps, with one shape on one chip; '' for a single kernel
    overlap: float = 0.0  # how many of its instructions are under way at once, on average; 0 where that is not kept
    tile_elements: float = 0.0  # of the largest operand of an instruction, on average; 0 where that is not kept

    @property
    def error(self) -> float:
        """Return how far the estimate is off, as a share of the published latency."""
        return self.estimate_us / self.published_us - 1

    @property
    def left_out_error(self) -> float:
        """Return the same of the model that was fitted without the row's family."""
        return self.left_out_us / self.published_us - 1


@dataclass(frozen=True, kw_only=True)
class Quality:
    """The errors of the estimates of all rows, as shares of the published latencies."""

    rows: int  # how many count
    median: float  # of their errors without signs
    p90: float  # nine of ten errors are at most as large
    left_out_median: float  # of the errors of models that were fitted without the row's family
    rank: float  # rank correlation of estimates and published latencies
    not_fitted: int  # how many other rows there are of variants, which no fit has used
    not_fitted_median: float  # of the errors of these rows


class FamilyBand(NamedTuple):
    """The measured kernels of a family: how many, and between which factors of the estimate eight of ten lie."""

    rows: int
    lower: float
    upper: float


@cache
def calibration_rows() -> tuple[CalibrationRow, ...]:
    """Return all rows of the calibration."""
    return _rows_of(files("nkitools.timing").joinpath("calibration.tsv").read_text())


def local_rows(file: Path) -> tuple[CalibrationRow, ...]:
    """Return the rows of a calibration file of the user's own; ValueError for a file of another form."""
    try:
        return _rows_of(file.read_text())
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{file} is no calibration file of `nkitools estimate --measured`: {error}") from None


def join(file: Path, row: CalibrationRow) -> tuple[CalibrationRow, ...]:
    """Write a row into a calibration file, in place of one with its id, and return all rows of the file."""
    rows = [each for each in (local_rows(file) if file.exists() else ()) if each.id != row.id]
    text = io.StringIO()
    writer = csv.DictWriter(text, [*vars(row)], delimiter="\t", lineterminator="\n")
    writer.writeheader()
    for each in (*rows, row):
        writer.writerow({**vars(each), "counts": "yes" if each.counts else "no"})
    write_whole(file, text.getvalue().encode())
    return (*rows, row)


def _rows_of(text: str) -> tuple[CalibrationRow, ...]:
    return tuple(
        CalibrationRow(
            id=row["id"],
            family=row["family"],
            chip=row["chip"],
            shape=row["shape"],
            dtype=row["dtype"],
            source=row["source"],
            published_us=float(row["published_us"]),
            estimate_us=float(row["estimate_us"]),
            left_out_us=float(row["left_out_us"]),
            counts=row["counts"] == "yes",
            variants_of=row["variants_of"],
            overlap=float(row.get("overlap") or 0),
            tile_elements=float(row.get("tile_elements") or 0),
        )
        for row in csv.DictReader(text.splitlines(), delimiter="\t")
    )


@cache
def quality() -> Quality:
    """Return how good the estimates of the calibration's rows are."""
    rows = [row for row in calibration_rows() if row.counts]
    others = [row for row in calibration_rows() if row.variants_of and not row.counts]
    errors = sorted(abs(row.error) for row in rows)
    return Quality(
        rows=len(rows),
        median=median(errors),
        p90=errors[ceil(0.9 * len(errors)) - 1],
        left_out_median=median(abs(row.left_out_error) for row in rows),
        rank=_rank_correlation([row.estimate_us for row in rows], [row.published_us for row in rows]),
        not_fitted=len(others),
        not_fitted_median=median(abs(row.error) for row in others),
    )


@dataclass(frozen=True, kw_only=True)
class VariantPair:
    """Two variants of one kernel whose published latencies differ clearly."""

    slow: CalibrationRow  # the one with the longer published latency
    fast: CalibrationRow  # the other one

    @property
    def is_right(self) -> bool:
        """Return whether the estimates have the order of the published latencies."""
        return self.fast.estimate_us < self.slow.estimate_us


@cache
def variant_pairs() -> tuple[VariantPair, ...]:
    """Return all pairs of variants of one kernel whose published latencies differ by more than a tenth."""
    rows = sorted((row for row in calibration_rows() if row.variants_of), key=lambda row: row.published_us)
    return tuple(
        VariantPair(slow=slow, fast=fast)
        for fast, slow in combinations(rows, 2)
        if fast.variants_of == slow.variants_of and slow.published_us > PAIR_FACTOR * fast.published_us
    )


def outside(run: Likeness) -> tuple[str, ...]:
    """Return the respects in which a kernel lies outside the calibration."""
    rows = [row for row in calibration_rows() if row.counts]
    others = sorted(each for each in run.dtypes - CALIBRATED_DTYPES if "float" in each)
    found = [f"dtypes {', '.join(others)}"] if others else []
    if run.cores > 1:
        found.append(f"{run.cores} cores")
    for name, value, published in (
        ("a latency", run.latency_us, [row.published_us for row in rows]),
        ("an overlap of instructions", run.overlap, [row.overlap for row in rows]),
        ("sizes of tiles", run.tile_elements, [row.tile_elements for row in rows]),
    ):
        if not min(published) / _SLACK <= value <= max(published) * _SLACK:
            found.append(f"{name} beyond the published ones")
    return tuple(found)


def band(chip: Generation, points: int = 0) -> tuple[float, float]:
    """Return the factors of an estimate between which eight of ten latencies of kernels lie that no fit has used.

    ``points``: in how many respects the kernel lies outside the calibration; each respect widens the band.
    """
    factor = UNSEEN_FACTOR * OUTSIDE_FACTOR**points * (1.0 if is_calibrated(chip) else UNCALIBRATED_FACTOR)
    ratios = sorted(row.published_us / row.estimate_us for row in calibration_rows() if row.counts)
    tenth = len(ratios) // 10
    lower, upper = min(ratios[tenth], 1.0), max(ratios[-1 - tenth], 1.0)
    return lower / factor, upper * factor


@cache
def family_bands() -> dict[tuple[str, str], FamilyBand]:
    """Return the measured families by the short name of a generation and what their kernels contain."""
    text = files("nkitools.timing").joinpath("families.tsv").read_text()
    rows = csv.DictReader(text.splitlines(), delimiter="\t")
    return {
        (row["generation"], row["family"]): FamilyBand(
            rows=int(row["rows"]), lower=float(row["lower"]), upper=float(row["upper"])
        )
        for row in rows
    }


def family_band(chip: Generation, family: str, points: int = 0) -> tuple[float, float, str]:
    """Return the factors of an estimate as `band` does, for kernels of a family, and what they are of.

    They are those of the measured kernels of the family. A family that was not measured on a generation on which others
    were has a wider band than all kernels together.
    """
    found = family_bands().get((chip.short_name, family))
    if found is not None:
        factor = UNSEEN_FACTOR * OUTSIDE_FACTOR**points
        said = f"the band is that of {found.rows} measured kernels ({family})"
        return min(found.lower, 1.0) / factor, max(found.upper, 1.0) * factor, said
    if chip.short_name not in {generation for generation, _ in family_bands()}:
        return *band(chip, points), ""
    return *band(chip, points + 1), f"the band is wider: no kernel of this family ({family}) was measured"


def _rank_correlation(first: list[float], second: list[float]) -> float:
    """Return Spearman's rank correlation; equal values share the mean of their ranks."""
    import numpy as np

    return float(np.corrcoef(_ranks(first), _ranks(second))[0, 1])


def _ranks(values: list[float]) -> list[float]:
    ordered = sorted(values)
    return [(ordered.index(value) + len(ordered) - 1 - ordered[::-1].index(value)) / 2 for value in values]
