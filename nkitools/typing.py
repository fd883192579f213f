"""Types to annotate tests with: the fixtures of the pytest plugin, and what they give.

``def test_double(run_kernel: RunKernel, device_prints: DevicePrints) -> None``. An editor then completes
``run_kernel.run.findings``. Importing this module imports pytest.
"""

from __future__ import annotations

from nkitools.pytest_plugin.fixtures import GradientReminder, KernelBenchmark, KernelsRan
from nkitools.pytest_plugin.fixtures import KernelRunner as RunKernel
from nkitools.pytest_plugin.fixtures import NegativeTest as ExpectFinding
from nkitools.pytest_plugin.prints_fixture import DevicePrints
from nkitools.record.element_slice import Slice
from nkitools.record.outputs import Outputs
from nkitools.record.prints.device_print import Print
from nkitools.record.run import Run
from nkitools.record.time_estimate import Estimate
from nkitools.rules.finding import Finding

__all__ = [
    "DevicePrints", "Estimate", "ExpectFinding", "Finding", "GradientReminder", "KernelBenchmark", "KernelsRan",
    "Outputs", "Print", "Run", "RunKernel", "Slice",
]  # fmt: skip
