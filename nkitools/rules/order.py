"""The order rules: what must come before what."""

from nkitools.rules.rule import Rule

RULES = [
    Rule(
        id="NK501",
        slug="loop-carried-dependence",
        severity="error",
        reason=(
            "The iterations of nl.affine_range may run at once and in any order, so that none may write what another "
            "one writes or reads, sums into one place aside."
        ),
        source=("NKI API Errors, err_unexpected_output_dependencies; nki.language.affine_range docstring (SDK 2.26)"),
        remedy=(
            "Index the destination with the loop's counter, create it inside the loop, add up with +=, or loop over "
            "nl.sequential_range."
        ),
        aliases=("err_unexpected_output_dependencies",),
    ),
    Rule(
        id="NK502",
        slug="program-race",
        severity="error",
        reason=(
            "The programs of a launch run side by side, in no order of their own: where one writes elements of shared "
            "HBM and another one reads or writes the same, chance decides the result, unless the two meet between the "
            "accesses. A core_barrier orders the accesses to its data, a sendrecv those before it and after it."
        ),
        source=(
            "nki.isa.core_barrier docstring (NKI 0.6); err_unexpected_output_dependencies of nki.errors (SDK 2.26: "
            "instances in the grid write different locations)"
        ),
        remedy=(
            "Let each program work on elements of its own, or, on the two cores of a modern kernel, put "
            "nisa.core_barrier(data=tensor, cores=(0, 1)) between the two accesses in both programs."
        ),
    ),
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
    ),
    Rule(
        id="NK504",
        slug="core-deadlock",
        severity="error",
        reason=(
            "A core that waits for the other one goes on only when that one comes to the same core_barrier, or to a "
            "sendrecv with the same pipe_id; a rank in a collective, when all ranks of its group come there. Where one "
            "of them ends before, or waits for something else, none ever goes on."
        ),
        source=(
            "nki.isa.core_barrier, nki.isa.sendrecv and nki.collectives docstrings (NKI 0.6); release notes of NKI "
            "0.3, LNC2 requires identical control flow across cores"
        ),
        remedy=(
            "Let both programs, or all ranks of a group, come to the same barriers, exchanges and collectives, equally "
            "often and in the same order."
        ),
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
    ),
    Rule(
        id="NK506",
        slug="lost-accumulation",
        severity="warning",
        reason=(
            "What a matmul has summed up in PSUM is there until something else is written to the same place. Sums "
            "that are overwritten before any instruction has read them are work for nothing, and mostly a part of the "
            "result that is missing."
        ),
        source="nki.isa.nc_matmul docstring, Accumulation mode (NKI 0.6): accumulate=False overwrites",
        remedy=(
            "Let only the first matmul of a sum overwrite, accumulate=(k > 0), and copy the sum to SBUF before the "
            "next one begins, or give that a PSUM tile of its own."
        ),
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
    ),
    Rule(
        id="NK508",
        slug="replicated-write",
        severity="hint",
        reason=(
            "All programs of a launch write the same values to the same elements of shared HBM. In whatever order they "
            "do so the result is the same, but all of them spend the bandwidth, and the next change to one of them "
            "makes it a race (NK502)."
        ),
        source=(
            "public production kernels, whose programs share small outputs this way; no document allows or forbids it"
        ),
        remedy="Let one program write it, if nl.program_id(0) == 0, or divide the work by nl.program_id.",
    ),
    Rule(
        id="NK509",
        slug="scatter-order",
        severity="warning",
        reason=(
            "A scatter spreads its rows over DMA engines that run side by side. Where two of them name the same row "
            "and bring different values, chance decides which of them stays; here it is the last. A row that is "
            "never read, for padding say, may be named as often as one likes."
        ),
        source=(
            "NKI DMA Overview (SDK 2.32): a transfer goes to all 16 DMA engines, and only those within a queue on the "
            "same engine are executed in order; nki.isa.dma_copy docstring (SDK 2.26): several accesses to one offset "
            "are a data hazard"
        ),
        remedy=(
            "Scatter indices that are unique, leave the rows of the others out (an index out of bounds with "
            "oob_mode=skip), or scatter them by separate instructions in the order that is meant."
        ),
    ),
]
