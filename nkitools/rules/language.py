"""The language rules: what an NKI kernel may say, and to which chip."""

from nkitools.chip.generations import incomplete_chips
from nkitools.dialects import versions
from nkitools.rules.removed import REPLACEMENTS
from nkitools.rules.rule import Rule

RULES = [
    Rule(
        id="NK601",
        slug="python-not-in-nki",
        severity="error",
        reason=(
            "The NKI compiler accepts a subset of Python, in which only nki.isa and nki.language calls compute on "
            "tensors."
        ),
        source="NKI Language Guide, Compilation Model; NKI CPU Simulator, NKI Meta-Programming Support (SDK 2.32)",
        remedy="Write the computation as nki.language or nki.isa calls, nl.add(x, y) for x + y.",
        aliases=("err_while_loop_requires_unconditional_entry",),
        builtin="TypeError",
    ),
    Rule(
        id="NK602",
        slug="tensor-truth-value",
        severity="error",
        reason=(
            "if, while, and, or, not are decided when the kernel is compiled, while a tensor's elements exist only "
            "when it runs."
        ),
        source=(
            "NKI Language Guide, Tensor Values (SDK 2.32); NKI API Errors, err_ambiguous_tensor_truth_value (SDK 2.26)"
        ),
        remedy=(
            "Compute both cases and choose by elements (multiply by 0 and 1, nl.where); compare with None to ask "
            "whether a tensor was given."
        ),
        aliases=(
            "err_ambiguous_tensor_truth_value",
            "err_control_flow_condition_depending_on_arange",
            "err_dynamic_control_flow_not_supported",
        ),
        builtin="ValueError",
    ),
    Rule(
        id="NK603",
        slug="index-form",
        severity="error",
        reason=(
            "A tensor is indexed by integers, slices with a positive step, nl.ds and one `...`; in the legacy dialect "
            "also by affine index tiles of at least two dimensions, which do not mix with slices."
        ),
        source=(
            "nki.language.NkiTensor.__getitem__ docstring (NKI 0.6); NKI API Errors, "
            "err_unsupported_mixing_basic_advanced_tensor_indexing (SDK 2.26)"
        ),
        remedy="Compute indices as integers (// instead of /), and index all dimensions in one of the two ways.",
        aliases=(
            "err_1d_arange_not_supported",
            "err_cannot_assign_to_index",
            "err_copy_dynamic_indirect_indices_not_natively_supported",
            "err_indirect_indices_are_not_supported_with_nki_api",
            "err_indirect_indices_free_dim",
            "err_unsupported_mixing_basic_advanced_tensor_indexing",
        ),
        builtin="TypeError",
    ),
    Rule(
        id="NK604",
        slug="mask-form",
        severity="error",
        reason=(
            "A mask of the legacy dialect becomes a smaller tile when the kernel is compiled, so that it must be "
            "comparisons of affine expressions of indices, loop counters and program ids, joined by &."
        ),
        source="NKI API Common Fields, Masking; NKI API Errors, err_unsupported_expression_in_mask (SDK 2.26)",
        remedy=(
            "Write each side as sums of indices times constants, without //, % or tensors, and join conditions with &."
        ),
        aliases=("err_unsupported_expression_in_mask",),
        builtin="TypeError",
    ),
    Rule(
        id="NK605",
        slug="tensor-out-of-scope",
        severity="error",
        reason=(
            "To the legacy compiler the body of a loop over a range, and of an if on a loop counter or program id, is "
            "a scope: a tensor made inside is gone after it, also where Python would still know the variable. In the "
            "modern dialect the bodies of nl.fori_loop and nl.while_loop are."
        ),
        source=(
            "NKI API Errors, err_local_variable_used_out_of_scope (SDK 2.26); NKI Migration Guides, Rules for migrated "
            "loops (NKI 0.6.0)"
        ),
        remedy="Create the tensor in front of the block, with nl.ndarray, and assign to its elements inside of it.",
        aliases=("err_local_variable_used_out_of_scope",),
    ),
    Rule(
        id="NK606",
        slug="chip-lacks-instruction",
        severity="error",
        reason=(
            "Later NeuronCores have what earlier ones lack: the Scalar Engine copies and adds with tensor_copy and "
            "tensor_scalar only from NeuronCore-v3 on, for instance."
        ),
        source="nki.isa.tensor_copy docstring; nki.isa.activation docstring, Layout (NKI 0.6)",
        remedy=(
            "Use the form that the chip has (nisa.activation with op=nl.copy on trn1 and inf2), or choose the chip "
            "that the kernel is written for."
        ),
        chips=incomplete_chips(),
        builtin="AssertionError",
    ),
    Rule(
        id="NK607",
        slug="not-modelled",
        severity="error",
        reason=(
            "This version of nkitools does not know what the chip would do here, because it is not modelled yet or "
            "AWS does not document it, and a guess would be worse than a refusal."
        ),
        source=(
            f"nkitools itself; what AWS documents is the API reference of NKI {versions.versions_of()[-1]} "
            f"({versions.release_of(versions.MODERN)}) and of {versions.release_of(versions.LEGACY)} (legacy)"
        ),
        remedy=(
            "Use the documented call that the message names; otherwise run this kernel on AWS's simulator or on the "
            "chip."
        ),
    ),
    Rule(
        id="NK608",
        slug="removed-api",
        severity="error",
        reason=(
            "Names of earlier NKI versions, such as nl.arange, nl.mgrid, nl.par_dim and nisa.tensor_copy_dynamic_src, "
            "no longer exist in the modern dialect, an NKI version lacks what a later one brought, and neither "
            "compiler takes a kernel that mixes nki with neuronxcc.nki."
        ),
        source=(
            "NKI Migration Guides, Migrating from NKI 0.1.0 to NKI 0.2.0, and Removed APIs of NKI 0.4.0 (SDK 2.32)"
        ),
        remedy=(
            "Index with slices, nl.ds or .ap() instead of nl.arange and masks; `nkitools explain NK608` names each "
            "replacement."
        ),
        replacements=REPLACEMENTS,
    ),
    Rule(
        id="NK609",
        slug="call-form",
        severity="error",
        reason=(
            "An API takes the parameters of its documented signature; a wrong, missing or unknown argument is a "
            "compile error."
        ),
        source="nki.isa and nki.language API reference, signatures (NKI 0.6)",
        remedy="Compare the call with the signature, which help() of it prints; modern nki.isa calls name dst first.",
        builtin="TypeError",
    ),
    Rule(
        id="NK610",
        slug="nested-launch",
        severity="error",
        reason=(
            "The launch grid belongs to the kernel that the host calls: a kernel called inside another is inlined and "
            "runs in the caller's programs."
        ),
        source=(
            "NKI API Errors, err_nested_kernel_with_spmd_grid (SDK 2.26); NKI Language Guide, Compilation Model (SDK "
            "2.32)"
        ),
        remedy="Call the inner kernel without [grid] and give the grid to the outermost one.",
        aliases=("err_nested_kernel_with_spmd_grid",),
    ),
    Rule(
        id="NK611",
        slug="outside-kernel",
        severity="error",
        reason=(
            "nki.isa and nki.language calls become instructions of the kernel that is being compiled; outside of one "
            "there is no core that could run them."
        ),
        source="NKI API Errors, err_nki_api_outside_of_nki_kernel (SDK 2.26)",
        remedy="Call it from a function decorated with @nki.jit; prepare inputs outside with NumPy.",
        aliases=("err_nki_api_outside_of_nki_kernel",),
    ),
    Rule(
        id="NK612",
        slug="block-dimension",
        severity="warning",
        reason=(
            "Dimensions in front of the partition dimension exist in software only; they are deprecated since SDK "
            "2.23 and gone from the modern dialect."
        ),
        source=(
            "NKI API Errors, err_leading_dimension_of_tensor_must_be_partition; NKI Block Dimension Migration Guide "
            "(SDK 2.26)"
        ),
        remedy=(
            "Allocate the tile inside the loop, keep a Python list of tiles, or move the dimension behind the "
            "partition one."
        ),
        aliases=(
            "err_failed_to_infer_tile_from_local_tensor",
            "err_leading_dimension_of_tensor_must_be_partition",
        ),
    ),
    Rule(
        id="NK613",
        slug="lnc-degree",
        severity="error",
        reason=(
            "A logical NeuronCore is one physical core or a pair of them, so that a modern kernel is launched as "
            "kernel[1] or kernel[2], with one number only."
        ),
        source="Using Logical Neuron Cores, Launching a kernel on multiple cores (SDK 2.32)",
        remedy="Launch with kernel[1] or kernel[2] and loop over further tiles inside the kernel.",
        builtin="ValueError",
    ),
    Rule(
        id="NK614",
        slug="allocated-kernel-form",
        severity="error",
        reason=(
            "In a kernel that places tensors in SBUF or PSUM itself the compiler places none: every tensor on chip is "
            "allocated by hand, no call may need one of its own, and in HBM are inputs, outputs and constants only."
        ),
        source="NKI Direct Allocation Developer Guide, Common Errors and Known Limitations (SDK 2.26)",
        remedy=(
            "Allocate every tile with nki.compiler.sbuf or psum and assign each call's result to one at once; or "
            "remove all allocations, or decorate with nki.compiler.force_auto_alloc."
        ),
        aliases=(
            "err_bias_tensor_must_be_specified_in_allocation",
            "err_tensor_creation_on_scratchpad_with_init_value_not_supported",
            "err_transpose_on_tensor_engine_not_allowed_in_allocated_kernel",
        ),
    ),
    Rule(
        id="NK615",
        slug="simulation-only",
        severity="warning",
        reason=(
            "nl.mod and nl.fmod are functions of nki.language for which no engine has an operator: they work in "
            "simulation, and a kernel that calls them fails when it is compiled for the chip."
        ),
        source=(
            "Release notes of NKI 0.3 and 0.4, Known Issues (nki.language.fmod and nki.language.mod), which those of "
            "0.5 and 0.6 carry forward"
        ),
        remedy=(
            "Compute the remainder from operators that the chip has: q = nl.floor(nl.multiply(x, nl.reciprocal(y))), "
            "then nl.subtract(x, nl.multiply(q, y)); see that rounding leaves it between 0 and y."
        ),
    ),
    Rule(
        id="NK616",
        slug="python-undocumented",
        severity="hint",
        reason=(
            "AWS documents which Python an NKI kernel may hold; try, raise, lambda, comprehensions, enumerate and much "
            "else are not among it, and `is` is refused by the migration guide though AWS's own kernels ask `is None`."
        ),
        source=(
            "NKI Language Guide, NKI Values, Control Flow, Class Support; NKI Migration Guides, Language restrictions "
            "of NKI 0.3.0 (SDK 2.32)"
        ),
        remedy="Write it with what the NKI Language Guide lists, or compile the kernel to see that it is accepted.",
        lint_only=True,
    ),
    Rule(
        id="NK617",
        slug="outside-state",
        severity="error",
        reason=(
            "The compiler keeps what it made of a kernel and takes it again for the same arguments, so that a kernel "
            "which reads what changes outside of it runs with what that was at first."
        ),
        source="NKI Language Guide, Kernel Caching (SDK 2.32)",
        remedy="Pass it to the kernel as an argument: a number, a text, a tuple, an object of an NKIObject class.",
    ),
    Rule(
        id="NK618",
        slug="deprecated-api",
        severity="hint",
        reason="AWS has announced that it will be removed; it works until then.",
        source=(
            "NKI Migration Guides, Deprecated: dynamic nl.dynamic_range and while loops (NKI 0.6.0), "
            "tile_size.total_available_sbuf_size (NKI 0.4.0)"
        ),
        remedy="Use what the message names instead.",
        lint_only=True,
    ),
    Rule(
        id="NK619",
        slug="ignore-comment",
        severity="warning",
        reason=(
            "A comment that ignores a finding names the rule and the reason. A comment without them, or one that "
            "ignores nothing, misleads the next reader."
        ),
        source="nkitools itself",
        remedy="Write # nki: ignore[NK601] and, after it, why; take the comment out where nothing is found.",
        lint_only=True,
    ),
    Rule(
        id="NK620",
        slug="mask-and",
        severity="hint",
        reason=(
            "AWS supports & between the comparisons of a mask, not `and`, which asks the first one for a truth value "
            "and drops it: nkitools takes it as &, as its author means it, where a compiler may refuse it."
        ),
        source="NKI Known Issues, Masks conjunction; nki.isa.nc_match_replace8, its third example joins so (SDK 2.26)",
        remedy="Write (i_p < h) & (i_f < w), with parentheses, since & binds more tightly than <.",
    ),
]
