"""The enums of ``nki.isa`` 0.6: both dialects hand out these very objects."""

from __future__ import annotations

from enum import Enum

from nkitools.chip.generations import TABLES


class engine(Enum):  # noqa: N801 - the name is the API's
    """The engines of a NeuronCore."""

    __hash__ = object.__hash__  # Enum hashes names in Python; members are part of every plan's key

    tensor = 1
    vector = 5
    scalar = 2
    gpsimd = 3
    dma = 4
    sync = 6
    unknown = 0


class reduce_cmd(Enum):  # noqa: N801
    """Commands to an engine's reduce registers."""

    __hash__ = object.__hash__  # Enum hashes names in Python; members are part of every plan's key

    idle = 0
    reset = 1
    reduce = 2
    reset_reduce = 3
    load_reduce = 4


class dge_mode(Enum):  # noqa: N801
    """The generator of DMA descriptors."""

    __hash__ = object.__hash__  # Enum hashes names in Python; members are part of every plan's key

    unknown = 0
    swdge = 1
    hwdge = 2
    none = 3


class oob_mode(Enum):  # noqa: N801
    """The effect of an out-of-bounds indirect access."""

    __hash__ = object.__hash__  # Enum hashes names in Python; members are part of every plan's key

    error = 0
    skip = 1


class matmul_perf_mode(Enum):  # noqa: N801
    """Performance modes of the Tensor Engine."""

    __hash__ = object.__hash__  # Enum hashes names in Python; members are part of every plan's key

    none = "none"
    double_row = "double_row"


class nc_version(Enum):  # noqa: N801
    """NeuronCore generations; comparable as numbers."""

    __hash__ = object.__hash__  # Enum hashes names in Python; members are part of every plan's key

    _value_: int
    vars().update({generation.short_name: generation.version for generation in TABLES})

    def __lt__(self, other: nc_version) -> bool:
        return self.value < other.value if isinstance(other, nc_version) else NotImplemented

    def __le__(self, other: nc_version) -> bool:
        return self.value <= other.value if isinstance(other, nc_version) else NotImplemented

    def __gt__(self, other: nc_version) -> bool:
        return self.value > other.value if isinstance(other, nc_version) else NotImplemented

    def __ge__(self, other: nc_version) -> bool:
        return self.value >= other.value if isinstance(other, nc_version) else NotImplemented


class dma_engine(Enum):  # noqa: N801
    """The DMA engine of a sendrecv."""

    __hash__ = object.__hash__  # Enum hashes names in Python; members are part of every plan's key

    dma = 1
    gpsimd_dma = 2
