"""The order rules: what must come before what."""

from nkitools.rules.catalogue import Rule
from nkitools.rules.examples import order as examples

RULES = [
    Rule(
        id="NK503",
        slug="accumulation-group",
        severity="error",
        reason=(
            "PSUM accumulates onto what a matmul of the same group left there: the first matmul must overwrite, and "
            "onto PSUM that is unwritten (on NeuronCore-v2 and v3 also: written by another instruction) the sum is "
            "undefined."
        ),
        source="nki.isa.nc_matmul docstring, Accumulation mode (NKI 0.6)",
        remedy=(
            "Leave accumulate out, or pass accumulate=(k > 0), so that the first nisa.nc_matmul of the group "
            "overwrites."
        ),
        bad=examples.NK503_BAD,
        good=examples.NK503_GOOD,
    ),
]
