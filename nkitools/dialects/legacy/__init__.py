"""``neuronxcc.nki``: the legacy dialect (AWS SDK 2.26)."""

from __future__ import annotations

from nkitools.dialects.legacy.kernels.kernel import baremetal, benchmark, jit, profile, simulate_kernel, trace
from nkitools.dialects.legacy.tiles.tensor import Tensor

tensor = Tensor

__all__ = ["baremetal", "benchmark", "jit", "profile", "simulate_kernel", "tensor", "trace"]
