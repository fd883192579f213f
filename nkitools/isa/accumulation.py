"""PSUM accumulation: on NeuronCore-v2 and v3 a matmul may add only to what a matmul has put there.

Source: nki.isa.nc_matmul, Accumulation mode, note (NKI 0.6): accumulating into a location that was value-initialised by
another instruction "is undefined behavior on hardware". We judge ``accumulate=True`` only: with ``accumulate=None`` a
tile of zeros that matmuls are added to is an idiom of AWS's own examples.
"""

from __future__ import annotations

from nkitools.chip.memory import Region
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.views import describe
from nkitools.isa.plan import Plan
from nkitools.rules.finding import report


def _region(tensor: NkiTensor) -> Region:
    """Partitions and bytes that a view reaches over: (first, end, first byte, end byte)."""
    partition, byte = divmod(tensor.byte_offset, tensor.storage.partition_bytes)
    strides = tensor.array.strides[1:]
    span = sum((size - 1) * stride for size, stride in zip(tensor.shape[1:], strides, strict=True))
    return partition, partition + tensor.shape[0], byte, byte + span + tensor.dtype.itemsize


def _overlap(first: Region, second: Region) -> bool:
    return first[0] < second[1] and second[0] < first[1] and first[2] < second[3] and second[2] < first[3]


def _within(inner: Region, outer: Region) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1] and outer[2] <= inner[2] and inner[3] <= outer[3]


def note_write(plan: Plan, tensor: NkiTensor) -> None:
    """Remember who wrote a region of PSUM: a matmul that overwrites it makes it fit to be added to again."""
    foreign = tensor.storage.foreign
    if foreign is None:
        return
    here = _region(tensor)
    if plan.engine != "tensor":
        if here not in foreign:
            foreign.append(here)
    elif plan.overwrites and foreign:
        foreign[:] = [each for each in foreign if not _within(each, here)]


def check_addition(plan: Plan, tensor: NkiTensor) -> None:
    """NK503: the matmul adds to elements that another instruction wrote."""
    here = _region(tensor)
    if plan.adds_to_matmuls_only and any(_overlap(each, here) for each in tensor.storage.foreign or ()):
        report(
            "NK503",
            f"{plan.name}: accumulate=True adds to elements of {describe(tensor)} that an instruction other than a "
            "matmul has written",
            about=(tensor,),
            remedy="Let the first matmul overwrite, accumulate=(i > 0), and add other values after copying PSUM out.",
        )
