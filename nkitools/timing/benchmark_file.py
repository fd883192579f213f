"""Measurements of `kernel_benchmark` on a device, as pytest-benchmark has written them (``--benchmark-json``)."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nkitools.timing.measured import Beside


@dataclass(frozen=True, kw_only=True)
class TimedCall:
    """One measurement of a kernel."""

    test: str  # the test that measured
    chip: str  # the chip that it ran on
    arguments: str  # dtypes and shapes: "float32[128,256], float32[256,64]"
    latency_us: float | None  # of the device, without the host; None where it was not measured
    how: str  # "measured by" a tool, or why it was not
    round_trip_us: float  # the fastest round of the host
    is_simulated: bool = False

    def as_plain(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return asdict(self)

    def beside(self, estimate_us: float) -> Beside:
        """Return the latency beside an estimate."""
        return Beside(name="latency", unit="us", measured=self.latency_us, estimated=estimate_us)


def timed_calls(file: Path, kernel: str) -> list[TimedCall]:
    """Return the measurements of a kernel on a NeuronCore. ValueError for a file that pytest-benchmark has not made."""
    try:
        measured = json.loads(file.read_text(encoding="utf-8"))["benchmarks"]
        return [_timed_call(each) for each in measured if _is_of(each["extra_info"], kernel)]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file} is no file of pytest-benchmark's --benchmark-json: {error!r}") from None


def _is_of(info: dict[str, Any], kernel: str) -> bool:
    return info.get("kernel") == kernel and info.get("target") == "neuron"


def _timed_call(each: dict[str, Any]) -> TimedCall:
    info = each["extra_info"]
    seconds = info.get("device_seconds")
    return TimedCall(
        test=each["fullname"],
        chip=info["chip"],
        arguments=info["arguments"],
        latency_us=None if seconds is None else seconds * 1e6,
        how=info.get("device_time", "not measured"),
        round_trip_us=each["stats"]["min"] * 1e6,
    )
