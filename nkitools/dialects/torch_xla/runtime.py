"""``torch_xla.runtime`` in simulation: one process, one device."""

from __future__ import annotations

from functools import partial

from nkitools.dialects.absent import missing_beside_kernels

__all__ = [
    "addressable_device_count", "device_type", "global_device_count", "global_ordinal", "local_ordinal",
    "local_process_count", "process_count", "process_index", "world_size",
]  # fmt: skip


def device_type() -> str:
    """Return ``CPU``, where tensors are in simulation."""
    return "CPU"


def _one() -> int:
    """Return 1, the number of processes and devices."""
    return 1


def _zero() -> int:
    """Return 0, the number of the one process and of its device."""
    return 0


addressable_device_count = global_device_count = local_process_count = process_count = world_size = _one
global_ordinal = local_ordinal = process_index = _zero
__getattr__ = partial(missing_beside_kernels, "torch_xla.runtime")
