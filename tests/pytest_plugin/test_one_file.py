"""One test file with the GIoU of NKI, of Pallas and in C++: unchanged in simulation and on each (fake) device."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import machines

needs_frameworks = pytest.mark.skipif(
    find_spec("torch") is None or find_spec("jax") is None, reason="torch or jax is not installed"
)

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

# What is in the machine, the packages and plugins that go with it, and the kernels that it can run.
MACHINES = {
    "neuron": (("/dev/neuron0",), ("aws", "torch"), (), {"nki", "cpp"}),
    "tpu": (("/dev/accel0",), ("plugins",), ("-p", "fake_tpu"), {"pallas"}),
    "gpu": (("/dev/nvidia0",), ("plugins",), ("-p", "fake_gpu"), {"pallas"}),
    "both": (
        ("/dev/neuron0", "/dev/accel0"),
        ("aws", "torch", "plugins"),
        ("-p", "fake_tpu"),
        {"nki", "cpp", "pallas"},
    ),
}


@pytest.fixture
def the_author(bare_author: Any) -> Any:
    bare_author.header = ""
    return bare_author


@needs_frameworks
def test_it_passes_in_simulation(the_author: Any) -> None:
    """Every kernel on the simulator for its kind; the benchmarks are skipped, since no simulator's time is a chip's."""
    result = the_author.run_apart("-m", "sim", "-v", "-rs", test=ONE_FILE)
    result.assert_outcomes(passed=3, skipped=3, deselected=6)
    result.stdout.fnmatch_lines([f"*test_giou?sim-{name}? PASSED*" for name in ("nki", "pallas", "cpp")])
    result.stdout.fnmatch_lines(["SKIPPED*kernel_benchmark measures on hardware (-m hw)*"])


@needs_frameworks
@pytest.mark.parametrize("machine", MACHINES)
def test_it_passes_on_each_device_with_a_table(
    the_author: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, machine: str
) -> None:
    """What the machine can run runs there and is measured, side by side; what it cannot is skipped with a reason."""
    nodes, packages, plugins, able = MACHINES[machine]
    root = tmp_path / "root"
    if "/dev/neuron0" in nodes:
        machines.neuron_root(root)
    machines.node_root(root, *nodes)
    monkeypatch.setenv("NKITOOLS_SYSROOT", str(root))
    monkeypatch.setenv("PYTHONPATH", machines.packages(*packages))
    told = ("--benchmark-json=out.json", "--benchmark-min-rounds=2", "--benchmark-max-time=0.01")
    result = the_author.run_apart("-m", "hw", "-rs", *plugins, *told, test=ONE_FILE)
    result.assert_outcomes(passed=2 * len(able), skipped=6 - 2 * len(able), deselected=6)
    result.stdout.fnmatch_lines([f"*benchmark 'giou': {len(able)} tests*"])
    measured = json.loads((the_author.pytester.path / "out.json").read_text())["benchmarks"]
    assert {one["params"]["name"] for one in measured} == able
    assert {one["extra_info"]["kernel"] for one in measured} == {"giou"}
