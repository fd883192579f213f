"""A compiled kernel (NEFF) on a NeuronCore without a framework: launched by nrtpy, timed by nrtpy or neuron-explorer.

Run as a script, in a process of its own, it times the NEFF of a request (`request`) and prints the answer as JSON. The
file imports nothing of nkitools, so that such a process begins quickly.

Sources: the pages of nrtpy (``load_from_neff``, ``from_numpy``, ``benchmark(mode="device")``) and of neuron-explorer
(``capture``, ``view --output-format summary-json``) for SDK 2.32 and 2.33. The copy of nrtpy that comes with nki calls
its classes ``SpikeModel`` and ``SpikeTensor``. From public reports: ``nrtpy._nrtpy.SystemTraceSession``, and that
``benchmark`` counts a launch on two physical cores twice.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

_WARM_UP = 5
_EXECUTIONS = 20
_CLASSES = (("SpikeModel", "SpikeTensor"), ("NrtpyModel", "NrtpyTensor"))
_TOOLS = "/opt/aws/neuron/bin"
_LIMIT_SECONDS = 300


class NoDeviceTime(Exception):
    """The time of the NeuronCore could not be measured; the text says why."""


@dataclass(frozen=True)
class DeviceTime:
    """The time that executions of a kernel took on the NeuronCore, without the host."""

    seconds: float
    """The mean of an execution."""
    least_seconds: float
    """The fastest execution."""
    executions: int
    """How many executions were measured."""
    tool: str
    """The tool that measured them, with its version."""


class Launcher:
    """A NEFF on the first NeuronCore of this process, with its inputs there."""

    def __init__(self, neff: Path, arrays: Mapping[str, Any]) -> None:
        self._module, self._names = _nrtpy()
        model, tensor = (getattr(self._module, name) for name in self._names)
        self._model = model.load_from_neff(str(neff), core_id=0)
        named = _by_tensor(list(self._model.input_tensors_info), arrays)
        self._inputs = {name: tensor.from_numpy(array, name=name) for name, array in named.items()}

    def launch(self) -> list[Any]:
        """Execute the NEFF once and return its outputs, tensors on the device, in the NEFF's order."""
        outputs = self._model(inputs=self._inputs)
        return [outputs[name] for name in self._model.output_tensors_info]

    def device_time(self, degree: int) -> DeviceTime:
        """Measure executions on a logical core of ``degree`` physical cores, each execution once.

        NoDeviceTime where this nrtpy cannot count so.
        """
        if degree == 1:
            found = self._model.benchmark(self._inputs, warmup_iter=_WARM_UP, benchmark_iter=_EXECUTIONS, mode="device")
            return DeviceTime(found.mean_ms / 1e3, found.min_ms / 1e3, found.iterations, self._tool("benchmark"))
        durations = executions_in(self._traced())
        if len(durations) != _EXECUTIONS:
            raise NoDeviceTime(f"the system trace has {len(durations)} executions for {_EXECUTIONS} launches")
        tool = self._tool("SystemTraceSession")
        return DeviceTime(sum(durations) / len(durations), min(durations), len(durations), tool)

    def _traced(self) -> list[dict[str, Any]]:
        """Return the events of launches. The class is private: a version without it is refused by name."""
        session = getattr(import_module("nrtpy._nrtpy"), "SystemTraceSession", None)
        if session is None:
            raise NoDeviceTime(f"{self._tool('')} has no SystemTraceSession, which tells two cores of a launch apart")
        for _ in range(_WARM_UP):
            self.launch()
        with session() as trace:
            for _ in range(_EXECUTIONS):
                self.launch()
            return list(json.loads(trace.fetch_events_json())["events"])

    def _tool(self, how: str) -> str:
        return " ".join(part for part in (_version("nrtpy", "nki"), f"({self._names[0]}{how and f', {how}'})") if part)


def executions_in(events: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return the seconds of each execution in a system trace: of the physical cores of a launch the slowest one.

    Each core has a clock of its own, so that the times of two cores are not compared.
    """
    began: dict[tuple[Any, Any], float] = {}
    slowest: dict[Any, float] = {}
    for event in events:
        if event["event_type"] != "nc_exec_running":
            continue
        key = (event.get("nc_idx"), event["tracking_id"])
        now = float(event["data"].get("nc_timestamp_ns", event.get("timestamp_ns")))
        if event["phase"] == "start":
            began[key] = now
        elif key in began:
            execution = event["data"]["exec_id"]
            slowest[execution] = max(slowest.get(execution, 0.0), (now - began.pop(key)) / 1e9)
    return list(slowest.values())


def has_nrtpy() -> bool:
    """Return whether AWS's nrtpy can be imported. Imports nothing."""
    return find_spec("nrtpy") is not None


def _nrtpy() -> tuple[Any, tuple[str, str]]:
    """Return the module nrtpy and the names of its classes; NoDeviceTime where it has neither pair."""
    try:
        module = import_module("nrtpy")
    except ImportError as error:
        raise NoDeviceTime(f"nrtpy does not import: {error}") from None
    for names in _CLASSES:
        if all(hasattr(module, name) for name in names):
            return module, names
    raise NoDeviceTime(f"{_version('nrtpy', 'nki')} has neither SpikeModel nor NrtpyModel")


def _version(*distributions: str) -> str:
    """Return the first of the distributions that is installed, with its version."""
    for each in distributions:
        try:
            version = metadata.version(each)
        except metadata.PackageNotFoundError:
            continue
        return f"{each} {version}" if each == distributions[0] else f"{distributions[0]} of {each} {version}"
    return distributions[0]


def _by_tensor(tensors: Sequence[str], arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arrays by the names of the NEFF's inputs: those of the parameters, else in their order.

    An input that is an output too has a longer name.
    """
    plain = [name.removesuffix(".must_alias_input") for name in tensors]
    if set(plain) == set(arrays):
        return {name: arrays[short] for name, short in zip(tensors, plain, strict=True)}
    if len(tensors) != len(arrays):
        raise NoDeviceTime(f"the NEFF has the inputs {', '.join(tensors)}, and the kernel got {', '.join(arrays)}")
    return dict(zip(tensors, arrays.values(), strict=True))


def explorer() -> str | None:
    """Return the path of neuron-explorer; None if it is not installed."""
    return shutil.which("neuron-explorer") or shutil.which("neuron-explorer", path=_TOOLS)


def by_explorer(tool: str, neff: Path, arrays: Mapping[str, Path], folder: Path) -> DeviceTime:
    """Capture the second execution of a NEFF, which is warm, with inputs from files; return the time that it took."""
    inputs = [part for name, file in arrays.items() for part in (name, str(file))]
    _said(tool, "capture", "-n", str(neff), "-s", str(folder / "profile.ntff"), "--profile-nth-exec=2", *inputs)
    traces = sorted(folder.glob("*exec_2*.ntff")) or sorted(folder.glob("*.ntff"))
    if not traces:
        raise NoDeviceTime("neuron-explorer capture wrote no profile")
    told = _said(tool, "view", "-n", str(neff), "-s", str(traces[0]), "--output-format", "summary-json")
    summaries = json.loads(told[told.index("{") :] if "{" in told else "{}")
    times = [each["total_time"] for each in summaries.values() if isinstance(each, dict) and each.get("total_time")]
    if not times:
        raise NoDeviceTime("the summary of neuron-explorer has no total_time")
    version = (_said(tool, "--version").strip().splitlines() or [""])[0].removeprefix("neuron-explorer").strip()
    return DeviceTime(max(times), max(times), 1, f"neuron-explorer {version}")


def _said(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LIMIT_SECONDS)
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines()
        raise NoDeviceTime(f"neuron-explorer {command[1]} failed: {words[-1] if words else done.returncode}")
    return done.stdout


def request(neff: Path, arrays: Mapping[str, Any], degree: int, folder: Path) -> Path:
    """Write what a process needs to time a NEFF into ``folder``, and return the file of the request."""
    files = {}
    for number, (name, array) in enumerate(arrays.items()):
        file = folder / f"input{number}.npy"
        np.save(file, array.view(f"V{array.itemsize}") if array.dtype.kind == "V" else array)
        files[name] = [str(file), str(array.dtype)]
    path = folder / "request.json"
    path.write_text(json.dumps({"neff": str(neff), "degree": degree, "arrays": files}), encoding="utf-8")
    return path


def answer(path: Path) -> dict[str, Any]:
    """Return the time of a request's NEFF as plain data: by nrtpy where it is here, else by neuron-explorer."""
    told = json.loads(path.read_text(encoding="utf-8"))
    neff, reasons = Path(told["neff"]), []
    if has_nrtpy():
        arrays = {name: _read(Path(file), dtype) for name, (file, dtype) in told["arrays"].items()}
        try:
            return asdict(Launcher(neff, arrays).device_time(told["degree"]))
        except Exception as error:  # any: a runtime raises what it likes
            reasons.append(_reason(error))
    tool = explorer()
    if tool is None:
        reasons.append("neuron-explorer is not here")
    else:
        try:
            files = {name: Path(file) for name, (file, _) in told["arrays"].items()}
            return asdict(by_explorer(tool, neff, files, path.parent))
        except (NoDeviceTime, OSError, ValueError, subprocess.TimeoutExpired) as error:
            reasons.append(_reason(error))
    return {"missing": "; ".join(reasons if has_nrtpy() else ["nrtpy is not installed", *reasons])}


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, NoDeviceTime) else f"{type(error).__name__}: {error}"


def _read(file: Path, dtype: str) -> Any:
    array = np.load(file)
    if str(array.dtype) == dtype:
        return array
    import ml_dtypes

    return array.view(np.dtype(getattr(ml_dtypes, dtype)))


if __name__ == "__main__":
    print(json.dumps(answer(Path(sys.argv[1]))))
