"""The data rules: what is read must have been written, inside of its tensor, and results must be complete."""

from nkitools.rules.rule import Rule

RULES = [
    Rule(
        id="NK401",
        slug="uninitialised-read",
        severity="error",
        reason=(
            "Allocation does not clear memory: on the chip, elements that were never written hold what an earlier "
            "instruction left there."
        ),
        source="NKI Language Guide, Creating Tensors; NKI CPU Simulator, Uninitialized Memory Detection (SDK 2.32)",
        remedy="Write the whole tile before it is read (nisa.memset), or read only the slice that was written.",
    ),
    Rule(
        id="NK402",
        slug="out-of-bounds",
        severity="error",
        reason=(
            "An index outside of its tensor addresses other data, and NKI refuses it; slices are not clamped as "
            "Python's and NumPy's are."
        ),
        source=(
            "nki.language.NkiTensor.slice docstring, Constraints (NKI 0.6); NKI API Errors, "
            "err_tensor_access_out_of_bound (SDK 2.26)"
        ),
        remedy="Let the last tile be smaller, with min(end, size) as its bound; in the legacy dialect pass a mask.",
        aliases=("err_tensor_access_out_of_bound",),
        builtin="IndexError",
    ),
    Rule(
        id="NK403",
        slug="output-not-written",
        severity="error",
        reason="Elements of a returned tensor that no instruction wrote come back as whatever was in HBM.",
        source=(
            "NKI API Errors, err_tensor_output_not_written_to; NKI Programming Model, Tile Size Considerations (SDK "
            "2.26)"
        ),
        remedy=(
            "Store to every element of the output: round the number of tiles up, and check that the loops run at all."
        ),
        aliases=("err_tensor_output_not_written_to",),
    ),
    Rule(
        id="NK404",
        slug="nan-origin",
        severity="warning",
        reason=(
            "A NaN or an infinity that an instruction makes of finite numbers spreads through whatever is computed of "
            "it, so that the place where it shows is rarely the place that is wrong. This is where it came from."
        ),
        source=(
            "IEEE 754: 0/0 and the root of a negative number are NaN, a number by 0 and what is larger than the "
            "largest float32 are infinite; nki.isa.tensor_tensor docstring (NKI 0.6): arithmetic runs in float32"
        ),
        remedy=(
            "Keep the operands away from there: add an epsilon below a division, a root or a logarithm, subtract the "
            "row's maximum before nl.exp, and mask with a large finite number, as infinities cancel to NaN."
        ),
    ),
    Rule(
        id="NK405",
        slug="masked-lane-used",
        severity="error",
        reason=(
            "The compiler executes no lane that a mask leaves out, so that its elements hold what an earlier "
            "instruction left there. The legacy dialect lets kernels compute with such lanes; what they are stored, "
            "summed up or multiplied into is as undefined as they are."
        ),
        source=(
            "NKI API Common Fields, Masking (SDK 2.26): the compiler skips generating the instruction, or generates it "
            "with a smaller input tile shape"
        ),
        remedy=(
            "Pass the same mask here, or give those lanes a value before: create the tile with nl.zeros, and assign to "
            "it what is loaded under the mask."
        ),
    ),
    Rule(
        id="NK406",
        slug="input-mutated",
        severity="error",
        reason=(
            "The parameters of a legacy nki.jit kernel are immutable: the framework may use an input again after the "
            "call."
        ),
        source="NKI API Errors, err_cannot_update_immutable_parameter (SDK 2.26)",
        remedy=(
            "Write to a tensor of your own in nl.shared_hbm and return it, or annotate the parameter as "
            "nt.mutable_tensor (neuronxcc.nki.typing) and return it."
        ),
        aliases=("err_cannot_update_immutable_parameter",),
    ),
    Rule(
        id="NK407",
        slug="mutable-not-returned",
        severity="error",
        reason=(
            "A parameter annotated nt.mutable_tensor is an input and an output of the kernel, and the framework learns "
            "of its new value only where the kernel returns it."
        ),
        source="NKI API Errors, err_mutable_parameter_not_returned (SDK 2.26)",
        remedy="Return the parameter too: return out_tensor, in_tensor.",
        aliases=("err_mutable_parameter_not_returned",),
    ),
    Rule(
        id="NK408",
        slug="result-lost",
        severity="warning",
        reason=(
            "A kernel's results are the tensors that it returns. What it writes to a tensor of its own and does not "
            "return is gone when it ends, and the caller gets None."
        ),
        source=(
            "NKI migration guide, Output tensors must use nl.shared_hbm (NKI 0.6): the output tensors of a kernel are "
            "those that it returns"
        ),
        remedy="Return the tensor: `return out` as the kernel's last line.",
    ),
]
