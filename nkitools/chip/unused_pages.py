"""Memory that is promised and not taken: addresses could name far more than is ever written."""

from __future__ import annotations

import mmap

import numpy as np

from nkitools.chip.numerics import Array


def unused_pages(count: int) -> Array:
    """Return zeros that take no memory before they are written: beyond a GiB without a promise that there is any."""
    if count <= 1 << 30:
        return np.zeros(count, np.uint8)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    return np.frombuffer(mmap.mmap(-1, count, flags=flags), np.uint8)
