"""The enums of ``nki.isa`` 0.6: both dialects hand out these very objects."""

from __future__ import annotations

from enum import Enum
from functools import total_ordering

from nkitools.facts.generations import TABLES


class _Member(Enum):
    """An enum whose members hash by identity: Enum hashes names in Python, and members are part of every plan's key."""

    __hash__ = object.__hash__


class engine(_Member):  # noqa: N801 - the name is the API's
    """The engines of a NeuronCore."""

    tensor = 1
    vector = 5
    scalar = 2
    gpsimd = 3
    dma = 4
    sync = 6
    unknown = 0


class reduce_cmd(_Member):  # noqa: N801
    """Commands to an engine's reduce registers."""

    idle = 0
    reset = 1
    reduce = 2
    reset_reduce = 3
    load_reduce = 4


class dge_mode(_Member):  # noqa: N801
    """The generator of DMA descriptors."""

    unknown = 0
    swdge = 1
    hwdge = 2
    none = 3


class oob_mode(_Member):  # noqa: N801
    """The effect of an out-of-bounds indirect access."""

    error = 0
    skip = 1


class dependency(_Member):  # noqa: N801
    """The kinds of a dependency between instructions. AWS's page (NKI 0.7) shows no values: each is its name here."""

    runtime = "runtime"
    schedule = "schedule"


class matmul_perf_mode(_Member):  # noqa: N801
    """Performance modes of the Tensor Engine."""

    none = "none"
    double_row = "double_row"


@total_ordering
class nc_version(_Member):  # noqa: N801
    """NeuronCore generations; a later one is greater."""

    _value_: int
    vars().update({generation.short_name: generation.version for generation in TABLES})

    def __lt__(self, other: nc_version) -> bool:
        return self.value < other.value if isinstance(other, nc_version) else NotImplemented


class dma_engine(_Member):  # noqa: N801
    """The DMA engine of a sendrecv."""

    dma = 1
    gpsimd_dma = 2
