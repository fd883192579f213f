"""The dtype rules: which element types and operators an instruction takes."""

from nkitools.rules.rule import Rule

RULES = [
    Rule(
        id="NK301",
        slug="dtype-unsupported",
        severity="error",
        reason=(
            "Each instruction takes the dtypes that its engine can decode: the Tensor Engine multiplies floats of 8 "
            "to 32 bits and no integers, and no engine has 64-bit types."
        ),
        source="nki.isa.nc_matmul docstring, Data types; NKI ISA API Common Fields, Supported Data Types (SDK 2.32)",
        remedy=(
            "Load or copy the operand into a tile of a supported dtype, nl.load(x, dtype=nl.bfloat16) for instance."
        ),
        aliases=("err_activation_bias_invalid_type", "err_activation_scale_invalid_type"),
        builtin="AssertionError",
    ),
    Rule(
        id="NK302",
        slug="dtype-mix",
        severity="error",
        reason=(
            "The Tensor Engine runs either in float32 or in a narrower mode, so that a float32 (or tfloat32) operand "
            "goes only with another; float8_e4m3 and float8_e4m3fn do not mix either."
        ),
        source="nki.isa.nc_matmul docstring, Data types (NKI 0.6)",
        remedy=(
            "Give both operands one width: load both as bfloat16 or float16 (four times faster), or both as float32."
        ),
        builtin="AssertionError",
    ),
    Rule(
        id="NK303",
        slug="psum-dtype",
        severity="error",
        reason="A matmul accumulates in float32 and writes float32 to PSUM; NeuronCore-v4 can also write bfloat16.",
        source="nki.isa.nc_matmul docstring, Data types (NKI 0.6)",
        remedy="Allocate the PSUM tile as nl.float32 and cast where nisa.tensor_copy brings it to SBUF.",
        builtin="AssertionError",
    ),
    Rule(
        id="NK304",
        slug="saturating-cast",
        severity="warning",
        reason=(
            "A result is cast once, on write, and what the dtype cannot hold is lost there: an integer becomes the "
            "largest or smallest of its dtype, NaN becomes 0, and a float16 or float8 becomes an infinity or NaN."
        ),
        source=(
            "nki.isa.tensor_tensor docstring, Data types (NKI 0.6): the float32 results are cast to dst.dtype; the "
            "limits are those of the dtypes (NKI ISA API Common Fields, Supported Data Types)"
        ),
        remedy=(
            "Scale the values into the range of the dtype, write a wider one, or clamp before the cast where that is "
            "meant: nisa.tensor_scalar with nl.minimum and nl.maximum."
        ),
    ),
    Rule(
        id="NK305",
        slug="activation-range",
        severity="warning",
        reason=(
            "The Scalar Engine approximates activation functions by pieces of polynomials, some of them for a limited "
            "range of inputs only. Outside of it the chip gives other results than the function's own, which the "
            "simulator computes (but for nl.sin)."
        ),
        source="NKI ISA API Common Fields, Supported Activation Functions, Valid Input Range (SDK 2.32)",
        remedy=(
            "Scale or clamp the inputs into the range first. nl.sin called as a function does so itself, and "
            "nisa.reciprocal, which runs on the Vector Engine, has no such range."
        ),
    ),
    Rule(
        id="NK306",
        slug="operator-unsupported",
        severity="error",
        reason=(
            "The engines have the operators of AWS's two tables, math operators and activation functions, and only "
            "those marked there may reduce: maximum does, abs_max does not."
        ),
        source="NKI ISA API Common Fields, Supported Math Operators and Supported Activation Functions (SDK 2.32)",
        remedy=(
            "Build the operation of listed ones (nl.abs, then a reduction by nl.maximum), or call the nki.language "
            "function that does."
        ),
        builtin="AssertionError",
    ),
]
