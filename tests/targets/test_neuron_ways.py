"""The ways in to a NeuronCore, without one: how often each runs NKI's front end, and what is in a timed round."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from nkitools.facts.known_faults import faults_of_versions
from nkitools.rules.finding import NotModelled
from nkitools.targets import neuron_ways
from nkitools.targets.neuron import NeuronDevice
from nkitools.targets.neuron_ways import AsNumpy, Jax, TorchNeuron, TorchXla, Way
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


def native(log: list[str]) -> Way:
    """The native backend on a CPU: launches stay in ``log`` until it is told to wait."""

    def event(**settings: Any) -> None:
        raise AssertionError("an event of torch.neuron is a time of the host")

    torch = pytest.importorskip("torch")
    way = TorchNeuron.__new__(TorchNeuron)
    way._torch = SimpleNamespace(neuron=SimpleNamespace(synchronize=lambda: log.append("wait"), Event=event))
    way.device = torch.device("cpu")
    return way


class NeuronOfJax:
    """A fake NeuronCore of JAX's, by libneuronxla: the platform's name is ``neuron``."""

    platform = "neuron"


def fake_jax(log: list[str], devices: tuple[Any, ...] = (NeuronOfJax(),)) -> Any:
    """JAX with these devices, whose arrays and graphs are those of its CPU; ``log`` has what it is asked for."""
    jax = pytest.importorskip("jax")

    def put(value: Any, device: Any) -> Any:
        log.append(f"to {device.platform}")
        return jax.device_put(value)

    return SimpleNamespace(
        devices=lambda: list(devices), device_put=put, jit=jax.jit, block_until_ready=lambda outputs: log.append("wait")
    )


def jax_way(log: list[str], monkeypatch: pytest.MonkeyPatch) -> Way:
    """The way by JAX, on a device of the platform ``neuron``."""
    jax = fake_jax(log)
    monkeypatch.setattr(neuron_ways, "import_module", lambda name: jax)
    return Jax()


@pytest.mark.parametrize("kind", ["native", "jax"])
def test_every_round_ends_when_the_device_has_finished(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """A launch waits last; the native backend's events, which are times of the host, are not used."""
    log: list[str] = []
    way = native(log) if kind == "native" else jax_way(log, monkeypatch)

    def kernel(x: Any) -> Any:
        log.append("launch")
        return 2 * x

    prepared = AsNumpy(way).prepare(kernel, (X,), {})
    for _ in range(3):
        log.clear()
        outputs = prepared.launch()
        assert log == (["launch", "wait"] if kind == "native" else ["wait"])  # JAX traces the kernel once
    np.testing.assert_array_equal(prepared.fetch(outputs), 2 * X)


def test_the_events_of_the_native_backend_are_known_to_be_the_hosts() -> None:
    """From torch-neuronx 2.10 on; 2.9 has none."""
    for version, is_said in (("2.14.3.0", True), ("2.9.0.2.15", False)):
        said = [fault.meaning for fault, _ in faults_of_versions("trn2", {"torch-neuronx": version}.get)]
        assert any("events of torch.neuron are times of the host" in what for what in said) == is_said


def test_jax_arrays_run_on_the_platform_neuron(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On its first device, awaited; a CPU before it is no NeuronCore, and the sentence names what is there."""
    jnp = pytest.importorskip("jax.numpy")
    monkeypatch.setenv("NKITOOLS_SYSROOT", str(machines.neuron_root(tmp_path, instance="Trn2", architecture="NCv3")))
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", "1")
    log: list[str] = []
    jax = fake_jax(log)
    monkeypatch.setattr(neuron_ways, "import_module", lambda name: jax)

    class Kernel(Scale):
        __name__ = "scale"

        def __getitem__(self, grid: int) -> Any: ...

    run = NeuronDevice().run(Kernel(), jnp.asarray(X), factor=3.0)
    np.testing.assert_array_equal(run.outputs, 3 * X)
    assert (run.target, run.chip, log) == ("neuron", "trn2", ["to neuron", "wait"])


def test_numpy_arrays_are_timed_by_jax_where_its_plugin_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module is libneuronxla, which JAX 0.7 to 0.10 take for a NeuronCore; JAX without it is no way."""
    jax = fake_jax([])
    here = {"jax", "libneuronxla"}
    monkeypatch.setattr(neuron_ways, "import_module", lambda name: jax)
    monkeypatch.setattr(neuron_ways, "torch_backend", lambda chip: SimpleNamespace(kind="", reason="-", remedy="-"))
    monkeypatch.setattr(neuron_ways, "is_installed", here.__contains__)
    monkeypatch.setattr(neuron_ways, "has_nrtpy", lambda: False)
    way = neuron_ways.timed_way_for(Scale(), (X,), {})
    np.testing.assert_array_equal(way.call(Scale(), (X,), {"factor": 2.0}), 2 * X)
    here.remove("libneuronxla")
    with pytest.raises(NotModelled, match="JAX has no plugin libneuronxla"):
        neuron_ways.timed_way_for(Scale(), (X,), {})
