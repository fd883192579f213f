"""``nki.isa.constants``: undocumented, but public kernels import it; the same enum objects as ``nki.isa``."""

from __future__ import annotations

from typing import Any

from nkitools.dialects.absent import missing
from nkitools.dialects.legacy.aws_names.enums import dge_mode, dma_engine, engine, nc_version, oob_mode, reduce_cmd

__all__ = ["dge_mode", "dma_engine", "engine", "nc_version", "oob_mode", "reduce_cmd"]


def __getattr__(name: str) -> Any:
    return missing("neuronxcc.nki.isa.constants", name, __all__)
