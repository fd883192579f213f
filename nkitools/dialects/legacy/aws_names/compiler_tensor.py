"""``neuronxcc.nki.compiler.backends.neuron.tensor``: AWS's own, but public kernels import the class of tiles."""

from __future__ import annotations

from typing import Any

from nkitools.dialects.absent import missing
from nkitools.dialects.legacy.tiles.tensor import Tensor

__all__ = ["local_tile"]

local_tile = Tensor


def __getattr__(name: str) -> Any:
    return missing("neuronxcc.nki.compiler.backends.neuron.tensor", name, __all__)
