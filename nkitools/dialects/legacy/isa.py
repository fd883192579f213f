"""``nki.isa`` of the legacy dialect: instructions that return their result as a new tile."""

from __future__ import annotations

from typing import Any, NoReturn

from nkitools.dialects.absent import missing
from nkitools.dialects.call_form import with_call_forms
from nkitools.dialects.legacy.aws_names.enums import dge_mode, dma_engine, engine, nc_version, oob_mode, reduce_cmd
from nkitools.dialects.legacy.aws_names.limits import fp32
from nkitools.dialects.legacy.kernels.error_codes import OUTSIDE
from nkitools.dialects.legacy.nisa.fused import scalar_tensor_tensor, tensor_scalar_reduce, tensor_tensor_scan
from nkitools.dialects.legacy.nisa.gather import local_gather, nc_stream_shuffle
from nkitools.dialects.legacy.nisa.moving import (
    dma_copy,
    dma_transpose,
    iota,
    memset,
    tensor_copy_dynamic_dst,
    tensor_copy_dynamic_src,
)
from nkitools.dialects.legacy.nisa.search import max8, nc_find_index8, nc_match_replace8
from nkitools.dialects.legacy.nisa.select import (
    affine_select,
    range_select,
    select_reduce,
    sequence_bounds,
    tensor_copy_predicated,
)
from nkitools.dialects.legacy.nisa.statistics import bn_aggr, bn_stats, tensor_partition_reduce
from nkitools.dialects.legacy.nisa.vector_scalar import (
    activation,
    activation_reduce,
    reciprocal,
    tensor_copy,
    tensor_reduce,
    tensor_scalar,
    tensor_tensor,
)
from nkitools.dialects.legacy.nl.linear import nc_matmul, nc_transpose
from nkitools.dialects.legacy.nl.random import isa_dropout as dropout
from nkitools.dialects.legacy.semantics import LEGACY
from nkitools.dialects.mixed import in_dialect
from nkitools.engines.enums import nc_version as modern_versions
from nkitools.language.programs import current_generation
from nkitools.rules.finding import not_modelled

tensor_engine = engine.tensor
vector_engine = engine.vector
scalar_engine = engine.scalar
gpsimd_engine = engine.gpsimd
unknown_engine = engine.unknown


def get_nc_version() -> Any:
    """The generation of the chip that runs (outside a kernel: that a launch would take).

    SDK 2.26 has no name for NeuronCore-v4; there it is that of NKI 0.6, which compares with these.
    """
    generation = current_generation()
    return (nc_version if generation.in_legacy_dialect else modern_versions)(generation.version)


def builtin_custom_op(
    function_name: Any,
    lib_file_name: Any,
    ulib_to_ucode_version: Any,
    ulib_to_isa_version: Any,
    srcs: Any,
    dsts: Any,
    **kwargs: Any,
) -> NoReturn:
    """Refused (NK607): it calls a function of a library built for the GpSimd Engine, and the reference says no more."""
    not_modelled(
        f"nisa.builtin_custom_op calls `{function_name}` of the library {lib_file_name} on the GpSimd Engine; the "
        "simulator cannot run such code",
        remedy="Compute the same with instructions, or leave the call out where the simulator runs.",
    )


DOCUMENTED: frozenset[str] = frozenset()

__all__ = [
    "activation",
    "activation_reduce",
    "affine_select",
    "bn_aggr",
    "bn_stats",
    "builtin_custom_op",
    "dge_mode",
    "dma_copy",
    "dma_engine",
    "dma_transpose",
    "dropout",
    "engine",
    "fp32",
    "get_nc_version",
    "gpsimd_engine",
    "iota",
    "local_gather",
    "max8",
    "memset",
    "nc_find_index8",
    "nc_match_replace8",
    "nc_matmul",
    "nc_stream_shuffle",
    "nc_transpose",
    "nc_version",
    "oob_mode",
    "range_select",
    "reciprocal",
    "reduce_cmd",
    "scalar_engine",
    "scalar_tensor_tensor",
    "select_reduce",
    "sequence_bounds",
    "tensor_copy",
    "tensor_copy_dynamic_dst",
    "tensor_copy_dynamic_src",
    "tensor_copy_predicated",
    "tensor_engine",
    "tensor_partition_reduce",
    "tensor_reduce",
    "tensor_scalar",
    "tensor_scalar_reduce",
    "tensor_tensor",
    "tensor_tensor_scan",
    "unknown_engine",
    "vector_engine",
]
globals().update(with_call_forms("nisa", {name: globals()[name] for name in __all__}, in_dialect(LEGACY), OUTSIDE))


def __getattr__(name: str) -> Any:
    return missing("neuronxcc.nki.isa", name, DOCUMENTED)
