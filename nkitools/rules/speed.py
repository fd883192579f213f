"""The speed rules: hints about what the documents call inefficient, where a line spends much of a run on it."""

from nkitools.rules.rule import Rule

_WHEN = " Said of a line with at least 256 of them, which take at least a quarter of"

RULES = [
    Rule(
        id="NK701",
        slug="small-dma",
        severity="hint",
        reason=(
            "Each descriptor of a DMA moves bytes that lie in a row in both memories, and costs about as much whether "
            "these are few or many: below 256 bytes of a partition the overhead takes most of the time, from 2 KiB on "
            "it is small." + _WHEN + " the run's DMAs, or with 32,768 such descriptors, a quarter of the run's."
        ),
        source="Guideline to Avoid Under-Utilizing DMA Bandwidth, Bandwidth vs. Payload Size (SDK 2.32)",
        remedy=(
            "Move more at a time: a wider slice of the free dimension (2 KiB of a partition and more), one DMA for "
            "many tiles, or a layout in HBM in which what is moved lies in a row."
        ),
    ),
    Rule(
        id="NK702",
        slug="few-partitions",
        severity="hint",
        reason=(
            "Each partition has a lane of the Vector, Scalar and GpSimd Engines of its own, and an instruction takes "
            "as long on one partition as on 128: on half of them or fewer two instructions could be one."
            + _WHEN
            + " the cycles of an engine that is at least half as busy as the busiest."
        ),
        source="NKI Performance Optimizations, Opt #5b (SDK 2.32)",
        remedy=(
            "Put more of the work on the partition dimension: let two results lie on partitions 0..63 and 64..127 of "
            "one tile and handle them by one instruction, or let another axis be the partition dimension."
        ),
    ),
    Rule(
        id="NK703",
        slug="float32-matmul",
        severity="hint",
        reason=(
            "A matmul of float32 operands takes four times as long as one of bfloat16, float16, tfloat32 or float8."
            + _WHEN
            + " the Tensor Engine's cycles, where that is at least half as busy as the busiest engine."
        ),
        source="trainium_inferentia2_arch, Tensor Engine, Performance Consideration, Cost Model (SDK 2.32)",
        remedy=(
            "Cast the operands to nl.bfloat16 on their way to the matmul where their accuracy allows it; the sums stay "
            "float32 in PSUM."
        ),
    ),
    Rule(
        id="NK704",
        slug="idle-array",
        severity="hint",
        reason=(
            "A matmul uses as many rows of the Tensor Engine's 128 x 128 processing elements as it contracts, as many "
            "columns as the stationary operand has, and takes as long with few of them as with all."
            + _WHEN
            + " the Tensor Engine's cycles, with half of the elements or more idle, where that is at least half as "
            "busy as the busiest engine; matmuls that share the array by tile_position are left out."
        ),
        source=(
            "NKI Performance Optimizations, Opt #5b; trainium_inferentia2_arch, Tensor Engine, Performance "
            "Consideration (SDK 2.32)"
        ),
        remedy=(
            "Contract 128 partitions and give the stationary operand 128 columns, let the operand with the larger free "
            "size be stationary, or let several small matmuls share the array (tile_position, tile_size)."
        ),
    ),
]
