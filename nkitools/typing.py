"""Types for annotations: the fixtures of the pytest plugin, what they give, and what the functions of nkitools return.

``def test_double(run_kernel: RunKernel, device_prints: DevicePrints) -> None``. An editor then completes
``run_kernel.run.findings``. Importing this module imports pytest.
"""

from __future__ import annotations

from nkitools.authors_code.source_text import SourceChanged
from nkitools.precision.difference import Difference
from nkitools.precision.split import PrecisionSplit, TensorSplit
from nkitools.pytest_plugin.fixtures import KernelBenchmark, KernelsRan
from nkitools.pytest_plugin.fixtures import NegativeTest as ExpectFinding
from nkitools.pytest_plugin.kernel_runner import GradientReminder
from nkitools.pytest_plugin.kernel_runner import KernelRunner as RunKernel
from nkitools.pytest_plugin.prints_fixture import DevicePrints
from nkitools.record.dependences import Dependences
from nkitools.record.element_slice import Slice
from nkitools.record.expected_outputs import Reference
from nkitools.record.explained_errors import ExplainedError, ExplainedErrors
from nkitools.record.instruction_columns import InstructionColumns
from nkitools.record.instruction_record import InstructionRecord, OperandRecord
from nkitools.record.instruction_sequence import Instructions
from nkitools.record.outputs import Outputs
from nkitools.record.prints.device_print import Print
from nkitools.record.prints.summaries import Summary
from nkitools.record.run import Run
from nkitools.record.time_estimate import Estimate
from nkitools.record.watch.written import Written
from nkitools.report.first_difference import Diverging, Values
from nkitools.report.run_diff import Comparison
from nkitools.rules.finding import Finding, Picture
from nkitools.sweeps.sweep import StoreWarning, Sweep
from nkitools.sweeps.tune import Tuning, Variant
from nkitools.verdict.rows import Row, Verdict

__all__ = [
    "Comparison", "Dependences", "DevicePrints", "Difference", "Diverging", "Estimate", "ExpectFinding",
    "ExplainedError", "ExplainedErrors", "Finding", "GradientReminder", "InstructionColumns", "InstructionRecord",
    "Instructions", "KernelBenchmark", "KernelsRan", "OperandRecord", "Outputs", "Picture", "PrecisionSplit", "Print",
    "Reference", "Row", "Run", "RunKernel", "Slice", "SourceChanged", "StoreWarning", "Summary", "Sweep", "TensorSplit",
    "Tuning", "Values", "Variant", "Verdict", "Written",
]  # fmt: skip
