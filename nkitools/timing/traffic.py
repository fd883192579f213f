"""The bytes that a run moves from and to HBM, and its place under the roofs of its chip."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from nkitools.chip.dtypes import as_dtype
from nkitools.chip.numerics import Array
from nkitools.facts.generations import Generation
from nkitools.record.columns import Columns
from nkitools.record.time_estimate import Roofline, TensorTraffic
from nkitools.timing.operations import Operations


def traffic(runs: Sequence[Columns]) -> list[TensorTraffic]:
    """Return the traffic of each tensor in HBM; tensors of ranks stand apart."""
    found = []
    for columns in runs:
        record = columns.record
        moved = columns.of_plans(
            lambda plan: [0 if plan.names_only else 1 + bool(each) for each in plan.written], np.int64
        )
        nbytes = columns.of_layouts(lambda layout: 0 if layout.on_chip else layout.nbytes)
        for storage in np.unique(columns.storages[nbytes > 0]).tolist():
            mine, known = columns.storages == storage, record.storages.get(storage)
            found.append(
                TensorTraffic(
                    tensor=record.name_of(storage),
                    nbytes=0 if known is None else prod(known.shape) * as_dtype(known.dtype).itemsize,
                    read_bytes=int(nbytes[mine & (moved == 1)].sum()),
                    written_bytes=int(nbytes[mine & (moved == 2)].sum()),
                )
            )
    return found


def bytes_of_loads(runs: Sequence[Operations], chosen: Array) -> tuple[int, int]:
    """Return the bytes of all loads from HBM to the chip, and of some of them, by their positions in the run."""
    total = mine = base = 0
    for operations in runs:
        columns, loads = operations.columns, operations.loads
        nbytes = columns.of_layouts(lambda layout: layout.nbytes)[columns.first_operands[loads] + 1]
        total += int(nbytes.sum())
        mine += int(nbytes[np.isin(loads + base, chosen)].sum())
        base += columns.record.count
    return total, mine


def matmul_flops(runs: Sequence[Columns]) -> int:
    """Return the floating-point operations of all matmuls, without transposes."""
    flops = 0
    for columns in runs:
        record = columns.record
        plans = columns.first_of_plans()
        counts = np.bincount(columns.which, minlength=len(plans)).tolist()
        for (plan, first), count in zip(plans, counts, strict=True):
            if count and plan.name == "nc_matmul":
                _, stationary, moving = (access.layout for access in record.accesses(first)[:3])
                flops += count * 2 * stationary.elements * moving.free_elements
    return flops


def roofline(flops: int, flow: Sequence[TensorTraffic], latency_us: float, chip: Generation, cores: int) -> Roofline:
    """Return the place of a run under the roofs of its cores: bfloat16 matmuls, and the bandwidth of HBM."""
    moved = sum(each.read_bytes + each.written_bytes for each in flow)
    peak = 2 * chip.partitions * chip.stationary_fmax * chip.clocks.tensor * 1e9 * cores
    bandwidth = chip.hbm_bytes_per_second * cores
    intensity = flops / moved if moved else 0.0
    bounds = {"compute": flops / peak * 1e6, "memory": moved / bandwidth * 1e6}
    roof = max(bounds, key=bounds.__getitem__)
    return Roofline(flops=flops, hbm_bytes=moved, intensity=intensity, roof=roof, share=bounds[roof] / latency_us)
