"""``neuronxcc.nki.compiler.backends.neuron.tensor``: AWS's own, but public kernels import the class of tiles."""

from __future__ import annotations

from nkitools.dialects.legacy.tiles.tensor import Tensor

__all__ = ["local_tile"]

local_tile = Tensor
