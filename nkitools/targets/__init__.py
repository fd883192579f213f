"""Where a kernel runs: nkitools' own simulator, AWS's, a NeuronCore, a TPU or a GPU.

Every target answers two questions: can it run here, and if not, what was looked for and not found (``available``); and
what happened when this kernel ran (``run``). Looking imports nothing that is not installed and is done once a process.
"""

from nkitools.targets.choice import Found, device_for, devices, missing_devices, simulator_for
from nkitools.targets.target import Availability, Device, Target, WrongDevice

__all__ = [
    "Availability",
    "Device",
    "Found",
    "Target",
    "WrongDevice",
    "device_for",
    "devices",
    "missing_devices",
    "simulator_for",
]
