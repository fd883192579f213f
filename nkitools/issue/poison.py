"""Elements that an instruction leaves undefined, made visible."""

from __future__ import annotations

from typing import Any

import numpy as np

from nkitools.chip.dtypes import DType
from nkitools.chip.memory import POISON_INTEGER
from nkitools.chip.numerics import Array


def poison(destination: Array, where: bool | Array, dtype: DType) -> None:
    """NaN in floats and 4 in integers, as in memory that was never written. ``where``: True, False or a mask."""
    if where is False:
        return
    if dtype.kind == "packed":
        sentinel: Any = np.zeros((), dtype.dtype)
    else:
        sentinel = np.array(np.nan if dtype.is_float else POISON_INTEGER, dtype.dtype)
    np.copyto(destination, sentinel, where=where)
