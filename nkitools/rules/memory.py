"""The memory rules: which memory and which engine an operand goes with, and where tensors may be placed."""

from nkitools.rules.catalogue import Rule
from nkitools.rules.examples import memory as examples

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
        bad=examples.NK201_BAD,
        good=examples.NK201_GOOD,
        aliases=("err_unsupported_memory",),
        builtin="AssertionError",
    ),
    Rule(
        id="NK205",
        slug="init-on-hbm",
        severity="error",
        reason="Only DMA writes to HBM, so that the legacy dialect creates no tensor there with an initial value.",
        source="NKI API Errors, err_hbm_tensor_with_init_value_not_supported (SDK 2.26)",
        remedy="Create the tensor with nl.ndarray and write the value with nl.store.",
        bad=examples.NK205_BAD,
        good=examples.NK205_GOOD,
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
        bad=examples.NK206_BAD,
        good=examples.NK206_GOOD,
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
        bad=examples.NK207_BAD,
        good=examples.NK207_GOOD,
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
        bad=examples.NK208_BAD,
        good=examples.NK208_GOOD,
        aliases=("err_shared_hbm_must_in_kernel_level",),
    ),
]
