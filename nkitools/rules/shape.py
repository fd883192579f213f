"""The shape rules: how large a tile may be, and which shapes fit together in one instruction."""

from nkitools.chip.generations import chips_with
from nkitools.rules.rule import Rule

RULES = [
    Rule(
        id="NK101",
        slug="partition-limit",
        severity="error",
        reason="SBUF and PSUM have 128 partitions, so that no tile is taller than 128 in its first dimension.",
        source="Tiling overview, Tile size considerations, constraint 1 (SDK 2.32)",
        remedy="Split dimension 0 into tiles of nl.tile_size.pmax and handle one tile per iteration of a loop.",
        aliases=("err_num_partition_exceed_arch_limit",),
        builtin="AssertionError",
    ),
    Rule(
        id="NK102",
        slug="partition-mismatch",
        severity="error",
        reason=(
            "An engine has one lane for each partition and works on the same lanes of all its operands, so that they "
            "must have equally many partitions."
        ),
        source=(
            "nki.isa.tensor_tensor docstring (NKI 0.6); Trainium/Inferentia2 architecture guide, Cross-Partition "
            "Connectivity (SDK 2.32)"
        ),
        remedy=(
            "Slice the taller operand, or fill the shorter one up with nisa.dma_copy, until dimension 0 is the same."
        ),
        aliases=("err_num_partition_mismatch",),
        builtin="AssertionError",
    ),
    Rule(
        id="NK103",
        slug="matmul-contraction-limit",
        severity="error",
        reason=(
            "The contraction dimension of a matmul lies along the 128 rows of the Tensor Engine's systolic array, and "
            "along row_size rows where tile_size is given."
        ),
        source="nki.isa.nc_matmul docstring, Tile size (NKI 0.6)",
        remedy=(
            "Split K into tiles of 128 and issue one nisa.nc_matmul for each; they accumulate in the same PSUM tile."
        ),
        builtin="AssertionError",
    ),
    Rule(
        id="NK104",
        slug="matmul-stationary-limit",
        severity="error",
        reason=(
            "The free dimension of the stationary operand lies along the 128 columns of the Tensor Engine's systolic "
            "array, and along column_size columns where tile_size is given."
        ),
        source="nki.isa.nc_matmul docstring, Tile size (NKI 0.6)",
        remedy=(
            "Split the stationary operand's free dimension into tiles of nl.tile_size.gemm_stationary_fmax (128), "
            "each with a PSUM tile of its own."
        ),
        builtin="AssertionError",
    ),
    Rule(
        id="NK105",
        slug="matmul-moving-limit",
        severity="error",
        reason=(
            "The result of one matmul must fit into the PSUM that it may fill: 512 columns of the moving operand (one "
            "bank of float32) on NeuronCore-v2 and v3; 4096 (float32 result) or 8192 (bfloat16 result) on "
            "NeuronCore-v4."
        ),
        source="nki.isa.nc_matmul docstring, Tile size (NKI 0.6)",
        remedy=(
            "Split the moving operand's free dimension into tiles of nl.tile_size.gemm_moving_fmax, each with a PSUM "
            "tile of its own."
        ),
        builtin="AssertionError",
    ),
    Rule(
        id="NK106",
        slug="psum-bank-limit",
        severity="error",
        reason=(
            "A partition of PSUM is eight banks of 2 KiB, 512 elements of float32 each, and one matmul of "
            "NeuronCore-v2 and v3 writes to a single bank."
        ),
        source="Trainium/Inferentia2 architecture guide, Near-memory accumulation in PSUM (SDK 2.32)",
        remedy=(
            "Keep what one instruction writes within a bank: start at a multiple of nl.tile_size.psum_bank_fmax and "
            "split at the next."
        ),
        chips=chips_with("one_bank_matmul"),
        builtin="AssertionError",
    ),
    Rule(
        id="NK107",
        slug="free-size-limit",
        severity="error",
        reason=(
            "Each instruction bounds the free size of its tiles: nc_transpose takes 128 columns on the Tensor Engine "
            "and 32 rows and columns on the Vector Engine, and no tile is longer than a partition of its memory."
        ),
        source="nki.isa.nc_transpose docstring, Tile size; nki.isa.activation docstring, Tile size (NKI 0.6)",
        remedy=(
            "Split the free dimension into tiles of the size that the message names and issue one instruction for each."
        ),
        aliases=("err_size_of_dimension_exceed_arch_limit",),
        builtin="AssertionError",
    ),
    Rule(
        id="NK108",
        slug="start-partition",
        severity="error",
        reason=(
            "The hardware lets an access begin at partition 0 where it spans more than 64 partitions, at 0 or 64 "
            "where it spans more than 32, and at 0, 32, 64 or 96 below that."
        ),
        source="Trainium/Inferentia2 architecture guide, Data Access, start_partition (SDK 2.32)",
        remedy=(
            "Move the slice to a multiple of 32 partitions (of 64 above 32 of them), or move the rows with "
            "nisa.dma_copy, which may begin anywhere."
        ),
        builtin="AssertionError",
    ),
    Rule(
        id="NK109",
        slug="shape-mismatch",
        severity="error",
        reason=(
            "An instruction streams its operands element by element, so that each must have as many elements per "
            "partition as the others, and a view must keep the elements of its tensor."
        ),
        source="nki.isa.tensor_tensor docstring; nki.language.NkiTensor.reshape docstring (NKI 0.6)",
        remedy=(
            "Slice or reshape the operands to equal numbers of elements per partition; for one value per partition "
            "use nisa.tensor_scalar."
        ),
        aliases=(
            "err_activation_scale_scalar_or_vector",
            "err_annotation_shape_mismatch",
            "err_store_dst_shape_smaller_than_other_shape",
        ),
        builtin="AssertionError",
    ),
    Rule(
        id="NK110",
        slug="rank-limit",
        severity="error",
        reason="An access pattern has at most five dimensions: the partition and four in the free dimension.",
        source="NKI Language Guide, Tensor Values (SDK 2.32); Trainium/Inferentia2 architecture guide, Data Access",
        remedy="Merge free dimensions with reshape or flatten_dims, or loop over the outermost of them.",
        aliases=("err_exceed_max_supported_dimension",),
        builtin="AssertionError",
    ),
    Rule(
        id="NK111",
        slug="partition-broadcast",
        severity="error",
        reason=(
            "Each of an engine's 128 lanes reads its own partition, so that a tile of one partition cannot serve the "
            "others."
        ),
        source="nki.isa.tensor_tensor docstring; nki.language.NkiTensor.broadcast docstring, Constraints (NKI 0.6)",
        remedy=(
            "Load the row once for each partition, nl.load(row.broadcast(0, 128)) from HBM, or multiply it by a "
            "column of ones with nisa.nc_matmul."
        ),
        builtin="AssertionError",
    ),
    Rule(
        id="NK112",
        slug="reduction-axis",
        severity="error",
        reason=(
            "A reduction runs along the stream of a partition's elements: over the last free dimensions, never over "
            "the partitions (dimension 0), which lie in different lanes."
        ),
        source="nki.isa.tensor_reduce docstring (NKI 0.6)",
        remedy=(
            "Permute the free dimensions so that the reduced ones come last; to reduce over partitions, transpose "
            "with nisa.nc_transpose or multiply by ones with nisa.nc_matmul."
        ),
        builtin="AssertionError",
    ),
    Rule(
        id="NK113",
        slug="size-multiple",
        severity="error",
        reason=(
            "Some instructions work on groups of a fixed size and take whole groups only: each of the eight GpSimd "
            "cores reads and writes its 16 partitions together."
        ),
        source="nki.isa.local_gather docstring, tile size constraint 1; nki.isa.topk docstring, Constraints (NKI 0.6)",
        remedy="Allocate the tile with the next multiple of that many partitions, and leave the rest of it unused.",
        builtin="AssertionError",
    ),
]
