"""``nki.isa`` 0.6."""

from __future__ import annotations

from typing import Any

from nkitools.dialects.absent import missing
from nkitools.dialects.call_form import with_call_forms
from nkitools.engines.enums import dge_mode, dma_engine, engine, matmul_perf_mode, nc_version, oob_mode, reduce_cmd
from nkitools.isa.activation import activation
from nkitools.isa.activation_fused import activate2, activation_reduce, exponential
from nkitools.isa.dma import dma_compute, dma_transpose
from nkitools.isa.elementwise import reciprocal, tensor_scalar, tensor_tensor
from nkitools.isa.fused import (
    scalar_tensor_tensor,
    tensor_scalar_cumulative,
    tensor_scalar_reduce,
    tensor_tensor_scan,
)
from nkitools.isa.gather import local_gather, nc_n_gather, nc_stream_shuffle
from nkitools.isa.matmul import nc_matmul, nc_transpose
from nkitools.isa.microscaling import nc_matmul_mx, quantize_mx
from nkitools.isa.move import dma_copy, iota, memset, tensor_copy
from nkitools.isa.random import dropout, rand2, rand_get_state, rand_set_state, rng, set_rng_seed
from nkitools.isa.reduce import tensor_reduce
from nkitools.isa.registers import VirtualRegister, register_alloc, register_load, register_move, register_store
from nkitools.isa.search import max8, nc_find_index8, nc_match_replace8, nonzero_with_count, topk
from nkitools.isa.select import (
    affine_select,
    range_select,
    select_reduce,
    sequence_bounds,
    tensor_copy_predicated,
)
from nkitools.isa.statistics import bn_aggr, bn_stats, tensor_partition_reduce
from nkitools.isa.sync import core_barrier, sendrecv
from nkitools.issue.instruction import NkiInstruction
from nkitools.language.programs import current_generation
from nkitools.rules.finding import KernelError as NkiValidationError
from nkitools.rules.removed import ISA as REMOVED

tensor_engine = engine.tensor
vector_engine = engine.vector
scalar_engine = engine.scalar
gpsimd_engine = engine.gpsimd
unknown_engine = engine.unknown


def get_nc_version() -> nc_version:
    """The generation of the chip that runs (outside a kernel: that a launch would take)."""
    return nc_version(current_generation().version)


def get_nc_sub_version() -> int:
    """The silicon revision within the generation: 0, the first and documented default; no chip here is another."""
    return 0


DOCUMENTED: frozenset[str] = frozenset()  # what this version refuses: nothing

__all__ = [
    "NkiInstruction",
    "NkiValidationError",
    "VirtualRegister",
    "activate2",
    "activation",
    "activation_reduce",
    "affine_select",
    "bn_aggr",
    "bn_stats",
    "core_barrier",
    "dge_mode",
    "dma_compute",
    "dma_copy",
    "dma_engine",
    "dma_transpose",
    "dropout",
    "engine",
    "exponential",
    "get_nc_sub_version",
    "get_nc_version",
    "gpsimd_engine",
    "iota",
    "local_gather",
    "matmul_perf_mode",
    "max8",
    "memset",
    "nc_find_index8",
    "nc_match_replace8",
    "nc_matmul",
    "nc_matmul_mx",
    "nc_n_gather",
    "nc_stream_shuffle",
    "nc_transpose",
    "nc_version",
    "nonzero_with_count",
    "oob_mode",
    "quantize_mx",
    "rand2",
    "rand_get_state",
    "rand_set_state",
    "range_select",
    "reciprocal",
    "reduce_cmd",
    "register_alloc",
    "register_load",
    "register_move",
    "register_store",
    "rng",
    "scalar_engine",
    "scalar_tensor_tensor",
    "select_reduce",
    "sendrecv",
    "sequence_bounds",
    "set_rng_seed",
    "tensor_copy",
    "tensor_copy_predicated",
    "tensor_engine",
    "tensor_partition_reduce",
    "tensor_reduce",
    "tensor_scalar",
    "tensor_scalar_cumulative",
    "tensor_scalar_reduce",
    "tensor_tensor",
    "tensor_tensor_scan",
    "topk",
    "unknown_engine",
    "vector_engine",
]

core_barrier = with_call_forms("nisa", {"core_barrier": core_barrier})["core_barrier"]


def __getattr__(name: str) -> Any:
    return missing("nki.isa", name, DOCUMENTED, REMOVED)
