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
            "written the sum is undefined on every chip, and onto what another instruction wrote there it is undefined "
            "on NeuronCore-v2 and v3."
        ),
        source="nki.isa.nc_matmul docstring, Accumulation mode (NKI 0.6)",
        remedy=(
            "Leave accumulate out, or pass accumulate=(k > 0), so that the first nisa.nc_matmul of the group "
            "overwrites."
        ),
        bad=examples.NK503_BAD,
        good=examples.NK503_GOOD,
    ),
    Rule(
        id="NK505",
        slug="duplicate-scatter",
        severity="error",
        reason=(
            "A scatter that reads, adds and writes handles its rows side by side: of two that name the same row, one "
            "does not see what the other added."
        ),
        source="nki.isa.dma_compute docstring, Read-Modify-Write with vector_offset: unique_indices (NKI 0.6)",
        remedy="Add up the rows of equal indices before the scatter, or scatter them by separate instructions.",
        bad=examples.NK505_BAD,
        good=examples.NK505_GOOD,
    ),
    Rule(
        id="NK507",
        slug="stale-register",
        severity="warning",
        reason=(
            "An engine's reduce registers keep what the last instruction left in them. A reduction that goes on from "
            "registers that nothing has set in this kernel, or that reduce_cmd=idle has left unknown, gives an "
            "undefined result."
        ),
        source="nki.isa.exponential and nki.isa.tensor_scalar_reduce docstrings, Accumulator behavior (NKI 0.6)",
        remedy=(
            "Pass reduce_cmd=nisa.reduce_cmd.reset_reduce (or load_reduce) to the first instruction of the chain and "
            "reduce to those that follow."
        ),
        bad=examples.NK507_BAD,
        good=examples.NK507_GOOD,
    ),
]
