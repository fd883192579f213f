"""NeuronCores of an AWS instance (Trainium, Inferentia2)."""

from __future__ import annotations

from functools import cache
from glob import glob
from typing import TYPE_CHECKING, Any

from nkitools.targets.packages import aws_package, is_installed
from nkitools.targets.target import Availability, Target, kernel_name, refuse

if TYPE_CHECKING:
    from nkitools.record.run import Run

_NODES = "/dev/neuron*"


class NeuronDevice(Target):
    """The NeuronCores that the driver of this machine shows."""

    name = "NeuronCore"

    def available(self) -> Availability:
        """A device node of the driver and a package that can reach it."""
        nodes, packages = device_nodes(), neuron_packages()
        if nodes and packages:
            return Availability(True, f"{nodes[0]}, {packages[0]}")
        missing = [] if nodes else [f"no device node {_NODES}"]
        if not packages:
            missing.append("neither module neuronxcc nor module torch_neuronx")
        return Availability(False, f"no NeuronCore: found {' and '.join(missing)}")

    def run(self, kernel: Any, /, *args: Any, **kwargs: Any) -> Run:
        """Refused: this version finds the device and cannot drive it yet."""
        __tracebackhide__ = True
        refuse(
            kernel,
            f"kernel `{kernel_name(kernel)}` was asked to run on a NeuronCore ({self.available().reason}); "
            "this version of nkitools cannot drive one yet",
            "Run the test with -m sim, or call the kernel through AWS's own packages.",
        )


@cache
def device_nodes() -> tuple[str, ...]:
    """The device nodes of the Neuron driver."""
    return tuple(sorted(glob(_NODES)))


def neuron_packages() -> tuple[str, ...]:
    """The installed packages that can reach a NeuronCore; the stand-in and the placeholders of PyPI are none."""
    found = ["neuronxcc"] if aws_package("neuronxcc", "nki") else []
    return (*found, "torch_neuronx") if is_installed("torch_neuronx") else tuple(found)
