"""Custom C++ operators on a NeuronCore, built from the same sources by AWS's own loader.

Source: Building and executing operators, Neuron Custom C++ Operators Developer Guide: ``custom_op.load`` compiles a
library and loads it into the process, and its operators are ``torch.ops.<library>.<operator>`` on XLA tensors.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from nkitools.chip.numerics import Array
from nkitools.facts.generations import generation_of
from nkitools.targets import machine
from nkitools.targets.neuron import NeuronByTorch
from nkitools.targets.neuron_packages import FOR_XLA, torch_backend
from nkitools.targets.target import Availability, Prepared, refuse

if TYPE_CHECKING:
    from nkitools.customop.build import Recipe
    from nkitools.customop.operator import Operator
    from nkitools.targets.neuron_ways import Way

# Supported chips: Neuron Custom C++ Operators, overview; maintenance: release notes of Neuron SDK 2.33.
ONLY_V2 = (
    "custom C++ operators are for NeuronCore-v2 only (trn1, inf2), and in maintenance since Neuron SDK 2.33; the "
    "NeuronCore of this machine is of {}"
)
# What AWS's loader calls, of the packages aws-neuronx-gpsimd-customop-lib and aws-neuronx-gpsimd-tools.
_LIBRARIES = {
    "aws-neuronx-gpsimd-customop-lib": "/opt/aws/neuron/gpsimd/script/build_custom_op.py",
    "aws-neuronx-gpsimd-tools": "/opt/aws/neuron/gpsimd/tools",
}
# Of the keywords of ``Operator.run``: how cores are simulated.
_OF_SIMULATION = frozenset({"timeout", "order", "threads", "isolation", "memory_limit", "debug"})


class NeuronOperatorDevice(NeuronByTorch):
    """The NeuronCores of `NeuronDevice`, for custom C++ operators."""

    taken = "a custom operator"
    prints = "printf goes to the host's terminal, where NEURON_RT_GPSIMD_STDOUT_QUEUE_SIZE_BYTES is set"

    def available(self) -> Availability:
        """Return a device node, torch_neuronx and torch_xla, AWS's libraries, and no newer NeuronCore than v2."""
        chip = self.chip()
        if chip and not generation_of(chip).custom_operators:
            return Availability(False, ONLY_V2.format(chip))
        found, backend = super().available(), torch_backend(chip)
        if found.ok and backend.kind == "native":
            message = (
                f"no way to run {self.taken} on it: {backend.reason} has no loader for custom operators. {FOR_XLA}"
            )
            return Availability(False, message)
        missing = [package for package, place in _LIBRARIES.items() if not machine.nodes(place)]
        if found.ok and missing:
            message = (
                f"no way to build {self.taken} for it: found no {' and no '.join(missing)}. Install them from AWS's "
                "package repository; they are in maintenance since Neuron SDK 2.33"
            )
            return Availability(False, message)
        return found

    def call(self, kernel: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Build the operator for the device, once in this process, and call it with its tensors there."""
        __tracebackhide__ = True
        function, way, tensors = _launchable(kernel, args, kwargs)
        return way.call(function, tensors, {})

    def prepare(self, kernel: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Prepared:
        """As `call`, with the tensors staying on the device."""
        __tracebackhide__ = True
        function, way, tensors = _launchable(kernel, args, kwargs)
        return self.without_neff(way.prepare(function, tensors, {}))


def _launchable(operator: Operator, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, Way, Any]:
    """Return the device's operator, the way to it, and its arguments as torch has them.

    Arguments are judged as in simulation (CO110 to CO112): the device would not say what is wrong with them.
    """
    __tracebackhide__ = True
    from nkitools.customop.arguments import give_back, take
    from nkitools.targets.neuron_ways import AsNumpy, TorchXla

    foreign = sorted(set(kwargs) - _OF_SIMULATION)
    if foreign:
        refuse(operator, f"a custom operator has no `{foreign[0]}`", f"Leave `{foreign[0]}` out.")
    taken = take(operator.name, operator.signature, tuple(_here(value) for value in args), operator.parameters)
    way: Way = TorchXla()
    tensors = tuple(give_back(_own(value), True) if hasattr(value, "dtype") else value for value in taken.values)
    return _on_device(operator), way if taken.torch else AsNumpy(way), tensors


def _here(value: Any) -> Any:
    """Return a tensor on the CPU, to check it there."""
    return value.cpu() if hasattr(value, "cpu") and value.device.type != "cpu" else value


def _own(array: Array) -> Any:
    """Return an array that torch takes without a warning: it has no read-only tensors."""
    return array if array.flags.writeable else array.copy()


# Of each library that this process has loaded: what it was made of, and whether for all cores.
_loaded: dict[str, tuple[Recipe, bool]] = {}


def _on_device(operator: Operator) -> Any:
    __tracebackhide__ = True
    library = operator.library
    recipe = library.built.recipe
    known = _loaded.get(library.name)
    if known is None:
        _load(recipe, library.multicore)
        _loaded[library.name] = recipe, library.multicore
    elif known != (recipe, library.multicore):
        refuse(
            operator,
            f"library `{library.name}` was loaded on the device before, from {known[0].compute[0]} and with other "
            "settings than this operator's; a process has one library of a name",
            "Give one of the two another name in NEURON_LIBRARY, or run their tests in two sessions.",
        )
    return getattr(getattr(import_module("torch").ops, library.name), operator.name)


def _load(recipe: Recipe, multicore: bool) -> None:
    """Build and load a library with AWS's loader, in a directory that only this process uses."""
    directory = tempfile.mkdtemp(prefix="nkitools-operators-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    flags = {"extra_cflags": list(recipe.flags)} if recipe.flags else {}
    import_module("torch_neuronx.xla_impl.custom_op").load(
        name=recipe.name,
        compute_srcs=list(recipe.compute),
        shape_srcs=list(recipe.shape),
        build_directory=directory,
        multicore=multicore,
        **flags,
    )
