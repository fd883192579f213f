"""`nkitools doctor --hardware` on (fake) instances: what its one file says, and what it must not say."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from nkitools.cli import hardware_report
from tests.cases import FULL, each
from tests.fakes import machines

REPOSITORY = Path(__file__).parents[2]
HIDDEN = {"mallory": "<user>", "build7": "<host>", "/srv/m": "<path>"}


@each(
    "line, shown",
    [
        ("File '/home/mallory/k.py', line 3", "File '<path>k.py', line 3"),
        ("~/secret/x.neff at build7.corp", "<path>x.neff at <host>.corp"),
        ("cd /srv/m, then /home/mallory", "cd <path>, then <path>"),
        ("mallory's /tmp", "<user>'s <path>"),
        ("opt=/opt/aws/nki.py 10.0.3.17 (ip-10-0-3-17.ec2.internal)", "opt=<path>nki.py <address> (<address>)"),
        ("1/2 of 3 / 4, float32[2,4], 2.14.3.0, mallorys", "1/2 of 3 / 4, float32[2,4], 2.14.3.0, mallorys"),
    ],
)
def test_what_is_private_is_taken_out(line: str, shown: str) -> None:
    """Paths but for the names of files, addresses, and the words given; what only looks like it stays."""
    assert hardware_report.scrubbed([{line: line}], HIDDEN) == [{shown: shown}]


@pytest.mark.process
def test_a_machine_without_a_device_is_told_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The file has no run then, and the command says why before it asks to send the file in."""
    monkeypatch.setenv("NKITOOLS_SYSROOT", str(tmp_path / "root"))
    said: list[str] = []
    file = hardware_report.write_report(tmp_path, said.append)
    assert json.loads(file.read_text())["runs"] == []
    assert [each.partition(":")[0] for each in said] == ["no kernel runs here"]
    assert "no NeuronCore: found no device node" in said[0]


@pytest.mark.process
@pytest.mark.soak
def test_one_file_says_what_is_true_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each way with each degree: agreement with NumPy, errors in their own words, times, versions; nothing private.

    The full form has torch's native backend too; where torch is not installed that is no way, and the file says so.
    """
    fakes = ("native", "nrtpy", "aws") if FULL else ("nrtpy", "aws")  # a way with a degree takes two processes
    driver = {"instance": "Trn2", "architecture": "NCv3"} if FULL else {}
    chip = "trn2" if FULL else "inf2"
    # Of two logical cores of two physical ones the second is free for the process that measures the device.
    machines.neuron_root(tmp_path / "root", devices=2 if FULL else 1, **driver)
    for name in (
        "PYTEST_XDIST_WORKER",
        "NEURON_LOGICAL_NC_CONFIG",
        "NEURON_RT_VISIBLE_CORES",
        "NEURON_PLATFORM_TARGET_OVERRIDE",
    ):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "NKITOOLS_SYSROOT": str(tmp_path / "root"),
        "LOGNAME": "mallory",
        "FAKE_NEURON": "strict",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", machines.packages(*fakes, str(REPOSITORY)))
    command = [sys.executable, "-m", "nkitools", "doctor", "--hardware", str(tmp_path / "mallory")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    text = (tmp_path / "mallory" / hardware_report.FILE).read_text()
    told: dict[str, Any] = json.loads(text)
    has_torch = find_spec("torch") is not None
    ways = ("numpy", "torch") if FULL and has_torch else ("numpy",)
    degrees = (1, 2) if FULL else (1,)
    assert [(run["way"], run["degree"]) for run in told["runs"]] == [(way, each) for each in degrees for way in ways]
    for run in told["runs"]:
        tests = {test["name"]: test for test in run["tests"]}
        log = "\n".join(run["log"])
        for side in ("sim", "hw"):
            for kernel in ("double", "softmax"):
                test = tests[f"test_agrees[{side}-{kernel}-{run['way']}]"]
                assert test["outcome"] == "passed", log
                assert float(test["recorded"]["greatest_error"]) < 1e-4
        for name, code in (("out_of_bounds", "NRT_EXEC_OOB"), ("compile_error", "NCC_INLA001")):
            test = tests[f"test_{name}[hw-{run['way']}]"]
            assert (test["outcome"], code in test["said"]) == ("failure", True), log
        assert "NK402" in log, "codes are explained"
        assert f" on {chip} " in tests[f"test_time[sim-{run['way']}]"]["said"]
        (time,) = run["times"]
        assert time["round_trip_seconds"]["min"] > 0
        assert time["device_time"].startswith("measured by nrtpy 2.35.30")
        assert time["device_seconds"] == pytest.approx(25e-6)
        assert time["estimate_lower_seconds"] < time["estimate_upper_seconds"]
    assert told["facts"]["instance_type"] == driver.get("instance", "Inf2")
    for private in (
        "mallory",
        socket.gethostname(),
        str(tmp_path),
        str(Path.home()),
        sys.prefix,
        os.getcwd(),
        "/dev/",
        "/usr/",
    ):
        assert private not in text
