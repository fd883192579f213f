"""The operands of an instruction whose values are judged."""

from __future__ import annotations

from typing import Any

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.facts.light_classes import NamedTuple


class Operand(NamedTuple):
    """Data of an instruction: the author's argument, and its elements as they were computed with (or a number).

    ``where``: which elements of an output were written, and of defined values; None for all.
    """

    name: str
    value: Any
    array: Any
    written: bool
    where: Array | None = None


def first_of(where: Array) -> tuple[int, ...]:
    """Return the index of the first true element."""
    return tuple(int(each) for each in np.unravel_index(int(np.argmax(where)), where.shape))
