"""Integers that an engine's float32 does not hold (NK307), found by computing a call again in float64.

float32 holds every integer up to 2**24. Only instructions on integers are watched, and of these only the calls whose
operands or results go beyond: then the call is computed once more in float64, which holds every 32-bit integer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nkitools.chip.dtypes import DType
from nkitools.chip.numeric_flags import EVIDENCE, LostInteger
from nkitools.chip.numerics import Array
from nkitools.engines.arithmetic import Operand

HELD = 1 << 24  # float32 holds all integers of this magnitude and below
_WORD = 4  # bytes of the integers that may lie beyond


def watched(
    compute: Callable[..., Any],
    exact: Callable[..., Array],
    dst: DType,
    inputs: Sequence[DType],
    *,
    compares: bool = False,
) -> Callable[..., Any]:
    """Return ``compute(destination, *operands)``, which notes results that float32 has made of lost integers.

    ``exact(*operands)`` computes the results in float64. ``compares``: the results are truth values, in any dtype.
    Where no operand or result can be a large integer this is ``compute`` itself.
    """
    words = any(dtype.itemsize == _WORD for dtype in inputs)
    concerned = (dst.is_integer and (words or dst.itemsize == _WORD)) or (compares and words)
    if not concerned or not all(dtype.is_integer for dtype in inputs):
        return compute

    def watching(destination: Array, *operands: Operand) -> Array | None:
        evidence = EVIDENCE.get()
        if evidence is None:
            unwatched: Array | None = compute(destination, *operands)
            return unwatched
        kept = [_aside(each, destination) for each in operands]
        result: Array | None = compute(destination, *operands)
        if any(map(_reaches_beyond, (destination, *kept))):
            _note(evidence, exact(*kept), destination)
        return result

    return watching


def note_sum(values: Array, exact: Callable[[Array], Array], result: Array) -> None:
    """Note sums of float32 values that are integers and whose sum in float64 is another integer than ``result``."""
    evidence = EVIDENCE.get()
    if evidence is not None and _reaches_beyond(result):
        _note(evidence, exact(values.astype(np.float64)), result)


def _aside(operand: Operand, destination: Array) -> Operand:
    """Return an operand that the computation leaves as it is: a copy where the two share memory."""
    if isinstance(operand, np.ndarray) and np.may_share_memory(operand, destination):
        return operand.copy()
    return operand


def _reaches_beyond(values: Operand) -> bool:
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "iu" or values.dtype.itemsize < _WORD:
        return False
    return bool(values.size) and bool(values.max() >= HELD or values.min() <= -HELD)  # 2**24 + 1 becomes 2**24


def _note(evidence: list[Any], wanted: Array, destination: Array) -> None:
    """Note the results that are other integers than they should be; what saturates is another matter (NK304)."""
    wanted = wanted.reshape(destination.shape)
    became = destination.astype(np.float64)
    lost = (wanted != became) & (wanted == np.rint(wanted))
    if destination.dtype.kind in "iu":
        limits = np.iinfo(destination.dtype)
        lost &= (wanted >= limits.min) & (wanted <= limits.max)
    if lost.any():
        evidence.append(LostInteger(wanted, lost))
