"""The Pallas rules: what a TPU and its compiler take, and what may not happen while a kernel runs."""

from nkitools.rules.rule import TPU_CHIPS, Rule


def _rule(identifier: str, slug: str, *, reason: str, source: str, remedy: str, severity: str = "error") -> Rule:
    return Rule(identifier, slug, severity, reason, source, remedy, chips=TPU_CHIPS)


RULES = [
    _rule(
        "PL101",
        "block-tiling",
        reason=(
            "A TPU's vector registers are 8 rows of 128 lanes. The last two dimensions of a block are multiples of 8 "
            "and 128, or the whole dimension of the array; a one-dimensional block is the whole array, a multiple of "
            "1024, or a power of two of at least 128 32-bit words."
        ),
        source="JAX documentation, Grids and BlockSpecs, and the errors of its TPU lowering (jax 0.10)",
        remedy="Choose a block whose last two dimensions are multiples of 8 and 128, or take the whole dimension.",
    ),
    _rule(
        "PL102",
        "dtype-tiling",
        reason=(
            "Narrow dtypes are packed along the rows: an array of 8-bit elements lies in memory in tiles of 32 rows, "
            "of 4-bit elements in tiles of 64, where its rows are a multiple of that (otherwise in tiles of 8). A "
            "block takes whole tiles, or the whole dimension. The compiler of libtpu 0.0.50 (jax 0.12) is the first "
            "that takes parts of tiles too."
        ),
        source="TPU compiler, E2002 CompileTimeMosaicMisalignedBlockAndTiling; measured with libtpu 0.0.42 to 0.0.50",
        remedy="Make the second to last dimension of the block a multiple of the tile's rows, or the whole dimension.",
    ),
    _rule(
        "PL103",
        "vmem-capacity",
        reason=(
            "While a kernel works on one block the next is loaded and the last one stored: every blocked operand is in "
            "vector memory twice, and the scratch once. Together they must fit into what the compiler gives a kernel."
        ),
        source=(
            "TPU compiler, E1001 CompileTimeScopedVmemOom: 16 MiB on v4, v5e and v5p, 32 MiB on v6e and tpu7x, "
            "measured with libtpu 0.0.42; JAX documentation, TPU Pipelining"
        ),
        remedy=(
            "Take smaller blocks, or raise the limit with pltpu.CompilerParams(vmem_limit_bytes=...) where the chip "
            "has more vector memory."
        ),
    ),
    _rule(
        "PL104",
        "unsupported-primitive",
        reason=(
            "A kernel is lowered operation by operation, and operations without a TPU lowering work in interpretation "
            "only: sort, cumulative sums, reversal, FFT and others."
        ),
        source="JAX documentation, Writing TPU kernels with Pallas; the table of lowerings of jax 0.10",
        remedy="Write it with operations that have a TPU lowering, or move it out of the kernel.",
    ),
    _rule(
        "PL105",
        "pallas-dtype-unsupported",
        reason=(
            "TPUs compute in 32 bits and bfloat16: float16 and float64 cannot be loaded, 8-bit integers are only there "
            "to be loaded, stored, cast and multiplied as matrices, and a matmul accumulates in 32 bits."
        ),
        source="TPU compiler, its refusals of such operations; measured with libtpu 0.0.42",
        remedy=(
            "Use bfloat16 in the place of float16, cast integers to int32 before arithmetic, and ask matmuls for "
            "preferred_element_type=jnp.float32 or jnp.int32."
        ),
    ),
    _rule(
        "PL201",
        "pallas-out-of-bounds",
        reason=(
            "Nothing on a TPU keeps an index within its buffer, nor a block index within its array: memory "
            "beyond belongs to other buffers. Plain interpretation moves such an access to where it fits, and is wrong "
            "silently."
        ),
        source="JAX documentation, TPU interpret mode; Grids and BlockSpecs",
        remedy="Correct the index or the index map, or guard the access with pl.when.",
    ),
    _rule(
        "PL202",
        "revisit",
        reason=(
            "An output block is stored when the grid goes on to another one, and it is not loaded again when the grid "
            "comes back. The points of the grid that share an output block must follow one another."
        ),
        source="JAX documentation, Writing TPU kernels with Pallas; TPU interpret mode",
        remedy="Order the grid so that its last dimensions are those that the output's index map does not use.",
    ),
    _rule(
        "PL203",
        "race",
        reason=(
            "Two accesses to the same elements, one of them a write, that nothing puts in order: a DMA and the kernel "
            "that does not wait for it, or two points of a parallel dimension of the grid, which two cores may share."
        ),
        source="JAX documentation, TPU interpret mode (race detection); Pipelining, Parallel dimensions",
        remedy=(
            "Wait for the DMA before its data are touched; let points of a parallel dimension write blocks of their "
            'own, or make the dimension "arbitrary".'
        ),
    ),
    _rule(
        "PL204",
        "dma-not-waited",
        reason=(
            "A DMA runs beside the kernel. A DMA that is not waited for may end after the kernel, over memory that "
            "belongs to another buffer by then, and the next kernel starts with what is left in its semaphore."
        ),
        source="JAX documentation, Async operations: every copy that is started is waited for; semaphores end at zero",
        remedy="Call .wait() on the copy, once for each .start().",
    ),
    _rule(
        "PL205",
        "pallas-output-not-written",
        reason=(
            "An output begins with whatever was in its memory. Elements that no point of the grid visits, and those "
            "of a visited block that the kernel does not write, hold the remains of something else."
        ),
        source="JAX documentation, Grids and BlockSpecs: output blocks are not initialised",
        remedy="Let the grid visit every block and the kernel write all of it, zeros where there is nothing to say.",
    ),
    _rule(
        "PL206",
        "parallel-reduction",
        reason=(
            "The points of a parallel dimension run in any order and on several cores, and each core has vector memory "
            "of its own. A sum that is carried from one point to the next is right only where one core takes them in "
            "order."
        ),
        source="JAX documentation, Pipelining, Parallel dimensions (dimension_semantics)",
        remedy='Make the dimension "arbitrary", or start the sum anew at every point of the parallel dimension.',
    ),
    _rule(
        "PL207",
        "pallas-uninitialised-read",
        reason=(
            "Scratch and output blocks begin with whatever was in their memory, and what a block holds beyond the edge "
            "of its array is unspecified. A result that depends on it is chance."
        ),
        source="JAX documentation, TPU interpret mode (uninitialized memory); Grids and BlockSpecs (padding)",
        remedy=(
            "Write it before it is read, mostly in pl.when(pl.program_id(...) == 0); mask what lies beyond the edge "
            "with jnp.where."
        ),
    ),
    _rule(
        "PL208",
        "endless-wait",
        reason=(
            "A wait ends when its semaphore has counted far enough. Where no DMA and no other core is left to signal "
            "it, the kernel hangs, and the TPU with it."
        ),
        source="JAX documentation, Async operations: semaphores",
        remedy="Wait on the semaphore that the DMA was started with, as many times as it was started.",
    ),
    _rule(
        "PL301",
        "compiler-rejects",
        reason=(
            "The TPU compiler, or JAX's lowering to it, does not take the kernel. Interpretation on a CPU takes nearly "
            "everything."
        ),
        source="the compiler's own words, in the message",
        remedy="See the compiler's message for what it wants; https://openxla.org/xla/errors explains its codes.",
    ),
    _rule(
        "PL302",
        "print-placeholder",
        reason=(
            "On a TPU a print with placeholders, which are plain {}, takes scalars of 32 bits (integers, and since jax "
            "0.11 floats), or one vector at the end; a scalar integer without a placeholder makes the compiler abort "
            "up to libtpu 0.0.42. Interpretation prints anything."
        ),
        source="jax.experimental.pallas.debug_print docstring; the abort measured with libtpu 0.0.42 and 0.0.43",
        remedy=(
            'Print integers with a placeholder, pl.debug_print("i {}", i), floats without, pl.debug_print("x", x), and '
            'an array as pl.debug_print("x {}", x).'
        ),
    ),
]
