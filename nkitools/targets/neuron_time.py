"""The time of a kernel on the NeuronCore itself: AWS's nki leaves the compiled kernel, and AWS's tools time that.

Sources: "NKI_ARTIFACTS_DIR" in the NKI documentation (a call with NumPy arrays leaves ``kernel.neff`` there, also where
the run fails); Neuron Runtime configuration; caches of neuronx-cc and of the native torch-neuronx.
"""

from __future__ import annotations

import inspect
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nkitools.launch.frameworks import framework_of
from nkitools.launch.nested_arguments import mapped
from nkitools.processes import TimedOut, output_of
from nkitools.targets.neff import DeviceTime, NoDeviceTime, request
from nkitools.targets.target import Device, function_of
from nkitools.targets.units import OWN_FOLDER, DeviceBusy, units_of

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Argument

ARTIFACTS = "NKI_ARTIFACTS_DIR"
_SCRIPT = Path(__file__).with_name("neff.py")
_LIMIT_SECONDS = 300


def measured(device: Device, kernel: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], degree: int) -> DeviceTime:
    """Return the time of a kernel on another free core of ``device``, measured in a process of its own.

    This process holds its core for the framework that launches the rounds. NoDeviceTime says why there is none.
    """
    neff, _ = kept_neff(kernel, args, kwargs)
    try:
        with tempfile.TemporaryDirectory() as folder, units_of([device], 0) as environment:
            file = request(neff, by_parameter(kernel, args, kwargs), degree, Path(folder))
            command = [sys.executable, "-P", str(_SCRIPT), str(file)]
            done = output_of(command, _LIMIT_SECONDS, env={**os.environ, **environment})
    except DeviceBusy:
        raise NoDeviceTime("no other core is free for the process that measures") from None
    except TimedOut as late:
        raise NoDeviceTime(f"the process that measures {late}") from None
    told = _last_object(done.stdout)
    if "missing" in told:
        raise NoDeviceTime(told["missing"])
    if not told:
        words = done.stderr.splitlines() or [done.end.described]
        raise NoDeviceTime(f"the process that measures failed: {words[-1]}")
    return DeviceTime(**told)


def _last_object(text: str) -> dict[str, Any]:
    """Return the JSON object of the last line; runtimes write lines of their own before."""
    try:
        told = json.loads((text.strip().splitlines() or ["{}"])[-1])
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def kept_neff(kernel: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Path, Any]:
    """Compile a kernel by a call with NumPy arrays, which runs it too; return the file that stays, and the outputs.

    NoDeviceTime where none stays.
    """
    folder = os.environ.get(ARTIFACTS)
    if not folder:
        raise NoDeviceTime(f"{ARTIFACTS} was not set before AWS's nki was imported")
    neff = Path(folder) / "kernel.neff"
    empty_own_folder()
    neff.unlink(missing_ok=True)
    here, named = mapped((args, dict(kwargs)), as_numpy)
    try:
        outputs = kernel(*here, **named)
    except Exception as error:
        raise NoDeviceTime(f"a call with NumPy arrays fails: {type(error).__name__}: {error}") from None
    if not neff.exists():
        raise NoDeviceTime(f"AWS's package has left no {neff.name} in {ARTIFACTS}")
    return neff, outputs


def empty_own_folder() -> None:
    """Empty the folder for compiled kernels where nkitools has made it: AWS's compiler wants a clean one."""
    folder = Path(os.environ.get(ARTIFACTS) or ".")
    if not folder.name.startswith(OWN_FOLDER) or not folder.is_dir():
        return
    for each in folder.iterdir():
        shutil.rmtree(each, ignore_errors=True) if each.is_dir() else each.unlink()


def by_parameter(kernel: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arrays among the arguments of a kernel as NumPy has them, by the names of their parameters."""
    bound = inspect.signature(function_of(kernel)).bind(*args, **kwargs)
    return {name: as_numpy(value) for name, value in bound.arguments.items() if framework_of(value) is not None}


def as_numpy(value: Argument) -> Any:
    """Return an array as a copy on the host: a kernel may write into it."""
    framework = framework_of(value)
    if framework is None:
        return value
    on_host: Any = getattr(value, "cpu", lambda: value)()
    return framework.to_numpy("argument", on_host).copy()


def compiled_with(first_call: Callable[[], object], folder: Path) -> tuple[float, str]:
    """Make the call that compiles; return its seconds, and whether a cache in ``folder`` answered (empty: no cache)."""
    before = {*folder.rglob("*.neff")} if folder.is_dir() else set()
    began = time.perf_counter()
    first_call()
    seconds = time.perf_counter() - began
    if not folder.is_dir():
        return seconds, ""
    new = len({*folder.rglob("*.neff")} - before)
    return seconds, f"compiled: {new} new in the cache" if new else "answered by the cache"
