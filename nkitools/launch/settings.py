"""The settings of a launch: its rule level and its environment."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any

from nkitools import options
from nkitools.dialects import versions

LEVELS = options.OPTIONS["rules"].choices
PRECISIONS = ("precise", "full")
_AWS_PRECISION = {"": "", "1": "precise", "0": "full"}


def resolve_level(rules: str | None) -> str:
    """Return the rule level: the argument, else the option (``--nki-rules``, ``NKITOOLS_RULES``), else ``error``."""
    return _chosen("rules", rules, LEVELS)


def resolve_replay(replay: str | None) -> str:
    """Return whether runs are replayed: the argument, else the option (``--nki-replay``, ``NKITOOLS_REPLAY``)."""
    return _chosen("replay", replay, options.OPTIONS["replay"].choices)


def resolve_replay_threads() -> int:
    """Return in how many threads a replay may compute: at most as many as the process has processors."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = options.value("replay_threads")
    return processors if asked is None else max(1, min(processors, int(float(str(asked)))))


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

    ``float64`` as an argument is that of a shadow run (`nkitools.precision.runs`), which no option asks for.
    AWS's is ``NKI_PRECISE_FP``, 1 or 0; nothing said, it is ``default``. Raises ValueError for anything else.
    """
    if precision == "float64":
        return precision
    if precision is None and options.value("precision") is None:
        said = os.environ.get("NKI_PRECISE_FP", "")
        if said not in _AWS_PRECISION:
            raise ValueError(f"NKI_PRECISE_FP is {said!r}; choose 1 (precise, the default) or 0 (full precision).")
        return _AWS_PRECISION[said] or default
    return _chosen("precision", precision, PRECISIONS)


def resolve_language(version: str | None, dialect: str) -> versions.LanguageVersion:
    """Return the NKI version of a launch: the argument, else the option; ValueError for one that there is not.

    The legacy dialect has one version.
    """
    return options.language(version).in_dialect(dialect)


def _chosen(name: str, argument: str | None, choices: Collection[str]) -> str:
    """Return the argument of a name, else the option of that name. ValueError where it is none of the choices."""
    chosen = options.value(name) if argument is None else argument
    if chosen not in choices:
        raise ValueError(f"{name}: must be one of {', '.join(choices)}, it is {chosen!r}")
    return str(chosen)


def described(
    level: str, grid: tuple[int, ...], seed: int | None, language: versions.LanguageVersion
) -> dict[str, Any]:
    """Return what a run keeps of how it was launched, beside chip and precision."""
    return {"rules": level, "grid": list(grid), "schedule_seed": seed, "nki_version": language.name}
