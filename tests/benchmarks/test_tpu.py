"""The benchmark of TPU times: what it reads, and what it fits."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

pytest.importorskip("jax")

from benchmarks.chip.tpu import _BEGIN, Counted, Row, figure, fitted, lines, microseconds, read
from nkitools.pallas.counted_time import Parts


def test_rows_are_read_by_chip_and_kernel_with_their_half(tmp_path: Path) -> None:
    """The median of the times counts; the hash of a problem's key says whether it judges."""
    (tmp_path / "tpu_v6_lite").mkdir()
    measured = {"evaluation_times_ms": [0.3, 0.1, 0.2]}
    problems = {f'{{"q": {number}}}': {'{"block": 8}': measured} for number in range(8)}
    (tmp_path / "tpu_v6_lite" / "pallas_mosaic_tpu_flash_attention.json").write_text(json.dumps(problems))
    (tmp_path / "tpu_v6_lite" / "dot_product_attention.json").write_text("not read")
    rows = list(read(tmp_path))
    assert {(row.chip, row.kernel, row.us) for row in rows} == {("v6e", "flash_attention", 200.0)}
    assert [row.judges for row in rows] == [sha256(key.encode()).digest()[3] % 2 == 1 for key in problems]
    assert len({row.judges for row in rows}) == 2


def test_errors_and_order_are_counted() -> None:
    """Errors are 10, 0 and 50 %; two of three pairs are in order, of which none is within 10 %."""
    assert figure([(100.0, 110.0), (200.0, 200.0), (300.0, 150.0)]) == (
        "3 rows, median error 10.0%, nine of ten within 50.0%, 2 of 3 pairs more than 10 % apart in order (66.7%)"
    )
    rows = [Row("v5e", "ragged_dot", "{}", "{}", us) for us in (100.0, 105.0)]
    assert next(iter(lines(rows, [1.0, 2.0]))).endswith("0 of 0 pairs more than 10 % apart in order (0.0%)")


def test_rates_that_made_the_times_are_found_again() -> None:
    """Rows made by known rates are met within 2 % by the fitted ones; what no row shows stays as it was."""
    law = {**_BEGIN, "product": 1.3, "step_us": 0.45}
    found = [Counted((Parts(100.0 * n, 0.0, 1.0, 50.0 * (9 - n)),), 0.0, ("products",)) for n in range(1, 9)]
    rows = [(Row("v5e", "ragged_dot", str(n), "{}", microseconds(each, law)), each) for n, each in enumerate(found)]
    mine = fitted(rows)
    assert [microseconds(each, mine) for each in found] == pytest.approx([row.us for row, _ in rows], rel=0.02)
    assert mine["around"] == _BEGIN["around"]
    assert fitted(rows, {"step_us": 0.45})["step_us"] == 0.45
