"""The ways in to (fake) devices: NumPy, torch-xla, the legacy dialect, TPU and GPU by JAX; and what is timed."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import machines

HEADER = """
import os
import numpy as np
import pytest
import nki
import nki.language as nl

@nki.jit
def double(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nl.store(out, nl.add(tile, tile))
    return out

X = np.arange(8, dtype=np.float32).reshape(2, 4)

"""
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

X = np.ones((8, 128), np.float32)

"""


@pytest.fixture
def instance(bare_author: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """An author on an instance with one Inferentia2 and AWS's nki, both fake."""
    monkeypatch.setenv("NKITOOLS_SYSROOT", str(machines.neuron_root(tmp_path / "root")))
    monkeypatch.setenv("PYTHONPATH", machines.packages("aws"))
    bare_author.header = HEADER
    return bare_author


@pytest.fixture
def with_torch(instance: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The same with torch-neuronx."""
    monkeypatch.setenv("PYTHONPATH", machines.packages("torch"))
    return instance


needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


@needs_torch
def test_torch_tensors_go_by_torch_xla_and_are_waited_for(with_torch: Any) -> None:
    """Tensors come back on the CPU; the graph is ended and awaited in each call, so that it has run."""
    test = """
@pytest.mark.hw
def test_torch(run_kernel):
    import torch
    x = torch.arange(8, dtype=torch.float32).reshape(2, 4)
    out = run_kernel(double, x)
    assert isinstance(out, torch.Tensor) and torch.equal(out, 2 * x)
    import torch_xla
    assert torch_xla.log == ["sync", "wait"]
"""
    with_torch.run_apart(test=test).assert_outcomes(passed=1)


@needs_torch
def test_a_benchmark_is_told_in_pytests_own_process(with_torch: Any) -> None:
    """The table, the JSON file and the groups are those of pytest-benchmark, measured in the other process."""
    test = """
@pytest.mark.parametrize("scale", [1, 2])
def test_speed(kernel_benchmark, scale):
    out = kernel_benchmark(double, X * scale, operations=X.size)
    np.testing.assert_array_equal(out, 2 * scale * X)
"""
    result = with_torch.run_apart("-m", "hw", "--benchmark-json=out.json", "--benchmark-max-time=0.01", test=test)
    result.assert_outcomes(passed=2, deselected=2)
    result.stdout.fnmatch_lines(
        ["*benchmark 'double(float32?2,4?)': 2 tests*", "test_speed?hw-?? *", "test_speed?hw-?? *"]
    )
    one = json.loads((with_torch.pytester.path / "out.json").read_text())["benchmarks"][0]
    info = one["extra_info"]
    assert (info["kernel"], info["target"], info["chip"]) == ("double", "neuron", "inf2")
    assert (info["instance_type"], info["arch_type"]) == ("Inf2", "NCv2")
    assert (info["bytes"], info["operations"], info["dtypes"]) == (64, 8, ["float32"])
    assert info["compile_seconds"] > 0
    assert one["stats"]["rounds"] >= 5


def test_numpy_alone_cannot_be_timed(instance: Any) -> None:
    """Every stand-alone call compiles: its time would be the compiler's."""
    test = "def test_speed(kernel_benchmark):\n    kernel_benchmark(double, X)\n"
    result = instance.run_apart("-m", "hw", test=test)
    result.assert_outcomes(failed=1, deselected=1)
    result.stdout.fnmatch_lines(["*cannot be timed: with NumPy arguments alone every call compiles again*"])


def test_kernels_of_the_legacy_dialect_run_as_they_are(instance: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """neuronxcc.nki kernels are launched by AWS's own kernel object; outputs by reference come back."""
    monkeypatch.setenv("PYTHONPATH", machines.packages("legacy"))
    instance.header = HEADER.replace("import nki\n", "import neuronxcc.nki as nki\n").replace(
        "import nki.language", "import neuronxcc.nki.language"
    )
    test = """
def test_double(run_kernel):
    np.testing.assert_array_equal(run_kernel(double, X), 2 * X)
"""
    result = instance.run_apart(test=test)
    result.assert_outcomes(passed=2)


@pytest.mark.skipif(find_spec("jax") is None, reason="jax is not installed")
@pytest.mark.parametrize(("plugin", "node"), [("fake_tpu", "/dev/accel0"), ("fake_gpu", "/dev/nvidia0")])
def test_a_pallas_kernel_runs_on_tpu_and_gpu(
    bare_author: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, plugin: str, node: str
) -> None:
    """The same test; NumPy in, NumPy out; prints of jax.debug.print are heard, and the benchmark is JAX's."""
    monkeypatch.setenv("NKITOOLS_SYSROOT", str(machines.node_root(tmp_path / "root", node)))
    monkeypatch.setenv("PYTHONPATH", machines.packages("plugins"))
    bare_author.header = PALLAS
    test = f"""
@pytest.mark.hw
def test_double(run_kernel, device_prints):
    out = run_kernel(double, X)
    assert isinstance(out, np.ndarray) and (out == 2).all()
    assert run_kernel.run.target == "{plugin[5:]}"
    assert [(one.prefix, float(one.value)) for one in device_prints] == [("first", 1.0)]

@pytest.mark.hw
def test_speed(kernel_benchmark):
    assert (kernel_benchmark(double, X) == 2).all()
"""
    result = bare_author.run_apart("-p", plugin, "--benchmark-max-time=0.01", test=test)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*benchmark 'double(float32?8,128?)': 1 tests*"])
