"""``nkitools estimate --measured FILE``: what `kernel_benchmark` has left beside the estimate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nkitools.cli import main
from nkitools.timing.calibration import local_rows
from tests.cli.test_estimate import KERNEL

MEASURED = {"device_seconds": 2e-05, "device_time": "measured by nrtpy 2.35.30 (SpikeModel, benchmark)"}
ALONE = {"device_time": "not measured: no other core is free for the process that measures"}


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "squares.py"
    path.write_text(KERNEL)
    return str(path)


def left(folder: Path, *told: dict[str, Any]) -> str:
    """A file as pytest-benchmark writes it, with a measurement of each of these facts."""
    info = {"kernel": "square", "target": "neuron", "chip": "trn2", "arguments": "float32[128,4096]"}
    every = [
        {"fullname": f"test_it.py::test_{number}", "stats": {"min": 3e-4}, "extra_info": {**info, **one}}
        for number, one in enumerate(told)
    ]
    path = folder / "out.json"
    path.write_text(json.dumps({"benchmarks": every}))
    return str(path)


def estimated(*arguments: str) -> str:
    return CliRunner().invoke(main, ["estimate", *arguments]).output


def test_the_measured_time_stands_beside_the_estimate(file: str, tmp_path: Path) -> None:
    """The measurement with the arguments of the file, on its chip; the latency joins a calibration."""
    path = left(tmp_path, {**MEASURED, "arguments": "float32[1,1]"}, MEASURED, {**MEASURED, "kernel": "cube"})
    page = estimated(f"{file}::square", "--measured", path, "--join", str(tmp_path / "mine.tsv"))
    assert page.startswith("square on trn2: ")
    assert f"{MEASURED['device_time']} on trn2 (test_it.py::test_1), beside the estimate:" in page
    (row,) = (line.split() for line in page.splitlines() if line.startswith("  latency  "))
    assert row[:3] == ["latency", "20", "us"]
    assert local_rows(tmp_path / "mine.tsv")[0].published_us == pytest.approx(20.0)
    (plain,) = json.loads(estimated(f"{file}::square", "--measured", path, "--json"))
    assert plain["measured"]["latency_us"] == pytest.approx(20.0)
    assert plain["measured"]["round_trip_us"] == pytest.approx(300.0)


def test_a_round_trip_is_no_latency(file: str, tmp_path: Path) -> None:
    """It is shown as what it is, with the reason why there is no more, and joins nothing."""
    path = left(tmp_path, ALONE)
    page = estimated(f"{file}::square", "--measured", path)
    assert f"the time of the device was {ALONE['device_time']}." in page
    assert "A round trip of the host took 300 us and more, which says nothing of the kernel." in page
    assert "a round trip does not join" in estimated(
        f"{file}::square", "--measured", path, "--join", str(tmp_path / "mine.tsv")
    )


def test_what_does_not_fit_is_named(file: str, tmp_path: Path) -> None:
    """Another chip, another shape, another kernel, another file."""
    path = left(tmp_path, {**MEASURED, "arguments": "float32[1,1]"})
    asked = (f"{file}::square", "--measured", path)
    assert "are float32[128,4096] here, and were float32[1,1] where" in estimated(*asked)
    assert "has measurements of square on trn2: name one, --chip" in estimated(*asked, "--chip", "trn1")
    assert "has measurements of square on no chip" in estimated(
        f"{file}::square", "--measured", left(tmp_path, {**MEASURED, "kernel": "cube"})
    )
    assert "is no file of pytest-benchmark's --benchmark-json" in estimated(f"{file}::square", "--measured", file)
