"""Where a kernel runs: nkitools' own simulator, AWS's, a NeuronCore or a TPU.

Every target answers two questions: can it run here, and if not, what was looked for and not found (``available``); and
what happened when this kernel ran (``run``). Looking imports nothing that is not installed and is done once a process.
"""

from nkitools.targets.choice import device_for, missing_devices, simulator_for
from nkitools.targets.target import Availability, Target

__all__ = ["Availability", "Target", "device_for", "missing_devices", "simulator_for"]
