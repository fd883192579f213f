"""The yardstick of derived tolerances: what it says of one kernel, right and with mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import tolerance
from nkitools.precision.runs import Values
from nkitools.targets.imports import stand_in


def values(*numbers: float, dtype: str = "float32") -> list[Values]:
    """Return an output of some numbers."""
    return [Values(np.array(numbers), dtype)]


@pytest.mark.parametrize(
    ("right", "wrong", "bounds"),
    [
        (values(1, 1), values(1, 1 + 2e-4), 1.0),  # 1e-4 relative, and 1e-4 of the root mean square
        (values(1, 1), values(1, 1 + 4e-3), 20.0),
        (values(1, 1, dtype="bfloat16"), values(1, 1.4, dtype="bfloat16"), 10.0),
        (values(1, 1), values(1, 1 + 1e-13), 0.0),
        (values(1, 1), values(1, np.nan), np.inf),
        (values(1, 1), values(1), np.inf),
        (values(1, dtype="int32"), values(2, dtype="int32"), np.inf),
    ],
)
def test_the_distance_of_two_outputs_is_counted_in_bounds(right: Any, wrong: Any, bounds: float) -> None:
    """In bounds of the output's dtype; another shape, and NaN elsewhere, are infinitely far."""
    assert tolerance.distance(right, wrong) == pytest.approx(bounds, rel=1e-6)


def test_a_kernel_and_its_mutants_are_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The kernel passes; each mutant has a line, and one that halves the result counts and dies by its numbers."""
    listed = tmp_path / "mutants.tsv"
    with stand_in("always"):
        assert tolerance.main(["layer_norm", "--seeds", "2", "--list", str(listed)]) == 0
    shown = capsys.readouterr().out
    counts = json.loads(shown[shown.index("{\n") :])
    rows = [line.split("\t") for line in listed.read_text().splitlines()]
    assert (counts["right kernels"], counts["right kernels that fail"], counts["right kernels undecided"]) == (1, 0, 0)
    assert {row[0] for row in rows} == {"layer_norm"}
    assert counts["mutants"] == len(rows) == tolerance.MUTANTS
    kinds = [row[5] for row in rows]
    names = ("that only raise", "that are equivalent", "below ten bounds", "that count")
    assert [kinds.count(each) for each in ("raises", "equivalent", "small", "counts")] == [
        counts[f"mutants {name}"] for name in names
    ]
    assert counts["mutants that count"] == counts["of these die by numbers"] > 0
    for row in rows:
        assert (float(row[4]) > tolerance.TIMES) == (row[5] in ("counts", "raises"))


def test_an_unknown_kernel_is_refused() -> None:
    """By its name."""
    with pytest.raises(SystemExit, match="no kernel of the gallery without ranks is called nonsense"):
        tolerance.main(["nonsense"])
