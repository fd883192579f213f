"""The ways in to (fake) devices: NumPy, torch-xla, the legacy dialect, TPU and GPU by JAX; and what is timed."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from typing import Any

import pytest

from tests.cases import FULL
from tests.fakes import machines

PALLAS = """
import jax
import numpy as np
import pytest
from jax.experimental import pallas as pl

def double_kernel(x_ref, out_ref):
    out_ref[...] = x_ref[...] * 2

def double(x):
    jax.debug.print("first {}", x[0, 0])
    return pl.pallas_call(double_kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

@jax.jit
def times_two(x):
    return double(x)

def times(x, rows):  # its second argument is a shape
    return times_two(x) / 2 * jax.numpy.ones((rows, 1)).sum()

X = np.ones((8, 128), np.float32)

"""


needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


@needs_torch
def test_torch_xla_runs_and_times(machine: Any) -> None:
    """Tensors come back on the CPU, and each call awaits its graph; what is timed is told in pytest's own process."""
    author = machine("torch", "aws")
    test = """
@pytest.mark.hw
def test_torch(run_kernel):
    import torch
    import torch_xla
    torch_xla.log.clear()
    x = torch.arange(8, dtype=torch.float32).reshape(2, 4)
    out = run_kernel(double, x)
    assert isinstance(out, torch.Tensor) and torch.equal(out, 2 * x)
    assert torch_xla.log == ["sync", "wait"]

@pytest.mark.parametrize("scale", [1, 2])
def test_speed(kernel_benchmark, scale):
    out = kernel_benchmark(double, X * scale, operations=X.size)
    np.testing.assert_array_equal(out, 2 * scale * X)

def test_too_fast(kernel_benchmark):
    kernel_benchmark(double, X, operations=1e15)
"""
    result = author.run("-m", "hw", "--benchmark-json=out.json", "--benchmark-max-time=0.01", test=test)
    result.assert_outcomes(passed=4, deselected=3)
    result.stdout.fnmatch_lines(["*benchmark 'double(float32?2,4?)': 3 tests*", *["test_* *"] * 3])
    result.stdout.fnmatch_lines(
        ["nki: test_it.py::test_too_fast?hw?: suspect: faster than the chip can be: * of the *"]
    )
    told = {one["name"]: one for one in json.loads((author.pytester.path / "out.json").read_text())["benchmarks"]}
    one = told["test_speed[hw-1]"]
    info = one["extra_info"]
    assert (info["kernel"], info["target"], info["chip"]) == ("double", "neuron", "inf2")
    assert (info["instance_type"], info["arch_type"]) == ("Inf2", "NDv3")
    assert (info["bytes"], info["operations"], info["dtypes"]) == (64, 8, ["float32"])
    assert info["compile_seconds"] > 0
    assert "suspect" not in info
    assert one["stats"]["rounds"] >= 5


def test_the_compiler_takes_the_place_of_a_device(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--nki-target=compile`: tests go on with the results of AWS's simulator; its errors are at the author's line.

    A time is not measured, and where there is no compiler the test is skipped with what was looked for.
    """
    author = machine("nki06", "aws", nodes=())
    test = """
@nki.jit
def too_tall(x):
    tile = nl.ndarray((256, 128), dtype=x.dtype, buffer=nl.sbuf)
    nl.store(x, tile)
    return x

def test_double(run_kernel):
    np.testing.assert_array_equal(run_kernel(double, X), 2 * X)

def test_speed(kernel_benchmark):
    kernel_benchmark(double, X)

@pytest.mark.hw("neuron")
def test_wrong(run_kernel, monkeypatch):
    monkeypatch.setenv("FAKE_NEURON", "strict")
    run_kernel(too_tall, X)
"""
    absent = author.run("-m", "hw", "--nki-target=compile", "-rs", test=test)
    absent.assert_outcomes(skipped=3, deselected=2)
    absent.stdout.fnmatch_lines(["SKIPPED*no compiler of AWS's: found neither command neuronx-cc"])
    monkeypatch.setenv("PATH", os.pathsep.join([str(machines.FAKES / "compiler"), os.environ["PATH"]]))
    result = author.run("-m", "hw", "--nki-target=compile", "-rsP", "--nki-chip=trn2", test=test)
    result.assert_outcomes(passed=1, skipped=1, failed=1, deselected=2)
    result.stdout.fnmatch_lines(["E * *test_it.py:*: AWS's compiler does not take kernel `too_tall`: *NCC_INLA001*"])
    result.stdout.fnmatch_lines(["double: compiled for trn2, LNC 1, by nki 0.6.0 in *; the compiler predicts 12.5 us"])
    result.stdout.fnmatch_lines(["SKIPPED*this target only compiles. double: compiled for trn2*"])


def test_kernels_of_the_legacy_dialect_run_as_they_are(machine: Any) -> None:
    """neuronxcc.nki kernels are launched by AWS's own kernel object, NumPy arrays without a framework (baremetal)."""
    author = machine("legacy")
    author.header = author.header.replace("import nki\n", "import neuronxcc.nki as nki\n").replace(
        "import nki.language", "import neuronxcc.nki.language"
    )
    test = """
def test_double(run_kernel, request):
    np.testing.assert_array_equal(run_kernel(double, X), 2 * X)
    if "[hw]" in request.node.name:
        assert nki.log == ["baremetal"]
"""
    author.run(test=test).assert_outcomes(passed=2)


needs_jax = pytest.mark.skipif(find_spec("jax") is None, reason="jax is not installed")

_WRONG = {
    "crash": [
        "*_ test_pulled?hw-crash? _*",
        "crashed: the process on the device was ended by SIGABRT. Its last words:",
    ],
    "hang": [
        "*_ test_pulled?hw-hang? _*",
        "hung: the process on the device did not end within 8 s (--nki-timeout). Where it stands:",
    ],
    "wrong": ["*_ test_pulled?hw-wrong? _*", "*Mismatched elements: * (100%)*"],
    "busy": ["*_ test_pulled?hw-busy? _*", "*The TPU is already in use by process with pid 1."],
}
# Each takes another process, which imports JAX; `test_hardware` has a hang, and tests of comparisons a wrong result.
_PLUGS = {"fake_tpu": ("crash",), "fake_gpu": ("busy",)}
if FULL:
    _PLUGS = {"fake_tpu": ("crash", "wrong"), "fake_gpu": ("hang", "busy")}


@needs_jax
@pytest.mark.soak
@pytest.mark.parametrize(("plugin", "node"), [("fake_tpu", "/dev/accel0"), ("fake_gpu", "/dev/nvidia0")])
def test_a_pallas_kernel_runs_on_tpu_and_gpu(machine: Any, plugin: str, node: str) -> None:
    """The same test; NumPy in, NumPy out; prints of jax.debug.print are heard, and the benchmark is JAX's.

    Crash, hang, wrong result, busy device: that test fails with its own words, and the next one runs. What has no GPU
    code is skipped with JAX's reason, unless the test names the GPU: then the error is the test's. A kernel for a
    NeuronCore is skipped: none is here.
    """
    author = machine("plugins", nodes=[node])
    author.header, plugs, is_gpu = PALLAS, _PLUGS[plugin], plugin == "fake_gpu"
    test = f"""
@pytest.mark.hw
@pytest.mark.parametrize("plug", {plugs})
def test_pulled(run_kernel, monkeypatch, plug):
    monkeypatch.setenv("FAKE_DEVICE", plug)
    np.testing.assert_array_equal(run_kernel(times, X, 3), 3 * X)

@pytest.mark.hw
def test_double(run_kernel, device_prints):
    out = run_kernel(double, X, modes="interpret")
    assert isinstance(out, np.ndarray) and (out == 2).all()
    assert run_kernel.run.target == "{plugin[5:]}"
    assert [(one.prefix, float(one.value)) for one in device_prints] == [("first", 1.0)]

@pytest.mark.hw
def test_speed(kernel_benchmark):
    assert (kernel_benchmark(times, X, 3) == 3).all()
"""
    if is_gpu:
        test += """
from kernels.nki.giou import giou

@pytest.mark.hw
def test_for_a_tpu(run_kernel, monkeypatch):
    monkeypatch.setattr("nkitools.targets.jax_devices.GpuDevice.lowers_to", "cuda")  # JAX on a CPU has none for it
    run_kernel(double, X)

@pytest.mark.hw("gpu")
def test_for_a_gpu(run_kernel, monkeypatch):
    monkeypatch.setattr("nkitools.targets.jax_devices.GpuDevice.unfit", None)  # is not asked
    run_kernel(double, X)

@pytest.mark.hw
def test_for_a_neuroncore(run_kernel):
    run_kernel(giou, X, X)
"""
    result = author.run_apart("-p", plugin, "--nki-timeout=8", "--benchmark-max-time=0.01", "-rs", test=test)
    result.assert_outcomes(passed=2 + is_gpu, failed=len(plugs), skipped=2 * is_gpu)
    result.stdout.fnmatch_lines([line for plug in plugs for line in _WRONG[plug]])
    result.stdout.fnmatch_lines(["*benchmark 'times(float32?8,128?)': 1 tests*"])
    if is_gpu:
        reasons = ("`double` does not lower to a GPU: ValueError: ", "no NeuronCore: found no device node /dev/neuron")
        result.stdout.fnmatch_lines_random([f"SKIPPED*{reason}*" for reason in reasons])
