"""A (fake) Trn2 of SDK 2.33: torch loads AWS's backend by itself, which imports AWS's nki."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

TEST = """
import ml_dtypes
import torch
from torch_neuronx import nki_op, wrap_nki

def test_torch(run_kernel, request):
    x = torch.arange(8, dtype=torch.float32).reshape(2, 4)
    out = run_kernel(double, x)
    assert type(out) is torch.Tensor and torch.equal(out, 2 * x)
    if "[hw]" in request.node.name:
        import torch_neuronx
        assert torch_neuronx.log == ["to", "launch", "synchronize", "cpu", "cpu"]
        assert torch.equal(run_kernel(double, x.to("neuron")), 2 * x)  # a tensor of the author's, there already

@nki_op("mine::double", mutates_args={})
def double_op(x: torch.Tensor) -> torch.Tensor:
    return double(x)

@pytest.mark.parametrize("kernel", [double_op, wrap_nki(double)], ids=["nki_op", "wrap_nki"])
def test_registered(run_kernel, kernel):
    x = torch.arange(8, dtype=torch.float32).reshape(2, 4)
    assert torch.equal(run_kernel(kernel, x), 2 * x)

def test_environment(run_kernel, request):
    on_hardware = "[hw]" in request.node.name
    assert os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD") == (None if on_hardware else "0")
    assert hasattr(torch, "neuron") == on_hardware
    assert ("NKI_SIMULATOR" in os.environ) != on_hardware
    assert ("TORCH_NEURONX_COMPILE_ONLY" in os.environ) != on_hardware
    if on_hardware:
        assert os.environ["NEURON_LOGICAL_NC_CONFIG"] == "1"
        assert os.environ["NEURON_PLATFORM_TARGET_OVERRIDE"] == "trn2"
    run_kernel(double, X)

@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_speed(kernel_benchmark, dtype):
    narrow = X.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    out = kernel_benchmark(double, narrow)
    assert out.dtype == narrow.dtype
    np.testing.assert_array_equal(out.astype(np.float32), 2 * X)

def test_module(kernel_benchmark):
    module = torch.nn.Linear(4, 3)
    x = torch.ones((2, 4))
    out = kernel_benchmark(module, x)
    assert torch.allclose(out, module(x).detach())

def test_late(run_kernel, request, monkeypatch):
    if "[hw]" in request.node.name:
        monkeypatch.setenv("FAKE_NEURON", "late")
    run_kernel(double, torch.ones((2, 4)))

@pytest.mark.hw
def test_launched_by_the_author(monkeypatch):
    there = torch.ones((2, 4)).to("neuron")
    monkeypatch.setenv("FAKE_NEURON", "late")
    double(there)  # its error comes with the synchronisation at the end of the test
"""

KEPT = ("--benchmark-json=out.json",)


def test_a_trn2_of_today(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file that imports torch runs on both sides.

    In simulation torch leaves AWS's backend alone. On the device tensors, NumPy arrays of narrow dtypes and modules go
    by the native backend, and so do functions of `nki_op` and `wrap_nki`. What makes AWS's packages simulate or
    compile only does not reach the device's process, and the degree does. A launch's error comes out of the test that
    made it, explained. A measurement has the time of the device and the estimate.
    """
    monkeypatch.setenv("NKI_SIMULATOR", "1")
    monkeypatch.setenv("TORCH_NEURONX_COMPILE_ONLY", "1")
    author = machine("native", "nrtpy", "aws", instance="Trn2", architecture="NCv3")
    result = author.run_apart(
        "-m", "sim or hw", "--benchmark-max-time=0.01", "--benchmark-min-rounds=2", *KEPT, test=TEST
    )
    result.assert_outcomes(passed=12, failed=2, skipped=3)
    result.stdout.fnmatch_lines(["FAILED *test_late?hw?*", "FAILED *test_launched_by_the_author*"])
    result.stdout.fnmatch_lines(["*What AWS's codes mean*", "NRT_EXEC_OOB (1006): an indirect copy *by NK402."])
    told = json.loads((author.pytester.path / "out.json").read_text())["benchmarks"]
    info = {one["name"]: one["extra_info"] for one in told}
    for dtype in ("float32", "bfloat16"):
        one = info[f"test_speed[hw-{dtype}]"]
        assert one["device_time"] == "measured by nrtpy 2.35.30 (SpikeModel, benchmark)"
        assert one["device_seconds"] == 25e-6
        assert one["bytes_per_second"] == one["bytes"] / 25e-6
        assert one["estimate_lower_seconds"] < one["estimate_seconds"] < one["estimate_upper_seconds"]
        assert one["rounds_are"].startswith("round trips of the host")
    module = info["test_module[hw]"]
    assert module["device_time"] == "not measured: a torch module leaves no NEFF of its own"
    assert "estimate" not in module
