"""``nki.isa`` of the legacy dialect: instructions that return their result as a new tile."""

from __future__ import annotations

from typing import Any

from nkitools.dialects.absent import missing
from nkitools.dialects.legacy.compute import (
    activation,
    reciprocal,
    tensor_copy,
    tensor_reduce,
    tensor_scalar,
    tensor_tensor,
)
from nkitools.dialects.legacy.limits import fp32
from nkitools.dialects.legacy.linear import nc_matmul, nc_transpose
from nkitools.dialects.legacy.moving import dma_copy, iota, memset
from nkitools.isa.enums import dge_mode, dma_engine, engine, nc_version, oob_mode, reduce_cmd
from nkitools.language.programs import current_generation

tensor_engine = engine.tensor
vector_engine = engine.vector
scalar_engine = engine.scalar
gpsimd_engine = engine.gpsimd
unknown_engine = engine.unknown


def get_nc_version() -> nc_version:
    """The generation of the chip that runs (outside a kernel: that a launch would take)."""
    return nc_version(current_generation().version)


DOCUMENTED = frozenset(
    [
        "activation_reduce",
        "affine_select",
        "bn_aggr",
        "bn_stats",
        "builtin_custom_op",
        "dma_transpose",
        "dropout",
        "local_gather",
        "max8",
        "nc_find_index8",
        "nc_match_replace8",
        "nc_stream_shuffle",
        "range_select",
        "scalar_tensor_tensor",
        "select_reduce",
        "sequence_bounds",
        "tensor_copy_dynamic_dst",
        "tensor_copy_dynamic_src",
        "tensor_copy_predicated",
        "tensor_partition_reduce",
        "tensor_scalar_reduce",
        "tensor_tensor_scan",
    ]
)

__all__ = [
    "activation",
    "dge_mode",
    "dma_copy",
    "dma_engine",
    "engine",
    "fp32",
    "get_nc_version",
    "gpsimd_engine",
    "iota",
    "memset",
    "nc_matmul",
    "nc_transpose",
    "nc_version",
    "oob_mode",
    "reciprocal",
    "reduce_cmd",
    "scalar_engine",
    "tensor_copy",
    "tensor_engine",
    "tensor_reduce",
    "tensor_scalar",
    "tensor_tensor",
    "unknown_engine",
    "vector_engine",
]


def __getattr__(name: str) -> Any:
    return missing("neuronxcc.nki.isa", name, DOCUMENTED)
