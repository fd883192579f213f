"""The ways in to a NeuronCore, without one: how often each runs NKI's front end, and what is in a timed round."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nkitools.targets.neuron_ways import AsNumpy, Jax, TorchXla
from nkitools.targets.packages import is_installed
from tests.fakes import machines

X = np.arange(8, dtype=np.float32).reshape(2, 4)


class Scale:
    """A kernel whose calls are counted: each is one run of NKI's front end."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: Any, factor: float = 1.0) -> Any:
        self.calls += 1
        return x * factor


def test_jax_runs_the_front_end_once() -> None:
    """The kernel is called under ``jax.jit``: a bare call would run NKI's front end in each round, for seconds."""
    jax = pytest.importorskip("jax")
    way = Jax.__new__(Jax)  # as on a NeuronCore; here the device is a CPU
    way._jax, way._device = jax, jax.devices()[0]
    kernel = Scale()
    prepared = AsNumpy(way).prepare(kernel, (X,), {"factor": 2.0})
    for _ in range(3):
        outputs = prepared.launch()
    assert kernel.calls == 1
    np.testing.assert_array_equal(prepared.fetch(outputs), 2 * X)
    assert prepared.record is None


@pytest.fixture
def xla(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The fake torch_xla, gone afterwards."""
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(machines.FAKES / "torch"))
    is_installed.cache_clear()
    way = TorchXla()
    yield way
    for name in [name for name in sys.modules if name.partition(".")[0] in ("torch_neuronx", "torch_xla")]:
        del sys.modules[name]
    is_installed.cache_clear()


def test_torch_xla_times_a_graph_that_was_recorded_before(xla: TorchXla) -> None:
    """The call that records it runs NKI's front end, and is not in the round; the round ends the graph and waits."""
    import torch_xla  # type: ignore[import-not-found]

    kernel = Scale()
    prepared = AsNumpy(xla).prepare(kernel, (X,), {"factor": 2.0})
    assert prepared.record is not None
    torch_xla.log.clear()
    for _ in range(3):
        calls = kernel.calls
        prepared.record()
        assert (kernel.calls, torch_xla.log) == (calls + 1, [])
        outputs = prepared.launch()
        assert (kernel.calls, torch_xla.log) == (calls + 1, ["sync", "wait"])
        torch_xla.log.clear()
    np.testing.assert_array_equal(prepared.fetch(outputs), 2 * X)


def test_narrow_dtypes_go_both_ways_by_torch(xla: TorchXla) -> None:
    """NumPy arrays of ml_dtypes, which torch.from_numpy does not take, and torch's bfloat16, which NumPy does not."""
    import ml_dtypes

    for dtype in (ml_dtypes.bfloat16, ml_dtypes.float8_e5m2):
        narrow = X.astype(dtype)
        outputs = AsNumpy(xla).call(lambda x: x, (narrow,), {})
        assert outputs.dtype == narrow.dtype
        np.testing.assert_array_equal(outputs.astype(np.float32), narrow.astype(np.float32))


def test_the_cache_of_a_way_is_that_of_its_compiler(
    xla: TorchXla, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The first call says whether the cache answered."""
    monkeypatch.setenv("NEURON_COMPILE_CACHE_URL", str(tmp_path))
    assert xla.prepare(Scale(), (), {"x": 1.0}).compile_cache == "answered by the cache"

    def compiled(x: float) -> float:
        (tmp_path / "model.neff").touch()
        return x

    assert xla.prepare(compiled, (1.0,), {}).compile_cache == "compiled: 1 new in the cache"
