"""The ways in which a Pallas function can be checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nkitools.comparison.rule import BY_DTYPE, Rule
from nkitools.pallas.chips import Chip, known_names
from nkitools.pallas.device_axes import Axes

MODES = ("interpret", "tpu_interpret", "lower", "aot", "device")
DEFAULT = MODES[:-1]
RUNNING = frozenset({"interpret", "tpu_interpret", "device"})  # the modes that run the function, for its outputs


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The plan of a check; the fields are the arguments of `nkitools.pallas.check`."""

    chips: tuple[Chip, ...]
    modes: tuple[str, ...]
    cores: int = 1
    seed: int | None = None
    timeout: float = 120.0
    measure_vmem: bool = False
    bundles: bool = False
    estimates: bool = False
    rules: str = "report"
    axes: Axes = ()  # of the devices that the function is spread over
    reference: Any = None  # the expected outputs, or a function of the arguments that returns them
    rule: Rule = BY_DTYPE  # by which the outputs agree with it
    quick: bool = False  # whether to leave out TPU interpretation where it would take long


def chosen_modes(names: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the modes with these names in order, all but ``device`` for None. ValueError for an unknown name."""
    if names is None:
        return DEFAULT
    wanted = known_names("modes", names, MODES)
    return tuple(mode for mode in MODES if mode in wanted)
