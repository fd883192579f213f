"""A kernel through AWS's compiler alone, without a device: what it makes of it, or its error at the author's line.

Sources: NKI documentation (``NKI_ARTIFACTS_DIR``: a call with NumPy arrays leaves ``kernel.neff``, also where the run
fails; ``NKI_DEBUG_INFO``). From public reports of nki 0.6 on hosts without a device: ``compile_kernel_to_nir`` and
``compile_bir_to_neff``, the compiler's predicted latency, and messages that end in ``Source Kernel "module.function",
line 12``. These names are private: another version is compiled by a call.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import re
import sys
import sysconfig
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nkitools.facts.supported_versions import release
from nkitools.launch.frameworks import framework_of
from nkitools.launch.free_memory import memory_limit
from nkitools.launch.nested_arguments import mapped
from nkitools.platforms import NEURON_NODES, limited_data
from nkitools.targets import machine
from nkitools.targets.neuron_time import ARTIFACTS, as_numpy, empty_own_folder
from nkitools.targets.packages import aws_package, version_of
from nkitools.targets.target import function_of, kernel_name, refuse

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Kernel

_API = {(0, 6): ("nki.framework.compiled", ("nki.compiler.ncc_driver", "nki.compiler.driver"))}
_SOURCE = re.compile(r'Source Kernel "([\w.]+)", line (\d+)')
_INSTRUCTION = re.compile(r"\bI-\d+(?:-\d+)*\b")
_DEBUG_INFO = "kernel_debug_info.json"
# Whose frames are not the author's: AWS's packages, nkitools, Python and what is installed beside it.
_OURS = str(Path(__file__).parents[1])
_PYTHON = tuple(sysconfig.get_path(name) for name in ("stdlib", "purelib"))


@dataclass(frozen=True)
class Compiled:
    """A kernel as AWS's compiler has made it."""

    chip: str
    """The chip that it is compiled for."""
    degree: int
    """The physical cores of a logical one (LNC)."""
    how: str
    """By what: the Python interface of nki, or a call; with the version."""
    seconds: float
    """How long that took."""
    predicted_us: float | None
    """The latency that the compiler predicts; None where this version does not say it."""
    neff_bytes: int | None
    """The size of the compiled kernel."""

    def sentence(self, name: str) -> str:
        """Return all of it in one line."""
        predicted = "" if self.predicted_us is None else f"; the compiler predicts {self.predicted_us:.3g} us"
        return f"{name}: compiled for {self.chip}, LNC {self.degree}, by {self.how} in {self.seconds:.1f} s{predicted}"


class CompileFailed(Exception):
    """AWS's compiler does not take a kernel: the place in the author's file, and the compiler's words."""

    def __init__(self, place: tuple[str, int], name: str, words: str) -> None:
        super().__init__(f"{place[0]}:{place[1]}: AWS's compiler does not take kernel `{name}`: {words}")
        self.place = place
        self.words = words


def compile_kernel(kernel: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], chip: str, degree: int) -> Compiled:
    """Compile a kernel of AWS's ``nki`` for ``chip`` within the memory of the option ``memory``.

    `CompileFailed` if the compiler refuses it; NK607 if it cannot be compiled without being run.
    """
    __tracebackhide__ = True
    empty_own_folder()
    folder = Path(os.environ[ARTIFACTS])
    neff = folder / "kernel.neff"
    neff.unlink(missing_ok=True)
    here, named = mapped((args, dict(kwargs)), lambda value: value if framework_of(value) is None else as_numpy(value))
    version = version_of("nki") or ""
    interface = _interface(release(version)[:2])
    began = time.perf_counter()
    try:
        limit = memory_limit()
        with limited_data(None if limit is None else limit[0]):
            if interface is None:
                _by_call(kernel, here, named, neff)
                predicted, how = None, f"a call of nki {version}".strip()
            else:
                predicted, how = _by_interface(interface, kernel, here, named, chip, degree, neff), f"nki {version}"
    except _NotCompiled as error:
        cause = error.__cause__ or error
        failed = CompileFailed(_place(cause, kernel, folder), kernel_name(kernel), _words(cause))
        raise failed from None
    seconds = time.perf_counter() - began
    return Compiled(chip, degree, how, seconds, predicted, neff.stat().st_size if neff.exists() else None)


class _NotCompiled(Exception):
    """The compiler has failed; its own error is the cause of this one."""


def _by_call(kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any], neff: Path) -> None:
    """Call the kernel where no device is: it is compiled, and then it cannot be run."""
    if machine.nodes(NEURON_NODES):
        message = (
            f"kernel `{kernel_name(kernel)}` would run: nki {version_of('nki') or 'without a version'} compiles by a "
            "call, and a NeuronCore is here; the versions whose compiler can be called alone are "
            f"{', '.join('.'.join(map(str, each)) for each in _API)}"
        )
        refuse(kernel, message, "Run it (-m hw), or compile on a machine without a device.")
    try:
        kernel(*args, **kwargs)
    except Exception as error:
        if not neff.exists():
            raise _NotCompiled from error
    if not neff.exists():
        raise _NotCompiled(f"AWS's package has left no {neff.name}, and no error")


def _interface(version: tuple[int, ...]) -> dict[str, Any] | None:
    """Return the functions of a known version by their names; None for others, and where one has moved."""
    if version not in _API:
        return None
    first, drivers = _API[version]
    try:
        found = {"compile_kernel_to_nir": import_module(first).compile_kernel_to_nir}
    except (ImportError, AttributeError):
        return None
    for name in drivers:
        with contextlib.suppress(ImportError):
            found |= {name: each for name, each in vars(import_module(name)).items() if name in _OF_DRIVER}
    return found if "CompileOptions" in found and len(found) > 2 else None


_OF_DRIVER = ("CompileOptions", "compile_bir_to_neff", "_compile_bir_to_neff")


def _by_interface(
    interface: dict[str, Any], kernel: Any, args: Any, kwargs: dict[str, Any], chip: str, degree: int, neff: Path
) -> float | None:
    """Compile without a device by the functions of nki 0.6; return the predicted microseconds."""
    bound = inspect.signature(function_of(kernel)).bind(*args, **kwargs)
    bound.apply_defaults()
    inputs = dict(bound.arguments)
    try:
        settings = interface["CompileOptions"](
            target=chip, lnc=degree, artifacts_dir=str(neff.parent), output_path=str(neff), emit_predicted_latency=True
        )
        nir = interface["compile_kernel_to_nir"](kernel, inputs=inputs, compile_opts=settings, enable_cache=False)
        if "compile_bir_to_neff" in interface:
            interface["compile_bir_to_neff"](
                settings,
                nir,
                input_arrays=[],
                argument_names=[each.name for each in nir.descriptor.input_specs],
                output_arg_names=[each.name for each in nir.descriptor.output_specs],
            )
        else:
            arrays = {name: value for name, value in inputs.items() if framework_of(value) is not None}
            interface["_compile_bir_to_neff"](nir, settings, arrays)
    except Exception as error:
        raise _NotCompiled from error
    predicted = getattr(nir, "total_time_ns", None)
    return None if predicted is None else float(predicted) / 1e3


def _place(error: BaseException, kernel: Kernel, folder: Path) -> tuple[str, int]:
    """Return the author's line of an error: a frame, else what the message says, else the kernel's first line."""
    code = getattr(function_of(kernel), "__code__", None)
    own = (code.co_filename, code.co_firstlineno) if code else ("<unknown>", 0)
    frames = traceback.extract_tb(error.__traceback__)
    called = [number for number, frame in enumerate(frames) if not frame.filename.startswith(_OURS)]
    authors = [frame for frame in frames[called[0] :] if _is_of_author(frame.filename)] if called else []
    if authors:
        return authors[-1].filename, authors[-1].lineno or 0
    text = "\n".join([str(error), *_logs(folder)])
    for module, line in reversed(_SOURCE.findall(text)):
        file = getattr(sys.modules.get(module.rpartition(".")[0]), "__file__", None)
        return file or own[0], int(line)
    for name in _INSTRUCTION.findall(text):
        found = _line_of_instruction(name, folder)
        if found is not None:
            return found
    return own


def _is_of_author(file: str) -> bool:
    specs = (aws_package("nki", "isa"), aws_package("neuronxcc", "nki"))
    of_aws = [place for spec in specs if spec is not None for place in spec.submodule_search_locations or ()]
    return not file.startswith((_OURS, "<", *_PYTHON, *of_aws))


def _logs(folder: Path) -> list[str]:
    return [path.read_text(errors="replace") for path in sorted(folder.rglob("log-neuron-cc.txt"))]


def _line_of_instruction(name: str, folder: Path) -> tuple[str, int] | None:
    """Return the line of an instruction by the debug information, which is there with NKI_DEBUG_INFO."""
    for path in folder.rglob(_DEBUG_INFO):
        with contextlib.suppress(ValueError, OSError):
            for entry in _entries(json.loads(path.read_text())):
                if name in map(str, entry.values()) and "file_path" in entry and "line_number" in entry:
                    return str(entry["file_path"]), int(entry["line_number"])
    return None


def _entries(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _entries(each)


def _words(error: BaseException) -> str:
    if isinstance(error, _NotCompiled):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
