"""One test file with the GIoU of NKI, of Pallas and in C++: unchanged in simulation and on each (fake) device."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import machines

missing = [name for name in ("torch", "jax") if find_spec(name) is None]
needs_frameworks = pytest.mark.skipif(bool(missing), reason=f"{' and '.join(missing)} is not installed")

ONE_FILE = """
import numpy as np
import pytest
from cpp_ops.giou.build import library
from kernels.nki.giou import giou as nki_giou
from kernels.pallas.giou import giou as pallas_giou
from tests.kernels.reference import boxes, giou_reference

KERNELS = {"nki": nki_giou, "pallas": pallas_giou, "cpp": library().giou}
PREDS, TARGETS = (np.ascontiguousarray(batch[:9, :33]) for batch in boxes())

each = pytest.mark.parametrize("name", KERNELS)

@each
def test_giou(run_kernel, name):
    scores = run_kernel(KERNELS[name], PREDS, TARGETS)
    assert isinstance(scores, np.ndarray) and scores.dtype == np.float32
    np.testing.assert_allclose(scores, giou_reference(PREDS, TARGETS), rtol=0, atol=1e-5)

@each
@pytest.mark.benchmark(group="giou")
def test_speed(kernel_benchmark, name):
    kernel_benchmark(KERNELS[name], PREDS, TARGETS)
"""

TOLD = ("-rs", "-v", "--benchmark-json=out.json", "--benchmark-min-rounds=2", "--benchmark-max-time=0.01")


@pytest.fixture
def one_file(bare_author: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """An author with that file; ``on(nodes, packages)`` puts devices into the machine, all fake."""

    def on(nodes: Sequence[str], packages: Sequence[str]) -> Any:
        root = tmp_path / "root"
        if "/dev/neuron0" in nodes:
            machines.neuron_root(root)
        machines.node_root(root, *nodes)
        monkeypatch.setenv("NKITOOLS_SYSROOT", str(root))
        monkeypatch.setenv("PYTHONPATH", machines.packages(*packages))
        return bare_author

    return on


def measured(author: Any) -> list[tuple[str, str, str]]:
    """Group, implementation and device of what was timed."""
    told = json.loads((author.pytester.path / "out.json").read_text())["benchmarks"]
    assert {one["extra_info"]["kernel"] for one in told} == {"giou"}
    return sorted((one["group"], one["params"]["name"], one["extra_info"]["target"]) for one in told)


@needs_frameworks
def test_one_session_simulates_runs_and_times_all_three(one_file: Any) -> None:
    """On a machine with a NeuronCore and a TPU: each kernel in its simulator and on its device, and one table."""
    author = one_file(["/dev/neuron0", "/dev/accel0"], ["aws", "torch", "plugins"])
    result = author.run_apart("-m", "sim or hw", "-p", "fake_tpu", *TOLD, test=ONE_FILE)
    result.assert_outcomes(passed=9, skipped=3)
    kernels = ("nki", "pallas", "cpp")
    result.stdout.fnmatch_lines_random(
        [f"*test_giou?{target}-{name}? PASSED*" for target in ("sim", "hw") for name in kernels]
    )
    result.stdout.fnmatch_lines(["SKIPPED*kernel_benchmark measures on hardware (-m hw)*"])
    result.stdout.fnmatch_lines(["*benchmark 'giou': 3 tests*", *(["test_speed?hw-*"] * 3)])
    assert measured(author) == [("giou", "cpp", "neuron"), ("giou", "nki", "neuron"), ("giou", "pallas", "tpu")]
