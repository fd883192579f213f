"""The settings of a launch: its rule level and its environment."""

from __future__ import annotations

import os
from typing import Any

from nkitools import options
from nkitools.dialects import versions

LEVELS = options.OPTIONS["rules"].choices
PRECISIONS = ("precise", "full")
_AWS_PRECISION = {"": "", "1": "precise", "0": "full"}


def resolve_level(rules: str | None) -> str:
    """Return the rule level: the argument, else the option (``--nki-rules``, ``NKITOOLS_RULES``), else ``error``."""
    level: Any = options.value("rules") if rules is None else rules
    if level not in LEVELS:
        raise ValueError(f"rules: must be one of {', '.join(LEVELS)}, it is {level!r}")
    return str(level)


def resolve_seed() -> int | None:
    """Return the seed of the order of programs (option ``schedule_seed``), None for their own order."""
    seed = options.value("schedule_seed")
    if seed is None:
        return None
    try:
        return int(seed)
    except ValueError:
        raise ValueError(f"option schedule_seed (NKITOOLS_SCHEDULE_SEED) is {seed!r}; it must be an integer") from None


def resolve_precision(precision: str | None, default: str = "precise") -> str:
    """``precise`` or ``full``: the argument, else the option (``--nki-precision``, ``NKITOOLS_PRECISION``), else AWS's.

    That is ``NKI_PRECISE_FP``, 1 or 0; nothing said, it is ``default``. Raises ValueError for anything else.
    """
    chosen: Any = options.value("precision") if precision is None else precision
    if chosen is None:
        said = os.environ.get("NKI_PRECISE_FP", "")
        if said not in _AWS_PRECISION:
            raise ValueError(f"NKI_PRECISE_FP is {said!r}; choose 1 (precise, the default) or 0 (full precision).")
        return _AWS_PRECISION[said] or default
    if chosen not in PRECISIONS:
        raise ValueError(f"precision: must be one of {', '.join(PRECISIONS)}, it is {chosen!r}")
    return str(chosen)


def resolve_nki_version(version: str | None) -> str:
    """Return the NKI version asked for: the argument, else the option (``--nki-version``, ``NKITOOLS_NKI_VERSION``)."""
    chosen: Any = options.value("nki_version") if version is None else version
    if chosen not in versions.choices():
        raise ValueError(f"nki_version: must be one of {', '.join(versions.choices())}, it is {chosen!r}")
    return str(chosen)


def described(level: str, grid: tuple[int, ...], seed: int | None, version: str) -> dict[str, Any]:
    """Return what a run keeps of how it was launched, beside chip and precision."""
    return {"rules": level, "grid": list(grid), "schedule_seed": seed, "nki_version": versions.exact(version)}
