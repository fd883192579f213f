"""``neuronxcc.nki``: the legacy dialect (AWS SDK 2.26)."""

from __future__ import annotations

from typing import Any

from nkitools.dialects.legacy.kernels.kernel import baremetal, benchmark, jit, profile, simulate_kernel, trace
from nkitools.dialects.legacy.tiles.tensor import Tensor
from nkitools.dialects.public import find

tensor = Tensor

__all__ = ["baremetal", "benchmark", "jit", "profile", "simulate_kernel", "tensor", "trace"]


def __getattr__(name: str) -> Any:
    return find(globals(), "neuronxcc.nki", name)
