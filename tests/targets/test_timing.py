"""Timings: what is measured, what it is called, and when a time cannot be."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from nkitools.record.run_listeners import collect_runs
from nkitools.targets.neff import DeviceTime, NoDeviceTime
from nkitools.targets.target import Availability, Device, Prepared
from nkitools.targets.timing import judged, peaks_of, time_kernel

X = np.ones((128, 1024), np.float32)


class Abacus(Device):
    """A device that is none; it counts its launches."""

    key = "abacus"
    name = "Abacus"
    prints = "by bell"
    launches = 0

    def available(self) -> Availability:
        return Availability(True, "on the shelf")

    def units(self) -> tuple[str, ...]:
        return ("abacus",)

    def environment(self, unit: str) -> Mapping[str, str]:
        return {}

    def chip(self) -> str:
        return "trn1"

    def facts(self) -> Mapping[str, str]:
        return {"beads": "70"}

    def call(self, kernel: Any, args: Any, kwargs: Any) -> Any:
        return kernel(*args, **kwargs)

    def prepare(self, kernel: Any, args: Any, kwargs: Any) -> Prepared:
        def launch() -> Any:
            self.launches += 1
            return kernel(*args, **kwargs)

        return Prepared(launch, lambda outputs: outputs + 1, 12.5)


class NeuronAbacus(Abacus):
    """One whose launches are round trips of the host: each is recorded first, and another tool times the beads."""

    recorded = 0

    def __init__(self, alone: Any) -> None:
        self._alone = alone

    def prepare(self, kernel: Any, args: Any, kwargs: Any) -> Prepared:
        def record() -> None:
            self.recorded += 1

        def measure() -> DeviceTime:
            if isinstance(self._alone, Exception):
                raise self._alone
            return DeviceTime(self._alone, self._alone, 20, "nrtpy 2.35.30")

        prepared = super().prepare(kernel, args, kwargs)
        return prepared._replace(record=record, device_time=measure, compile_cache="answered by the cache")


class Benchmark:
    """The parts of pytest-benchmark's fixture that are used."""

    def __init__(self, seconds: float | None) -> None:
        self.group: str | None = None
        self.extra_info: dict[str, Any] = {}
        self.stats = None if seconds is None else SimpleNamespace(stats=SimpleNamespace(min=seconds))

    def __call__(self, launch: Any) -> Any:
        return launch()

    def pedantic(self, launch: Any, *, setup: Any, rounds: int) -> Any:
        for _ in range(rounds):
            setup()
            outputs = launch()
        return outputs


def double(x: Any) -> Any:
    """2 x."""
    return 2 * x


def test_a_measurement_says_what_was_measured_and_on_what() -> None:
    """Kernel, target, chip, versions, dtypes, bytes, compile time; the outputs are the last launch's, fetched."""
    benchmark, device = Benchmark(1e-3), Abacus()
    with collect_runs() as runs:
        outputs = time_kernel(benchmark, device, double, (X,), {})
    np.testing.assert_array_equal(outputs, 2 * X + 1)
    assert device.launches == 1
    assert benchmark.group == "double(float32[128,1024])"
    assert benchmark.extra_info == {
        "kernel": "double",
        "target": "abacus",
        "chip": "trn1",
        "beads": "70",
        "arguments": "float32[128,1024]",
        "dtypes": ["float32"],
        "bytes": 2 * X.nbytes,
        "compile_seconds": 12.5,
        "bytes_per_second": 2 * X.nbytes / 1e-3,
    }
    assert [(run.kernel, run.target, run.chip) for run in runs] == [("double", "abacus", "trn1")]


def test_the_time_of_the_device_is_what_is_judged() -> None:
    """A round trip of a millisecond hides a kernel of ten microseconds; what is recorded before it is not timed."""
    benchmark, device = Benchmark(1e-3), NeuronAbacus(1e-5)
    time_kernel(benchmark, device, double, (X,), {}, operations=2 * 128 * 128 * 2.8e9 / 4 * 1e-5)
    info = benchmark.extra_info
    assert info["rounds_are"] == "round trips of the host: Python, dispatch, launch and wait"
    assert (info["device_seconds"], info["device_executions"]) == (1e-5, 20)
    assert info["device_time"] == "measured by nrtpy 2.35.30"
    assert info["bytes_per_second"] == pytest.approx(2 * X.nbytes / 1e-5)
    assert info["utilisation"] == pytest.approx(1.0)
    assert info["compile_cache"] == "answered by the cache"
    assert device.recorded == device.launches >= 6


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (NoDeviceTime("no other core is free"), "not measured: no other core is free"),
        (OSError("libnrt.so.1"), "not measured: OSError: libnrt.so.1"),
    ],
)
def test_a_round_trip_alone_gives_no_utilisation(raised: Exception, said: str) -> None:
    """It is called what it is; only that it is too fast can be said of it."""
    benchmark = Benchmark(1e-3)
    time_kernel(benchmark, NeuronAbacus(raised), double, (X,), {}, operations=1e9)
    assert benchmark.extra_info["device_time"] == said
    assert benchmark.extra_info["operations"] == 1e9
    assert not {"bytes_per_second", "utilisation", "operations_per_second", "suspect"} & benchmark.extra_info.keys()
    time_kernel(benchmark, NeuronAbacus(raised), double, (X,), {}, operations=1e20)
    assert benchmark.extra_info["suspect"].startswith("faster than the chip can be")


@pytest.mark.parametrize(("degree", "cores"), [("", 1), ("1", 1), ("2", 2)])
def test_the_peak_is_that_of_the_cores_a_kernel_has(monkeypatch: pytest.MonkeyPatch, degree: str, cores: int) -> None:
    """Where the degree is not set a kernel takes one core, also on a Trn2."""
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", degree)
    peaks = peaks_of("trn2")
    assert peaks is not None
    assert peaks.operations_per_second["bfloat16"] == pytest.approx(cores * 2 * 128 * 128 * 2.4e9)


def test_the_authors_group_stays_and_a_disabled_benchmark_times_nothing() -> None:
    """Under xdist pytest-benchmark calls once and has no statistics."""
    benchmark = Benchmark(None)
    benchmark.group = "giou"
    time_kernel(benchmark, Abacus(), double, (X,), {})
    assert benchmark.group == "giou"
    assert "bytes_per_second" not in benchmark.extra_info


def test_utilisation_is_the_share_of_the_peak() -> None:
    """A trn1 core multiplies 128 x 128 numbers each cycle of 2.8 GHz: 91.75 T operations a second in bfloat16."""
    peaks = peaks_of("trn1")
    assert peaks is not None
    assert peaks.operations_per_second["bfloat16"] == pytest.approx(2 * 128 * 128 * 2.8e9)
    told = judged(1.0, 1e9, 2 * 128 * 128 * 2.8e9 / 4, peaks, "bfloat16")
    assert told["utilisation"] == pytest.approx(0.25)
    assert "suspect" not in told
    assert judged(1.0, 1e9, 1e12, peaks, "int8") == {
        "bytes_per_second": 1e9,
        "operations": 1e12,
        "operations_per_second": 1e12,
    }


def test_a_time_below_the_physical_limit_is_suspect() -> None:
    """A loop that does not wait for the device measures how fast it is asked."""
    peaks = peaks_of("inf2")
    nbytes = 3 * 1024 * 256 * 4 * 4
    told = judged(1e-7, nbytes, None, peaks, "float32")
    assert told["suspect"].startswith("faster than the chip can be: 1.26e+14 bytes/s, and the memory has 8.2e+11")
    told = judged(1e-3, nbytes, 1e15, peaks, "float32")
    assert "1e+18 operations/s, and the peak of the chip is 2.29e+13" in told["suspect"]
    assert "suspect" not in judged(1e-4, nbytes, None, peaks, "float32")


@pytest.mark.parametrize(
    ("kind", "dtype", "peak"), [("TPU v5 lite", "bfloat16", 197e12), ("TPU v5 lite", "int8", 393e12)]
)
def test_tpus_are_known_by_jaxs_names(kind: str, dtype: str, peak: float) -> None:
    """The published peaks of Cloud TPUs; no memory bandwidth is in the table, so none is judged."""
    peaks = peaks_of(kind)
    assert peaks is not None
    assert peaks.operations_per_second[dtype] == peak
    assert peaks.bytes_per_second is None


def test_other_devices_have_no_peak() -> None:
    """A GPU is timed and not judged."""
    assert peaks_of("NVIDIA H200") is None
    assert judged(1.0, 1e20, 1e20, None, "float32").keys() == {
        "bytes_per_second",
        "operations",
        "operations_per_second",
    }
