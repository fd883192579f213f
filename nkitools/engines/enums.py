"""The enums of ``nki.isa`` 0.6: both dialects hand out these very objects."""

from __future__ import annotations

from enum import Enum
from functools import total_ordering

from nkitools.facts.generations import TABLES


class _Member(Enum):
    """An enum whose members hash by identity: Enum hashes names in Python, and members are part of every plan's key."""

    __hash__ = object.__hash__


class engine(_Member):  # noqa: N801 - the name is the API's
    """The engines of a NeuronCore, for ``engine=``; ``unknown`` leaves the choice to the instruction."""

    tensor = 1
    vector = 5
    scalar = 2
    gpsimd = 3
    dma = 4
    sync = 6
    unknown = 0


class reduce_cmd(_Member):  # noqa: N801
    """Commands to the reduce registers of an engine, one for each partition; the instruction says which it takes.

    ``idle`` leaves the registers as they are (unknown after it on the Vector Engine), ``reset`` sets them to the
    identity of the reduction, ``reduce`` goes on from their values, ``reset_reduce`` does both, ``load_reduce`` goes on
    from an operand.
    """

    idle = 0
    reset = 1
    reduce = 2
    reset_reduce = 3
    load_reduce = 4


class dge_mode(_Member):  # noqa: N801
    """The generator of DMA descriptors: ``swdge`` software, ``hwdge`` hardware (from NeuronCore-v3 on).

    ``none``: descriptors are made before the kernel runs, so that no address may be known only then. ``unknown``, the
    default, leaves the choice to the compiler.
    """

    unknown = 0
    swdge = 1
    hwdge = 2
    none = 3


class oob_mode(_Member):  # noqa: N801
    """The effect of an index out of bounds that is known only when the kernel runs: ``error``, the default, is NK402.

    ``skip`` leaves out the row of that index; with a single index the whole transfer.
    """

    error = 0
    skip = 1


class dependency(_Member):  # noqa: N801
    """The kinds of a dependency between instructions, for ``kind=`` of `NkiInstruction.depends_on` (NKI 0.7).

    ``runtime``: the instruction waits for the other one; ``schedule``: the compiler issues it later, and nothing waits.
    AWS's page shows no values: each is its name here.
    """

    runtime = "runtime"
    schedule = "schedule"


class matmul_perf_mode(_Member):  # noqa: N801
    """Performance modes of nisa.nc_matmul: ``none``, or ``double_row``, which multiplies two rows of float8 at once."""

    none = "none"
    double_row = "double_row"


@total_ordering
class nc_version(_Member):  # noqa: N801
    """NeuronCore generations, as `get_nc_version` returns them; for ``<`` and ``>`` a later one is greater."""

    _value_: int
    vars().update({generation.short_name: generation.version for generation in TABLES})

    def __lt__(self, other: nc_version) -> bool:
        return self.value < other.value if isinstance(other, nc_version) else NotImplemented


class dma_engine(_Member):  # noqa: N801
    """The engine that moves the data of nisa.sendrecv: ``dma``, or ``gpsimd_dma``, at most 1024 bytes a partition."""

    dma = 1
    gpsimd_dma = 2
