"""The ways in which a Pallas function can be checked."""

from __future__ import annotations

from collections.abc import Sequence

MODES = ("interpret", "tpu_interpret", "lower", "aot", "device")
DEFAULT = MODES[:-1]


def chosen_modes(names: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the modes of those names in their order, all but ``device`` for None; ValueError names what is none."""
    if names is None:
        return DEFAULT
    wanted = tuple(each.strip() for each in names.split(",")) if isinstance(names, str) else tuple(names)
    unknown = [name for name in wanted if name not in MODES]
    if unknown or not wanted:
        found = ", ".join(repr(name) for name in unknown) or "none"
        raise ValueError(f"modes has {found}; choose of {', '.join(MODES)}.")
    return tuple(mode for mode in MODES if mode in wanted)
