"""The memory that is free for this process, and the share of it that a run may take."""

from __future__ import annotations

from nkitools.facts import options
from nkitools.platforms import free_memory

_SHARE = 3, 4  # of the free memory


def memory_limit() -> tuple[int, str] | None:
    """Return the bytes that a run or a compiler may take, and the source of the limit; None if it is unknown."""
    asked = options.value("memory")
    return _share() if asked is None else (int(float(str(asked)) * (1 << 30)), "the option `memory`")


def _share() -> tuple[int, str] | None:
    free = free_memory()
    return None if free is None else (free * _SHARE[0] // _SHARE[1], "three quarters of the memory that is free")
