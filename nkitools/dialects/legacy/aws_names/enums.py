"""The enums of ``nki.isa`` in SDK 2.26: integers with their own values, and the names of their members in NKI 0.6."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from nkitools.engines import enums as modern
from nkitools.facts.generations import TABLES


class engine(IntEnum):  # noqa: N801 - the name is the API's
    """The engines of a NeuronCore; unknown leaves the choice to the compiler."""

    tensor = 1
    vector = 5
    scalar = 2
    gpsimd = 3
    sync = 6
    unknown = 0


class reduce_cmd(IntEnum):  # noqa: N801
    """Commands to an engine's reduce registers: leave them (idle), start anew, go on from them (reduce), or both."""

    idle = 0
    reset = 1
    reset_reduce = 3
    reduce = 2


class dge_mode(IntEnum):  # noqa: N801
    """The maker of DMA descriptors in a running kernel: none, software, hardware or the compiler's choice (unknown)."""

    none = 0
    swdge = 1
    hwdge = 2
    unknown = 3


class oob_mode(IntEnum):  # noqa: N801
    """The effect of a row number out of bounds in an index tile: an error (NK402), or its row is left out (skip)."""

    error = 0
    skip = 1


class nc_version(IntEnum):  # noqa: N801
    """NeuronCore generations that SDK 2.26 names; members compare like their numbers."""

    vars().update({each.short_name: each.version for each in TABLES if each.in_legacy_dialect})


dma_engine = modern.engine.dma  # a constant here, not among the members of `engine`; NKI 0.6 has it there

_MEMBERS: dict[type, dict[int, Any]] = {
    each: {member.value: getattr(modern, each.__name__)[member.name] for member in each}
    for each in (engine, reduce_cmd, dge_mode, oob_mode)
}


def translated(value: Any) -> Any:
    """Return the member as the instructions know it. All else stays as it is, for their guards to refuse."""
    members = _MEMBERS.get(type(value))
    return value if members is None else members[value]
