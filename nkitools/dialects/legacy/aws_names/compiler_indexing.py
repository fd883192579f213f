"""``neuronxcc.nki.compiler.backends.neuron.indexing``: AWS's own, but public kernels annotate with ``TileIndex``."""

from __future__ import annotations

from typing import Any

from nkitools.dialects.absent import missing
from nkitools.dialects.legacy.indexing.indices import Index

__all__ = ["TileIndex"]

TileIndex = Index


def __getattr__(name: str) -> Any:
    return missing("neuronxcc.nki.compiler.backends.neuron.indexing", name, __all__)
