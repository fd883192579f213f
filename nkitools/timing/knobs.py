"""The fitted layer of the timing model: eight knobs, apart from the documented costs of the instruction definitions.

The values are fitted on published latencies, which ``calibration.tsv`` beside this file lists with their estimates.
"""

from __future__ import annotations

from dataclasses import dataclass

from nkitools.chip.generations import Generation


@dataclass(frozen=True, kw_only=True)
class Knobs:
    """The fitted constants of the timing model for one generation of chips."""

    launch_us: float  # from the start of a kernel to its first instruction, and from its last one to its end
    dma_latency_ns: float  # between the last byte of a transfer and the instruction that waits for it
    dma_bandwidth: float  # the share of the published bandwidth of the DMA engines that transfers reach
    descriptor_ns: float  # the least time that a DMA engine takes for one descriptor
    dma_issue_ns: float  # the least time between the starts of two transfers, which differs by generation
    matmul_gap_cycles: float  # between two matmuls, which differs by generation
    instruction_gap_cycles: float  # between two instructions of the Vector, Scalar or GpSimd Engine
    result_ns: float  # between the end of an instruction and the start of one that reads its result


_COMMON = {
    "launch_us": 10.0,
    "dma_latency_ns": 1300.0,
    "dma_bandwidth": 0.95,
    "descriptor_ns": 16.0,
    "instruction_gap_cycles": 4.0,
    "result_ns": 143.0,
}
_BY_GENERATION = {
    2: {"dma_issue_ns": 60.0, "matmul_gap_cycles": 80.0},
    3: {"dma_issue_ns": 500.0, "matmul_gap_cycles": 24.0},
}
CALIBRATED = frozenset(_BY_GENERATION)  # generations with published latencies


def knobs_of(chip: Generation) -> Knobs:
    """Return the knobs of a generation; one that is not calibrated has those of the newest calibrated one."""
    return Knobs(**_COMMON, **_BY_GENERATION[min(chip.version, max(CALIBRATED))])
