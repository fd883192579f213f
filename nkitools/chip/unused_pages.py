"""Memory that is promised and not taken: addresses could name far more than is ever written."""

from __future__ import annotations

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.platforms import unused_map


def unused_pages(count: int) -> Array:
    """Return zeros that take no memory before they are written: beyond a GiB without a promise that there is any."""
    if count <= 1 << 30:
        return np.zeros(count, np.uint8)
    return np.frombuffer(unused_map(count), np.uint8)
