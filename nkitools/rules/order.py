"""The order rules: what must come before what."""

from nkitools.rules.catalogue import Rule
from nkitools.rules.examples import order as examples

RULES = [
    Rule(
        id="NK503",
        slug="accumulation-group",
        severity="error",
        reason=(
            "A matmul that accumulates adds to what an earlier one of its group left in PSUM; onto PSUM that was never "
            "written the sum is undefined on every chip."
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
