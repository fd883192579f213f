"""``nki.isa.constants``: undocumented, but public kernels import it; the same enum objects as ``nki.isa``."""

from __future__ import annotations

from nkitools.dialects.legacy.aws_names.enums import dge_mode, dma_engine, engine, nc_version, oob_mode, reduce_cmd

__all__ = ["dge_mode", "dma_engine", "engine", "nc_version", "oob_mode", "reduce_cmd"]
