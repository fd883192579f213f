"""What instructions cost, in cycles of their engine (isa costs of the SDK 2.20 to 2.26 docstrings)."""

from __future__ import annotations

from nkitools.chip.generations import Generation
from nkitools.chip.tensor import NkiTensor


def streaming(chip: Generation, data: NkiTensor, factor: float = 1.0) -> float:
    """``max(MIN_II, factor * N)`` with N elements per partition."""
    return max(float(chip.min_initiation_cycles), factor * data.layout.free_elements)


def is_half(*tensors: NkiTensor) -> bool:
    """Whether all operands are bfloat16 or float16, which the Vector Engine streams faster."""
    return all(tensor.dtype.name in ("bfloat16", "float16") for tensor in tensors)
