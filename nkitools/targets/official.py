"""AWS's own simulators, where AWS's packages are installed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from nkitools.facts import options
from nkitools.targets.packages import aws_package
from nkitools.targets.target import Availability, Target, kernel_name, refuse

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Argument, Kernel
    from nkitools.record.run import Run

_CHIP_VARIABLE = "NEURON_PLATFORM_TARGET_OVERRIDE"
_PRECISION_VARIABLE = "NKI_PRECISE_FP"
_PRECISIONS = {"precise": "1", "full": "0"}
# What nkitools.simulate takes beside the kernel's arguments, and AWS's simulators do not.
_OURS_ALONE = ("grid", "nki_version", "ranks", "rules", "sum_order", "watch")
# What a run of theirs calls its target.
NAMES = ("nki.simulate", "neuronxcc.nki.simulate_kernel")
_REMEDY = "Install AWS's nki or neuronx-cc from AWS's package index, or take --nki-simulator=builtin."


class OfficialSimulator(Target):
    """``nki.simulate``, or the older ``neuronxcc.nki.simulate_kernel``.

    They have no findings and write device prints to stdout, so a run of theirs has neither.
    """

    key = "official"
    name = "official simulator"
    prints = "AWS's simulators write them to stdout"

    def available(self) -> Availability:
        """Return whether AWS's own package is here: neither our stand-in for it nor a placeholder from PyPI."""
        found = entry_point()
        return Availability(False, f"{found} {_REMEDY}") if isinstance(found, str) else Availability(True, found[0])

    def run(self, kernel: Kernel, /, *args: Argument, **kwargs: Any) -> Run:
        """Run ``kernel`` in AWS's simulator, on the chip and in the precision of the options.

        Raises ``NotModelled`` where AWS's simulator is absent and for ``grid``, ``ranks`` and ``rules``.
        """
        __tracebackhide__ = True
        found = entry_point()
        if isinstance(found, str):
            refuse(kernel, f"kernel `{kernel_name(kernel)}` was asked to run in AWS's simulator: {found}", _REMEDY)
        name, simulate = found
        for keyword in _OURS_ALONE:
            if keyword in kwargs:
                message = f"{name} has no parameter `{keyword}`; it is one of nkitools' own simulator"
                remedy = f"Leave `{keyword}` out, index the kernel with its grid, or take --nki-simulator=builtin."
                refuse(kernel, message, remedy)
        return _record(kernel, name, simulate, args, kwargs)


def _record(
    kernel: Kernel, name: str, simulate: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Run:
    from nkitools.record.run import Run
    from nkitools.record.run_session import session

    chip = kwargs.pop("chip", None) or options.value("chip")
    precision = _PRECISIONS.get(str(options.value("precision")))
    run = Run(kernel=kernel_name(kernel), target=name, chip=str(chip or os.environ.get(_CHIP_VARIABLE, "")))
    run.precision = "full" if (precision or os.environ.get(_PRECISION_VARIABLE)) == "0" else "precise"
    with session(run), _variable(_CHIP_VARIABLE, chip), _variable(_PRECISION_VARIABLE, precision):
        run.outputs = simulate(kernel, *args, **kwargs)
    return run


@contextmanager
def _variable(name: str, value: options.Value) -> Iterator[None]:
    """AWS's simulator reads its options from the environment; None leaves a variable as it is."""
    if value is None:
        yield
        return
    before = os.environ.get(name)
    os.environ[name] = str(value)
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def entry_point() -> tuple[str, Callable[..., Any]] | str:
    """Return the name of AWS's simulator and the function that runs a kernel, or a sentence why there is none."""
    modern = _real("nki", "isa", "simulate")
    if isinstance(modern, ModuleType):
        return NAMES[0], lambda kernel, *args, **kwargs: modern.simulate(kernel)(*args, **kwargs)
    legacy = _real("neuronxcc", "nki", "simulate_kernel")
    if isinstance(legacy, ModuleType):
        return NAMES[1], legacy.simulate_kernel
    return f"AWS's simulator is not installed: {modern}; {legacy}."


def _real(package: str, part: str, function: str) -> ModuleType | str:
    spec = aws_package(package, part)
    if spec is None:
        return f"no package {package} of AWS's own"
    name = package if function == "simulate" else f"{package}.{part}"
    try:
        module = import_module(name)
    except Exception as error:  # any: an install in parts raises what it likes
        return f"{name} does not import ({type(error).__name__}: {error})"
    if not _is_of(module, spec):
        return f"nkitools stands in for {name} (nki_stand_in = always)"
    return module if hasattr(module, function) else f"{name} has no {function}"


def _is_of(module: ModuleType, spec: ModuleSpec) -> bool:
    """Return whether ``module`` was loaded from the package of ``spec``, and not by a stand-in for it."""
    places = tuple(spec.submodule_search_locations or ())
    return bool(places) and (getattr(module, "__file__", None) or "").startswith(places)
