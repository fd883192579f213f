"""``neuronxcc.nki``: the legacy dialect (AWS SDK 2.26)."""

from __future__ import annotations

from typing import Any

from nkitools.dialects.absent import missing
from nkitools.dialects.legacy.kernels.kernel import baremetal, benchmark, jit, profile, simulate_kernel, trace
from nkitools.dialects.legacy.tiles.tensor import Tensor

tensor = Tensor

__all__ = ["baremetal", "benchmark", "jit", "profile", "simulate_kernel", "tensor", "trace"]

DOCUMENTED = frozenset({"FrameworkKernel"})


def __getattr__(name: str) -> Any:
    return missing("neuronxcc.nki", name, DOCUMENTED)
