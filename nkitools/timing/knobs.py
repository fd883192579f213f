"""The fitted layer of the timing model: eight knobs, apart from the documented costs of the instruction definitions.

The values are fitted on published latencies, which ``calibration.tsv`` beside this file lists with their estimates
(``make calibrate``). They stand in ``knobs.json``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import TypedDict

from nkitools.facts.generations import Generation


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


class Values(TypedDict):
    """The values of all knobs, as ``knobs.json`` has them."""

    common: dict[str, float]  # of all generations
    by_generation: dict[str, dict[str, float]]  # by the short name of the generation, oldest first


KNOBS: Values = json.loads(files("nkitools.timing").joinpath("knobs.json").read_text())
BY_GENERATION = KNOBS["by_generation"]


def is_calibrated(chip: Generation) -> bool:
    """Return whether latencies of a generation are published, on which its knobs are fitted."""
    return chip.short_name in BY_GENERATION


def knobs_of(chip: Generation, values: Values | None = None) -> Knobs:
    """Return the knobs of a generation; one that is not calibrated has those of the newest calibrated one."""
    values = KNOBS if values is None else values
    by_generation = values["by_generation"]
    own = by_generation.get(chip.short_name, by_generation[list(by_generation)[-1]])
    return Knobs(**values["common"], **own)
