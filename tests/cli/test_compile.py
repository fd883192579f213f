"""``nkitools compile``: a kernel through AWS's compiler (a fake) in a process of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nkitools.cli import main
from tests.fakes import machines
from tests.targets.test_compilation import KERNELS, line_of

SIZED = """
from nkitools.facts import options

ROWS = 4
LATER = options.value("nki_version") == "0.7"

@nki.jit
def sized(x):
    tile = nl.ndarray((ROWS, 128), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=0)
    return double_of(x)

def double_of(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    if LATER:
        tile = nl.add(tile, tile)
    nl.store(out, nl.add(tile, tile))
    return out
"""
REPOSITORY = Path(__file__).parents[2]
INPUTS = """
import numpy as np
inputs = (np.ones((2, 4), np.float32),)
"""
Compile = Callable[..., Result]


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compile:
    """Runs the command on a kernel of the author's, on a laptop with these fakes of AWS's packages."""
    file = tmp_path / "kernels_of_an_author.py"
    file.write_text(KERNELS + SIZED + INPUTS)
    monkeypatch.setenv("NKITOOLS_SYSROOT", str(tmp_path / "root"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    def of(kernel: str, *arguments: str, fakes: tuple[str, ...] = ("nki06", "aws"), plug: str = "strict") -> Result:
        monkeypatch.setenv("FAKE_NEURON", plug)
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([machines.packages(*fakes), str(REPOSITORY)]))
        monkeypatch.setenv("PATH", os.pathsep.join([str(machines.FAKES / "compiler"), os.environ["PATH"]]))
        return CliRunner().invoke(main, ["compile", f"{file}::{kernel}", *arguments])

    return of


@pytest.mark.process
def test_a_compiled_kernel_stands_beside_its_estimate(compiled: Compile) -> None:
    """The chip and the degree that were asked for; what the compiler predicts, and what nkitools estimates."""
    done = compiled("double", "--chip", "trn3", "--lnc", "2", "--format", "json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.output)
    assert told["compiled"] | {"seconds": 0, "neff_bytes": 0} == {
        "chip": "trn3",
        "degree": 2,
        "how": "nki 0.6.0",
        "predicted_us": 12.5,
        "seconds": 0,
        "neff_bytes": 0,
    }
    assert told["estimate"]["lower_us"] < told["estimate"]["latency_us"] < told["estimate"]["upper_us"]


@pytest.mark.process
def test_what_the_compiler_refuses_is_at_the_authors_line(compiled: Compile) -> None:
    """Its words, and what the code in them means; exit code 1."""
    done = compiled("too_tall")
    assert done.exit_code == 1, done.output
    place = f"kernels_of_an_author.py:{line_of('    nisa.memset(dst=tile, value=0)')}"
    assert f"{place}: AWS's compiler does not take kernel `too_tall`:\n" in done.output
    assert "[NCC_INLA001] BIR verification failed: 256 partitions" in done.output
    assert "\nNCC_INLA001: " in done.output


@pytest.mark.process
def test_the_process_has_a_time_limit_and_a_machine_needs_a_compiler(
    compiled: Compile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that does not end is ended; where no compiler is, that is the command's answer, exit code 2."""
    absent = compiled("double", fakes=())
    assert absent.exit_code == 2
    assert "no compiler of AWS's: found neither module nki of AWS's own" in absent.output
    monkeypatch.setenv("NKITOOLS_TIMEOUT", "4")
    done = compiled("double", plug="hang")
    assert done.exit_code == 1
    assert "the compiler did not end within 4 s (NKITOOLS_TIMEOUT). Where it stands:" in done.output


@pytest.mark.process
def test_settings_reach_the_compiler(compiled: Compile) -> None:
    """A constant of the file: as it stands the kernel compiles, and with more rows than a tile has it does not."""
    assert compiled("sized").exit_code == 0
    done = compiled("sized", "--set", "ROWS=256")
    assert done.exit_code == 1, done.output
    assert "[NCC_INLA001] BIR verification failed: 256 partitions" in done.output


@pytest.mark.process
def test_the_version_is_that_of_the_estimate(compiled: Compile) -> None:
    """What the compiler predicts is the same; what nkitools estimates has the addition that 0.7 makes here."""
    told = {
        version: json.loads(compiled("sized", "--nki-version", version, "--json").output) for version in ("0.6", "0.7")
    }
    assert told["0.6"]["compiled"]["predicted_us"] == told["0.7"]["compiled"]["predicted_us"] == 12.5
    latencies = [told[version]["estimate"]["latency_us"] for version in ("0.6", "0.7")]
    assert latencies[0] < latencies[1]
