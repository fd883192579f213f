"""The fast path of the simulator against the careful one, which checks and plans each instruction anew."""

from __future__ import annotations

from tests.careful import carefully
from tests.differing_runs import differs
from tests.fuzz.against_oracle import names_of as names_of
from tests.fuzz.against_oracle import smaller as smaller
from tests.fuzz.kernel import simulated
from tests.oracle.programs import Program
from tests.oracle.programs import program_of as program_of


def disagreement(program: Program) -> str:
    """Return what differs."""
    fast = simulated(program)
    with carefully():
        return differs(simulated(program), fast)
