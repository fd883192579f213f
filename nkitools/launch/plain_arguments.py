"""Arguments that a replay takes as they are: whole NumPy arrays, and values without parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nkitools.chip.dtypes import DType
from nkitools.chip.numerics import Array

_WITHOUT_PARTS = frozenset({int, float, bool, str, type(None), DType})


def plain_arrays(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Array] | None:
    """Return the arrays among the arguments of a call, in its order; None where one of the arguments needs a look.

    Such arrays are contiguous, and no two of them are the same elements.
    """
    found = list[Array]()
    for value in (*args, *kwargs.values()):
        if type(value) is np.ndarray:
            flags = value.flags
            if not (flags.c_contiguous and flags.aligned) or any(_may_be_same(value, other) for other in found):
                return None
            found.append(value)
        elif type(value) not in _WITHOUT_PARTS:
            return None
    return found


def _may_be_same(one: Array, other: Array) -> bool:
    return one is other or (one.shape == other.shape and np.may_share_memory(one, other))


def order_of(arrays: Sequence[Array], entered: Sequence[Any]) -> list[int] | None:
    """Return where each argument that became a tensor is among the arrays of a call; None where one is not."""
    numbers = {id(array): number for number, array in enumerate(arrays)}
    order = [numbers[id(each)] for each in entered if id(each) in numbers]
    return order if len(order) == len(entered) == len(arrays) else None
