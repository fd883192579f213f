"""TPUs, by way of JAX."""

from __future__ import annotations

import os
from functools import cache
from glob import glob
from typing import TYPE_CHECKING, Any

from nkitools.targets.packages import is_installed
from nkitools.targets.target import Availability, Target, kernel_name, refuse

if TYPE_CHECKING:
    from nkitools.record.run import Run

_NODES = ("/dev/accel*", "/dev/vfio/[0-9]*")


class TpuDevice(Target):
    """The TPUs that JAX can see."""

    name = "TPU"

    def available(self) -> Availability:
        """What ``jax.devices()`` says, asked only where it may say yes."""
        return _look()

    def run(self, kernel: Any, /, *args: Any, **kwargs: Any) -> Run:
        """Refused: this version finds the device and cannot drive it yet."""
        __tracebackhide__ = True
        refuse(
            kernel,
            f"function `{kernel_name(kernel)}` was asked to run on a TPU ({self.available().reason}); "
            "this version of nkitools cannot drive one yet",
            "Run the test with -m sim, or call the function itself: JAX runs it on the TPU.",
        )


@cache
def _look() -> Availability:
    if not is_installed("jax"):
        return Availability(False, "no TPU: module jax is not installed")
    if not _worth_asking():
        # Importing JAX takes a second, and its TPU client looks for a cloud metadata server for much longer.
        nodes = " or ".join(_NODES)
        return Availability(False, f"no TPU: found no device node {nodes}, so jax.devices() was not asked")
    import jax

    try:
        platforms = sorted({str(device.platform) for device in jax.devices()})
    except RuntimeError as error:
        return Availability(False, f"no TPU: jax.devices() failed: {error}")
    if "tpu" not in platforms:
        return Availability(False, f"no TPU: jax.devices() has {', '.join(platforms)} only")
    return Availability(True, "jax.devices()")


def _worth_asking() -> bool:
    """Whether a TPU is thinkable: there is a device node, or JAX was told to use one (a remote one has no node)."""
    told = os.environ.get("JAX_PLATFORMS", "").split(",")
    return bool({"tpu", "proxy"} & set(told)) or any(glob(pattern) for pattern in _NODES)
