"""Targets: nkitools' own simulator, AWS's, a NeuronCore, a TPU or a GPU.

Every target answers two questions: can it run here, and if not, what was looked for and not found (``available``); and
what happened when this kernel ran (``run``). Looking opens no device and imports nothing that is not installed.

The names are imported when they are first used: every pytest session asks this package whether AWS's modules are here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nkitools.targets.choice import Found, device_for, devices, missing_devices, simulator_for
    from nkitools.targets.target import Availability, Device, Target, WrongDevice

__all__ = [
    "Availability", "Device", "Found", "Target", "WrongDevice", "device_for", "devices", "missing_devices",
    "simulator_for",
]  # fmt: skip

_OF_TARGETS = ("Availability", "Device", "Target", "WrongDevice")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from nkitools.targets import choice, target

    return getattr(target if name in _OF_TARGETS else choice, name)
