"""Time a kernel on its device with pytest-benchmark, and say what the time means, beside the peaks of the chip."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from nkitools.chip.argument_types import FrameworkArray, Kernel
from nkitools.facts.generations import generation_of
from nkitools.launch.frameworks import arrays_in
from nkitools.targets.neff import DeviceTime, NoDeviceTime
from nkitools.targets.target import Device, Prepared, kernel_name

ROUND_TRIP = "round trips of the host: Python, dispatch, launch and wait"
# How many rounds are made where each is recorded first, and what they may take together.
_FEWEST_ROUNDS, _MOST_ROUNDS, _SECONDS = 5, 100, 1.0


def time_kernel(
    benchmark: Any,
    device: Device,
    kernel: Kernel,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    operations: float | None = None,
) -> Any:
    """Return the outputs of the last timed launch of ``kernel``, on the host; ``benchmark`` has the rounds.

    Compilation and transfers happen before the first round, and stand in ``extra_info["compile_seconds"]``. Without a
    group of the author's, measurements are grouped by kernel and shapes. Raises what `Device.prepare` does.
    """
    __tracebackhide__ = True
    from nkitools.record.run import Run
    from nkitools.record.run_session import session

    device.check_chip(kwargs.pop("chip", None))
    run = Run(kernel=kernel_name(kernel), target=device.key, chip=device.chip())
    with session(run):
        prepared = device.prepare(kernel, args, kwargs)
        run.chip = device.chip()
        given = arrays_in((args, kwargs))
        if benchmark.group is None:
            benchmark.group = f"{run.kernel}({described(given)})"
        run.outputs = prepared.fetch(_rounds(benchmark, prepared))
    nbytes = sum(array.nbytes for array in [*given, *arrays_in(run.outputs)])
    benchmark.extra_info.update(
        kernel=run.kernel,
        target=device.key,
        chip=run.chip,
        **device.facts(),
        arguments=described(given),
        dtypes=sorted({_dtype(array) for array in given}),
        bytes=nbytes,
        compile_seconds=prepared.compile_seconds,
        **({"compile_cache": prepared.compile_cache} if prepared.compile_cache else {}),
    )
    if benchmark.stats is not None:  # pytest-benchmark is disabled under xdist: the kernel ran, nothing was timed
        dtype = _dtype(given[0]) if given else ""
        least = benchmark.stats.stats.min
        told = judged(least, nbytes, operations, peaks_of(run.chip), dtype)
        if prepared.device_time is not None:
            alone = _device_time(prepared.device_time)
            if "device_seconds" in alone:
                told = judged(alone["device_seconds"], nbytes, operations, peaks_of(run.chip), dtype)
            else:  # the host's time says nothing of the device, but that it was not faster
                told = {name: value for name, value in told.items() if name in ("operations", "suspect")}
            told = {"rounds_are": ROUND_TRIP, **alone, **told}
        benchmark.extra_info.update(told)
    return run.outputs


def _rounds(benchmark: Any, prepared: Prepared) -> Any:
    """Return what the last round has launched; what must be recorded before a launch is not timed."""
    if prepared.record is None:
        return benchmark(prepared.launch)
    began = time.perf_counter()
    prepared.record()
    prepared.launch()
    each = max(time.perf_counter() - began, 1e-6)
    rounds = max(_FEWEST_ROUNDS, min(_MOST_ROUNDS, int(_SECONDS / each)))
    return benchmark.pedantic(prepared.launch, setup=prepared.record, rounds=rounds)


def _device_time(measure: Callable[[], DeviceTime]) -> dict[str, Any]:
    """Return the time of the device alone, with the tool that measured it; else why there is none."""
    try:
        found = measure()
    except Exception as error:  # any: the rounds are measured whatever AWS's tools raise
        reason = str(error) if isinstance(error, NoDeviceTime) else f"{type(error).__name__}: {error}"
        return {"device_time": f"not measured: {reason}"}
    return {
        "device_seconds": found.seconds,
        "device_seconds_min": found.least_seconds,
        "device_executions": found.executions,
        "device_time": f"measured by {found.tool}",
    }


def judged(
    seconds: float, nbytes: float, operations: float | None, peaks: Peaks | None, dtype: str
) -> Mapping[str, Any]:
    """Return what the fastest round of ``seconds`` means for a kernel that moves ``nbytes`` and makes ``operations``.

    ``bytes_per_second``; with ``operations`` ``operations_per_second`` and, where the chip's peak for ``dtype`` is
    published, ``utilisation`` of it (1.0 is the peak). ``suspect`` says why the time cannot be: no chip moves the
    arguments and results faster than its memory, or makes operations faster than its peak.
    """
    told: dict[str, Any] = {"bytes_per_second": nbytes / seconds}
    reasons = []
    bandwidth = None if peaks is None else peaks.bytes_per_second
    if bandwidth is not None and nbytes / seconds > bandwidth:
        reasons.append(f"{nbytes / seconds:.3g} bytes/s, and the memory has {bandwidth:.3g}")
    if operations is not None:
        told.update(operations=operations, operations_per_second=operations / seconds)
        peak = None if peaks is None else peaks.operations_per_second.get(dtype)
        if peak is not None:
            told["utilisation"] = operations / seconds / peak
            if told["utilisation"] > 1:
                reasons.append(f"{operations / seconds:.3g} operations/s, and the peak of the chip is {peak:.3g}")
    if reasons:
        told["suspect"] = f"faster than the chip can be: {'; '.join(reasons)}. The kernel did not run each time"
    return told


def described(arrays: Iterable[FrameworkArray]) -> str:
    """Return dtypes and shapes, as in ``float32[128,256], float32[256,64]``."""
    return ", ".join(f"{_dtype(array)}[{','.join(map(str, array.shape))}]" for array in arrays)


def _dtype(array: FrameworkArray) -> str:
    return str(array.dtype).removeprefix("torch.")


class Peaks(NamedTuple):
    """The most that one core, as the runtime counts them, can compute, and the memory of its device can move.

    ``bytes_per_second`` is None where none is published; ``operations_per_second`` by dtype, a multiply-add counts two.
    """

    chip: str
    bytes_per_second: float | None
    operations_per_second: Mapping[str, float]


def peaks_of(chip: str) -> Peaks | None:
    """Return the peaks of a NeuronCore by generation, or of a TPU by JAX's name of its kind; None for others."""
    return _of_neuron(chip) or _of_tpu(chip)


def _of_neuron(chip: str) -> Peaks | None:
    try:
        generation = generation_of(chip)
    except ValueError:
        return None
    cores = int(os.environ.get("NEURON_LOGICAL_NC_CONFIG") or 1)  # where it is not set, a kernel takes one (nki.jit)
    # The array of the Tensor Engine multiplies and adds in each cell each cycle; float32 takes four passes
    # (trainium_inferentia2_arch, "Tensor Engine").
    narrow = cores * 2 * generation.partitions * generation.stationary_fmax * generation.clocks.tensor * 1e9
    operations = {"bfloat16": narrow, "float16": narrow, "float32": narrow / 4}
    if generation.double_row_matmul:
        operations |= dict.fromkeys(("float8_e4m3", "float8_e5m2", "float8_e4m3fn"), 2 * narrow)
    # The table has a core's share of the memory; one core alone may have more than that.
    return Peaks(chip, generation.cores_per_device * generation.hbm_bytes_per_second, operations)


def _of_tpu(kind: str) -> Peaks | None:
    from nkitools.pallas.chips import CHIPS
    from nkitools.pallas.performance import PEAKS, peak

    chip = next((chip.name for chip in CHIPS.values() if chip.device_kind == kind), None)
    if chip is None or chip not in PEAKS:
        return None
    return Peaks(chip, None, {dtype: peak(dtype, chip) for dtype in PEAKS[chip].operations})
