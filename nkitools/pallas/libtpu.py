"""The TPU compilers that the models describe, and what newer ones accept that older ones do not: data.

Found by asking the compilers themselves: libtpu 0.0.42, 0.0.48 and 0.0.50 for every generation of TPUs, and 0.0.43,
0.0.44, 0.0.46 and 0.0.49 for v5e; 0.0.52 by the tests of this room.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import metadata

PARTIAL_TILES = (0, 0, 50)  # the first that takes a block of part of a packed tile
INTEGER_PRINTS = (0, 0, 43)  # the first that prints an integer without a placeholder; the ones before abort at it


@cache
def version() -> tuple[int, ...]:
    """Return the version of libtpu: of the one that is installed, else of the one that the installed JAX names as its
    own.

    Where neither is known, the newest that is known.
    """
    try:
        text = metadata.version("libtpu")
    except metadata.PackageNotFoundError:
        text = _named_by_jax()
    return tuple(int(each) for each in re.findall(r"\d+", text)[:3]) or PARTIAL_TILES


def _named_by_jax() -> str:
    """``==0.0.42.*`` of ``libtpu==0.0.42.*; extra == "tpu"``."""
    try:
        requirements = metadata.requires("jax") or []
    except metadata.PackageNotFoundError:
        return ""
    of_libtpu = (each.partition(";")[0].strip() for each in requirements if each.startswith("libtpu"))
    return next((each.removeprefix("libtpu") for each in of_libtpu), "")
