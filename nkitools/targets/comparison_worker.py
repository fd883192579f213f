"""A kernel of a file in a process of its own: run on one target, the run saved, or compiled by AWS's compiler.

Run as ``python -m nkitools.targets.comparison_worker`` with one argument, the request as JSON. A
process each, since one can import either AWS's packages or what stands in for them.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nkitools.kernel_file import Asked, BadRequest, asked, failure
from nkitools.kernel_settings import settings_of
from nkitools.processes.requests import refused, requested

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Kernel
    from nkitools.targets.target import Device


_SIMULATED = ("sim", "official")
COMPILE = "compile"  # the side of a kernel that is compiled alone
SIDES = (*_SIMULATED, "hw", "neuron", "tpu", "gpu")


def play(request: Mapping[str, Any]) -> None:
    """Run the side of ``request`` and save its run, beside it the one in full precision and the arguments."""
    from nkitools.facts import options
    from nkitools.precision.runs import copied
    from nkitools.targets.imports import stand_in

    side = request["side"]
    simulates = side == "sim"
    simulator = "official" if side == "official" else "builtin"
    # A device's environment first: frameworks read theirs when they are imported, and the file may import them.
    unit = _units(_devices_for(side, request.get("degree")))
    with unit, stand_in("always" if simulates else "auto"), _as_asked(request, simulator=simulator) as this:
        kernel, args, kwargs = this.kernel, this.args, this.kwargs
        if request.get("keep"):
            np.savez(request["keep"], *args, **kwargs)
        # Kernels may write into their arguments: what comes after must not see that.
        if simulates and _is_nki(kernel):
            with options.override(precision="full"):
                _run("sim", kernel, *copied((args, kwargs))).save(request["save"] + ".full")
        _run(side, kernel, *copied((args, kwargs))).save(request["save"])


def compile_alone(request: Mapping[str, Any]) -> None:
    """Compile the kernel of a request, and write its figures, else its error and the author's line, as JSON."""
    from nkitools.rules.finding import NotModelled
    from nkitools.targets.compilation import CompileFailed
    from nkitools.targets.neuron_compiler import NeuronCompiler

    device = NeuronCompiler(request.get("degree"))
    found = device.available()
    if not found.ok:
        raise BadRequest(found.reason)
    with _units([device]), _as_asked(request) as this:
        degree = {"grid": request["degree"]} if request.get("degree") else {}
        try:
            made = device.compiled(this.kernel, this.args, {**this.kwargs, **degree})
            answer: dict[str, Any] = {"compiled": asdict(made), "said": made.sentence(request["kernel"])}
        except CompileFailed as error:
            answer = {"compiled": None, "file": error.place[0], "line": error.place[1], "error": error.words}
        except NotModelled as error:
            raise BadRequest(str(error)) from None
    Path(request["save"]).write_text(json.dumps(answer), encoding="utf-8")


@contextmanager
def _as_asked(request: Mapping[str, Any], **said: str) -> Iterator[Asked]:
    """Provide the kernel of a request with its arguments, under the options and the settings that it names."""
    from nkitools.facts import options

    named = (request["file"], request["kernel"], request["inputs"], settings_of(request.get("settings", ())))
    with options.override(**{**request.get("options", {}), **said}), asked(*named) as this:
        yield this


@contextmanager
def _units(present: Sequence[Device]) -> Iterator[None]:
    """Hold a unit of each device, and set their environment: before the file imports what reads it."""
    from nkitools.targets.units import units_of

    with units_of(present, 0) as environment:
        os.environ.update(environment)
        for name in (name for device in present for name in device.hidden):
            os.environ.pop(name, None)
        yield


def _devices_for(side: str, degree: int | None) -> list[Device]:
    """Return the devices that ``side`` may mean; none for simulators."""
    from nkitools.targets import devices

    found = [] if side in _SIMULATED else [each for each in devices(_keys(side)) if each.available().ok]
    return [each.of_degree(degree) for each in found]


def _keys(side: str) -> tuple[str, ...]:
    return () if side == "hw" else (side,)


def _is_nki(kernel: Kernel) -> bool:
    from nkitools.targets.builtin import is_jax_function
    from nkitools.targets.gpsimd import is_custom_operator

    return not (is_jax_function(kernel) or is_custom_operator(kernel))


def _run(side: str, kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from nkitools.targets import device_for, simulator_for

    if side == "official" and not _is_nki(kernel):
        raise BadRequest("AWS's simulator runs NKI kernels alone")
    if side in _SIMULATED:
        target = simulator_for(kernel)
        found = target.available()
        if not found.ok:
            raise BadRequest(found.reason)
        rules = {"rules": "report"} if side == "sim" else {}
        return target.run(kernel, *args, **kwargs, **rules)
    device = device_for(kernel, _keys(side))
    if device.device is None:
        raise BadRequest(device.reason)
    return device.device.run(kernel, *args, **kwargs)


def main() -> int:
    """Exit code 0 where the answer is saved, 2 where the request was wrong, 1 where a device is busy."""
    from nkitools.targets.target import OtherDegree
    from nkitools.targets.units import DeviceBusy

    request = requested()
    try:
        (compile_alone if request["side"] == COMPILE else play)(request)
    except OtherDegree as error:
        if "degree" in request or request["side"] == COMPILE:
            return refused(error)
        again = json.dumps({**request, "degree": error.degree})
        # The degree must be set before AWS's packages are imported, and now they are.
        os.execv(sys.executable, [sys.executable, "-m", "nkitools.targets.comparison_worker", again])
    except BadRequest as error:
        return refused(error)
    except DeviceBusy as error:
        return refused(error, 1)
    except Exception as error:
        said = failure(error)
        if not said:
            raise
        return refused(said, 1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
