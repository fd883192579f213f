"""The TPU generations that a Pallas kernel can be checked for: data, and the one place with their names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

MIB = 1 << 20


@dataclass(frozen=True)
class Chip:
    """One TPU generation.

    ``device_kind``: JAX's name for its devices. ``topology``: the compiler's name for one chip. ``vmem``: the whole
    vector memory of a core, ``scoped_vmem``: the part that the compiler gives a kernel without ``vmem_limit_bytes``;
    both in bytes.
    ``narrow_matmul``: whether it multiplies matrices of 8 and 4 bits.
    """

    name: str
    device_kind: str
    topology: str
    vmem: int
    scoped_vmem: int
    narrow_matmul: bool = True

    has_own_topology: bool = False  # whether the author chose the topology

    def topology_of(self, devices: int) -> str:
        """Return the compiler's name for so many devices of this chip: its smallest topology with as many chips."""
        if devices == 1 or self.has_own_topology:
            return self.topology
        layouts = _FLAT if self.topology.count("x") == 1 else _CUBES
        return f"{self.name}:{next(layout for size, layout in layouts if size >= devices)}"


# The number of chips of the compiler's topologies, for chips that are wired in a plane and for those in a cube.
_FLAT = ((4, "2x2"), (8, "2x4"), (16, "4x4"), (32, "4x8"), (64, "8x8"), (128, "8x16"), (256, "16x16"))
_CUBES = ((2, "2x1x1"), (4, "2x2x1"), (8, "2x2x2"), (16, "2x2x4"), (32, "2x4x4"), (64, "4x4x4"), (512, "8x8x8"))

# Names, bounds and the scoped limits were found by asking the compiler (libtpu 0.0.42); the sizes of the whole vector
# memory are those of jax.experimental.pallas.tpu.get_tpu_info.
_TABLE = (
    Chip("v4", "TPU v4", "v4:1x1x1", 16 * MIB, 16 * MIB, narrow_matmul=False),
    Chip("v5e", "TPU v5 lite", "v5e:1x1", 128 * MIB, 16 * MIB),
    Chip("v5p", "TPU v5", "v5p:1x1x1", 64 * MIB, 16 * MIB),
    Chip("v6e", "TPU v6 lite", "v6e:1x1", 128 * MIB, 32 * MIB),
    Chip("tpu7x", "TPU7x", "tpu7x:1x1x1", 64 * MIB, 32 * MIB),
)

DEFAULT = "v5e"
_SLICE = re.compile(r"-\d+$")  # the number of cores or chips of a slice
_WITHOUT_COMPILER = frozenset({"v2", "v3"})
CHIPS = {chip.name: chip for chip in _TABLE}


class Part(NamedTuple):
    """A hardware part that some chips lack; ``instead``: the chip to check for if no chosen chip has the part."""

    name: str
    instead: str


SPARSE_CORES = Part("SparseCores", "v6e")
ACCUMULATORS = Part("accumulators (pltpu.ACC)", "tpu7x")


def chosen(names: str | Iterable[str]) -> tuple[Chip, ...]:
    """Return the chips named in a sequence or a text with commas, without repeats. ValueError for an unknown name.

    The name of a slice, such as ``v5litepod-8``, is that of its chips.
    """
    wanted = [_SLICE.sub("", each.strip()) for each in (names.split(",") if isinstance(names, str) else names)]
    wanted = ["v5e" if each == "v5litepod" else each for each in wanted]
    if not _WITHOUT_COMPILER.isdisjoint(wanted):
        raise ValueError(
            "TPU v2 and v3 cannot be checked for, since libtpu compiles for v4 and newer: check for v4, and compute in "
            "float32 inside of the kernel (`nkitools explain bfloat16-on-tpu-v3`)."
        )
    return tuple(CHIPS[name] for name in dict.fromkeys(known_names("chips", wanted, CHIPS, " (TPU generations)")))


def in_topology(text: str) -> Chip:
    """Return the chip of a topology such as ``v5e:2x2``, with that topology. ValueError if it is no topology."""
    name, _, layout = text.partition(":")
    chip, sizes = CHIPS.get(name), layout.split("x")
    if chip is None or len(sizes) != chip.topology.count("x") + 1 or not all(size.isdigit() for size in sizes):
        raise ValueError(f"topology is {text!r}; it is a chip and its layout, as 'v5e:2x2' or 'v5p:2x2x1'")
    return replace(chip, topology=text, has_own_topology=True)


def known_names(what: str, names: str | Iterable[str], known: Collection[str], kind: str = "") -> tuple[str, ...]:
    """Return the names in a sequence or a text with commas. ValueError for no name, and for one not in ``known``."""
    wanted = tuple(each.strip() for each in names.split(",")) if isinstance(names, str) else tuple(names)
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        found = ", ".join(repr(name) for name in unknown) or "none"
        raise ValueError(f"{what} has {found}; choose of {', '.join(known)}{kind}.")
    return wanted
