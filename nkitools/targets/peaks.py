"""The peaks of a chip: memory bandwidth and operations a second, as published."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from nkitools.facts.generations import generation_of


class Peaks(NamedTuple):
    """The most that one core, as the runtime counts them, can compute, and the memory of its device can move.

    ``bytes_per_second`` is None where none is published; ``operations_per_second`` by dtype, a multiply-add counts two.
    """

    chip: str
    bytes_per_second: float | None
    operations_per_second: Mapping[str, float]


def peaks_of(chip: str) -> Peaks | None:
    """Return the peaks of a NeuronCore by generation, or of a TPU by JAX's name of its kind; None for others."""
    return _of_neuron(chip) or _of_tpu(chip)


def _of_neuron(chip: str) -> Peaks | None:
    try:
        generation = generation_of(chip)
    except ValueError:
        return None
    cores = int(os.environ.get("NEURON_LOGICAL_NC_CONFIG") or 1)  # where it is not set, a kernel takes one (nki.jit)
    # The array of the Tensor Engine multiplies and adds in each cell each cycle; float32 takes four passes
    # (trainium_inferentia2_arch, "Tensor Engine").
    narrow = cores * 2 * generation.partitions * generation.stationary_fmax * generation.clocks.tensor * 1e9
    operations = {"bfloat16": narrow, "float16": narrow, "float32": narrow / 4}
    if generation.double_row_matmul:
        operations |= dict.fromkeys(("float8_e4m3", "float8_e5m2", "float8_e4m3fn"), 2 * narrow)
    # The table has a core's share of the memory; one core alone may have more than that.
    return Peaks(chip, generation.cores_per_device * generation.hbm_bytes_per_second, operations)


def _of_tpu(kind: str) -> Peaks | None:
    from nkitools.pallas.chips import CHIPS
    from nkitools.pallas.performance import PEAKS, peak

    chip = next((chip.name for chip in CHIPS.values() if chip.device_kind == kind), None)
    if chip is None or chip not in PEAKS:
        return None
    return Peaks(chip, None, {dtype: peak(dtype, chip) for dtype in PEAKS[chip].operations})
