"""The memory rules: which memory and which engine an operand goes with, and where tensors may be placed."""

from nkitools.rules.rule import Rule

RULES = [
    Rule(
        id="NK201",
        slug="wrong-memory",
        severity="error",
        reason=(
            "The compute engines reach SBUF and PSUM only, the Tensor Engine reads SBUF and writes PSUM, and DMA "
            "copies between HBM and SBUF."
        ),
        source="nki.isa.nc_matmul docstring, Memory types; nki.isa.dma_copy docstring, Memory types (NKI 0.6)",
        remedy=(
            "Bring the operand there first: nisa.dma_copy or nl.load from HBM, nisa.tensor_copy between SBUF and PSUM."
        ),
        aliases=("err_unsupported_memory",),
        builtin="AssertionError",
    ),
    Rule(
        id="NK202",
        slug="sbuf-capacity",
        severity="error",
        reason=(
            "All tensors in SBUF that are alive at one instruction, from their first write to their last read, share "
            "its partitions: 192 KiB each on NeuronCore-v2, 224 on v3 and 256 on v4, and the compiler keeps 16 of "
            "them. The compiler gives up on a kernel that needs more. It spills tensors to HBM only for kernels "
            "of the legacy dialect, where this is a warning as long as the operands of each instruction fit."
        ),
        source=(
            "architecture guides of SDK 2.32; NKI Direct Allocation Developer Guide, ncc.sbuf.alloc (SDK 2.26: 16 KiB "
            "for the compiler), and nki-library, MAX_AVAILABLE_SBUF_SIZE; compiler messages NCC_EGCA111 (spilling is "
            "disabled for kernels) and GCA035 (an instruction cannot be allocated); NKI Performance Optimizations, Opt "
            "#2 (spilling)"
        ),
        remedy=(
            "Let tensors end earlier or be smaller: tile the free dimension, use one tile up before the next is "
            "loaded, load again what is needed later, or keep it in a narrower dtype."
        ),
    ),
    Rule(
        id="NK203",
        slug="psum-capacity",
        severity="error",
        reason=(
            "All tensors in PSUM that are alive at one instruction share its 8 banks of 2 KiB for each partition: "
            "eight tiles of 512 float32 elements. Tiles that are smaller than a bank are taken to share one. The "
            "compiler moves what does not fit elsewhere only for kernels of the legacy dialect, where this is a "
            "warning."
        ),
        source=(
            "trainium_inferentia2_arch, Near-memory accumulation in PSUM (SDK 2.32); compiler message NCC_EGCA111 "
            "(spilling is disabled for kernels)"
        ),
        remedy=(
            "Copy a result to SBUF (nisa.tensor_copy) before the next accumulation begins, or accumulate fewer tiles "
            "at once."
        ),
    ),
    Rule(
        id="NK204",
        slug="overlapping-lifetimes",
        severity="error",
        reason=(
            "Tensors placed by hand may use the same bytes one after the other; what the second writes is gone from "
            "the first, so that their lifetimes must not overlap."
        ),
        source="NKI Direct Allocation Developer Guide, Common Errors, Lifetime Conflicts (SDK 2.26)",
        remedy=(
            "Give tensors that are alive together addresses that do not overlap, or more physical tiles "
            "(num_free_tiles, num_bank_tiles) to one whose blocks are."
        ),
    ),
    Rule(
        id="NK205",
        slug="init-on-hbm",
        severity="error",
        reason="Only DMA writes to HBM, so that the legacy dialect creates no tensor there with an initial value.",
        source="NKI API Errors, err_hbm_tensor_with_init_value_not_supported (SDK 2.26)",
        remedy="Create the tensor with nl.ndarray and write the value with nl.store.",
        aliases=("err_hbm_tensor_with_init_value_not_supported",),
    ),
    Rule(
        id="NK206",
        slug="wrong-engine",
        severity="error",
        reason=(
            "Each instruction runs on the engines that its documentation names, and the GpSimd Engine has no way to "
            "PSUM."
        ),
        source="nki.isa.tensor_tensor docstring, parameter engine; nki.isa.tensor_copy docstring (NKI 0.6)",
        remedy="Leave engine out, or name one that the instruction's documentation lists for these operands.",
        builtin="AssertionError",
    ),
    Rule(
        id="NK207",
        slug="address-alignment",
        severity="error",
        reason=(
            "A tensor placed by hand lies in SBUF or PSUM at a byte offset that is a multiple of its element size."
        ),
        source=(
            "nki.language.tile_size, sbuf_min_align and psum_min_align; nki.language.ndarray docstring, address (NKI "
            "0.6)"
        ),
        remedy="Round the byte offset of address up to a multiple of the dtype's size, or leave address out.",
        builtin="ValueError",
    ),
    Rule(
        id="NK208",
        slug="shared-hbm-scope",
        severity="error",
        reason=(
            "All programs of a launch share their shared_hbm tensors, so that every program must create the same ones "
            "in the same order, whatever its program id."
        ),
        source=(
            "NKI API Errors, err_shared_hbm_must_in_kernel_level (SDK 2.26); Using Logical Neuron Cores, Final Notes "
            "(SDK 2.32)"
        ),
        remedy="Create shared_hbm tensors at the top of the kernel, with shapes that do not depend on nl.program_id.",
        aliases=("err_shared_hbm_must_in_kernel_level",),
    ),
    Rule(
        id="NK209",
        slug="result-on-chip",
        severity="hint",
        reason=(
            "What a kernel returns to the host lies in HBM. AWS's legacy simulator returned tiles on chip, with their "
            "values, and so does nkitools; outside of simulation such a kernel is not supported."
        ),
        source=(
            "NKI Known Issues, Unsupported Syntax: top-level tensors must be on HBM; nki.isa.range_select, its example "
            "(SDK 2.26)"
        ),
        remedy="Store the tile into nl.ndarray(..., buffer=nl.shared_hbm) with nl.store, and return that.",
    ),
]
