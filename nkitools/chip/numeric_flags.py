"""Evidence that an instruction's values need a check, collected where that is almost free.

While a program runs its evidence is a list: NumPy's floating-point flags add their names, and computations add what
they came upon. The list is almost always empty. The issue of an instruction checks it afterwards. Without value rules
(``rules="off"``) there is no list, and no evidence is collected.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import numpy as np

from nkitools.facts.light_classes import dataclass

Array = np.ndarray[tuple[Any, ...], np.dtype[Any]]  # as numpy.typing's NDArray, whose import takes as long as four here

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


class noticing:  # noqa: N801 - it is used as a function
    """Collect the evidence of the program that runs inside the block in ``evidence``; None: collect nothing.

    NaN and overflow are results here, not mistakes of the host.
    """

    def __init__(self, evidence: list[Any] | None) -> None:
        self._evidence = evidence

    def __enter__(self) -> None:
        evidence = self._evidence
        if evidence is None:
            self._state = np.errstate(all="ignore")
        else:

            def flagged(kind: str, flags: int) -> None:
                if kind not in evidence:
                    evidence.append(kind)

            self._token = EVIDENCE.set(evidence)
            self._state = np.errstate(under="ignore", divide="call", over="call", invalid="call", call=flagged)
        self._state.__enter__()

    def __exit__(self, *error: object) -> None:
        self._state.__exit__(None, None, None)
        if self._evidence is not None:
            EVIDENCE.reset(self._token)
