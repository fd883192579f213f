"""Evidence that the values of an instruction deserve a look, noticed where that costs next to nothing.

While a program runs its evidence is a list: NumPy's floating-point flags leave their names there, and computations
leave what they came upon. The list is empty nearly always. The issue of an instruction looks at it afterwards, and its
meaning is decided there. Without value rules (``rules="off"``) there is no list, and no evidence is looked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import numpy.typing as npt

from nkitools.facts.light_classes import dataclass

Array = npt.NDArray[Any]

EVIDENCE: ContextVar[list[Any] | None] = ContextVar("nkitools_evidence", default=None)

# The flags, as NumPy calls them: a finite number by 0, a result too large, a NaN of operands that are none.
DIVIDED, OVERFLOWED, INVALID = "divide by zero", "overflow", "invalid value"


@dataclass(frozen=True, eq=False)
class Saturated:
    """A cast could not hold the elements of ``values`` where ``lost`` is true; there it gave those of ``became``."""

    values: Array
    lost: Array
    became: Array


@dataclass(frozen=True, eq=False)
class Unfit:
    """A number that is written into elements which cannot hold it, and what they hold instead."""

    number: Any
    became: Any


@dataclass(frozen=True, eq=False)
class Product:
    """A product of matrices that may not be finite: BLAS raises no flags on some machines, or in another thread."""

    values: Array


@dataclass(frozen=True, eq=False)
class OutsideRange:
    """Inputs ``values`` of an activation function that lie outside of where it is valid, where ``outside`` is true."""

    function: str
    valid: str
    values: Array
    outside: Array


@dataclass(frozen=True, eq=False)
class LostInteger:
    """Integers that float32 does not hold: where ``lost`` is true the result should be that of ``wanted`` (float64)."""

    wanted: Array
    lost: Array


@contextmanager
def noticing(evidence: list[Any] | None) -> Iterator[None]:
    """Let ``evidence`` be that of the program that runs inside; None: nothing is noticed.

    Not-a-number and overflow are results here, not mistakes of the host.
    """
    if evidence is None:
        with np.errstate(all="ignore"):
            yield
        return

    def flagged(kind: str, flags: int) -> None:
        if kind not in evidence:
            evidence.append(kind)

    token = EVIDENCE.set(evidence)
    try:
        with np.errstate(under="ignore", divide="call", over="call", invalid="call", call=flagged):
            yield
    finally:
        EVIDENCE.reset(token)
