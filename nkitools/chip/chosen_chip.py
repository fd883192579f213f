"""The choice of a run's chip: the argument, the option and AWS's environment variables, in this order."""

from __future__ import annotations

from nkitools.facts import options
from nkitools.facts.generations import DEFAULT_CHIP, GENERATIONS, generation_of

# The variables that name a chip, the first of them first (NKI CPU Simulator, Target Platform).
VARIABLES = ("NEURON_PLATFORM_TARGET_OVERRIDE", "NKI_NC_VERSION")

# AWS's compiler also takes names of chips before their release; public projects set the first variable so.
_BEFORE_RELEASE = {"trn3pre": "trn3"}


def resolve_chip(chip: str | None = None) -> str:
    """Return the chip that was asked for: by the argument, the option or AWS's environment variables, else trn2."""
    for said_by, chosen in (("chip", chip), ("option chip", options.value("chip"))):
        if chosen is None:
            continue
        if not isinstance(chosen, str):
            raise TypeError(f"{said_by}: must be one of {', '.join(GENERATIONS)}, it is {type(chosen).__name__}")
        generation_of(chosen, said_by)
        return chosen
    for variable in VARIABLES:
        named = options.variable(variable)
        if named:
            chip = _BEFORE_RELEASE.get(named, named)
            generation_of(chip, variable)
            return chip
    return DEFAULT_CHIP
