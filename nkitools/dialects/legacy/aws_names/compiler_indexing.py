"""``neuronxcc.nki.compiler.backends.neuron.indexing``: AWS's own, but public kernels annotate with ``TileIndex``."""

from __future__ import annotations

from nkitools.dialects.legacy.indexing.indices import Index

__all__ = ["TileIndex"]

TileIndex = Index
