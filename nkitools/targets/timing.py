"""Time a kernel on its device with pytest-benchmark, and say what the time means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nkitools.chip.argument_types import FrameworkArray, Kernel
from nkitools.launch.frameworks import arrays_in
from nkitools.targets.peaks import Peaks, peaks_of
from nkitools.targets.target import Device, kernel_name


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
            benchmark.group = f"{run.kernel}({', '.join(_described(array) for array in given)})"
        run.outputs = prepared.fetch(benchmark(prepared.launch))
    nbytes = sum(array.nbytes for array in [*given, *arrays_in(run.outputs)])
    benchmark.extra_info.update(
        kernel=run.kernel,
        target=device.key,
        chip=run.chip,
        **device.facts(),
        dtypes=sorted({_dtype(array) for array in given}),
        bytes=nbytes,
        compile_seconds=prepared.compile_seconds,
    )
    if benchmark.stats is not None:  # pytest-benchmark is disabled under xdist: the kernel ran, nothing was timed
        dtype = _dtype(given[0]) if given else ""
        benchmark.extra_info.update(judged(benchmark.stats.stats.min, nbytes, operations, peaks_of(run.chip), dtype))
    return run.outputs


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


def _described(array: FrameworkArray) -> str:
    return f"{_dtype(array)}[{','.join(map(str, array.shape))}]"


def _dtype(array: FrameworkArray) -> str:
    return str(array.dtype).removeprefix("torch.")
