"""Evidence that an instruction's values need a check, collected where that is almost free.

While a program runs its evidence is a list: NumPy's floating-point flags add their names, and computations add what
they came upon. The list is almost always empty. The issue of an instruction checks it afterwards. Without value rules
(``rules="off"``) there is no list, and no evidence is collected.
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
    """A cast changed the elements of ``values`` at which ``lost`` is true into those of ``became``."""

    values: Array
    lost: Array
    became: Array


@dataclass(frozen=True, eq=False)
class Unfit:
    """A number that is written into elements which cannot represent it, and their value instead."""

    number: Any
    became: Any


@dataclass(frozen=True, eq=False)
class Product:
    """A product of matrices that may not be finite: BLAS raises no flags on some machines, or in another thread."""

    values: Array


@dataclass(frozen=True, eq=False)
class OutsideRange:
    """Inputs ``values`` of an activation function; those with ``outside`` true are beyond its valid range."""

    function: str
    valid: str
    values: Array
    outside: Array


@dataclass(frozen=True, eq=False)
class LostInteger:
    """Integers that float32 cannot represent: where ``lost`` is true the right result is ``wanted`` (float64)."""

    wanted: Array
    lost: Array


@contextmanager
def noticing(evidence: list[Any] | None) -> Iterator[None]:
    """Collect the evidence of the program that runs inside the block in ``evidence``; None: collect nothing.

    NaN and overflow are results here, not mistakes of the host.
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
