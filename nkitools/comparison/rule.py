"""The rule by which two numbers are the same: ``abs(actual - expected) <= atol + rtol * abs(expected)``."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from nkitools.comparison.dtype_table import tolerance_of


@dataclass(frozen=True)
class Rule:
    """The allowed difference, as `numpy.testing.assert_allclose` has it.

    ``rtol`` and ``atol`` are the author's; where one is stated, the other is 0. Without both the dtypes decide. NaN is
    the same as NaN if ``equal_nan``; an infinity is the same as itself alone.
    """

    rtol: float | None = None
    atol: float | None = None
    equal_nan: bool = True

    @property
    def is_stated(self) -> bool:
        """Return True if the author has stated ``rtol`` or ``atol``."""
        return self.rtol is not None or self.atol is not None

    def numbers(self, dtypes: Iterable[str]) -> tuple[float, float]:
        """Return the relative and the absolute tolerance, for numbers of these dtypes (their names)."""
        return (self.rtol or 0.0, self.atol or 0.0) if self.is_stated else tolerance_of(dtypes)


EXACT = Rule(0.0, 0.0)
BY_DTYPE = Rule()


def stated_rule(rtol: Any, atol: Any, *, equal_nan: bool = True) -> Rule:
    """Return the rule of an author's numbers. ValueError for what is no finite number at or above 0."""
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value is not None:
            _must_be_tolerance(name, value)
    return Rule(_plain(rtol), _plain(atol), equal_nan)


def _must_be_tolerance(name: str, value: Any) -> None:
    is_number = not isinstance(value, (bool, str)) and hasattr(value, "__float__") and getattr(value, "shape", ()) == ()
    if not is_number or type(value).__name__ in ("bool", "bool_") or not 0 <= float(value) < math.inf:
        raise ValueError(f"{name}: must be a finite number from 0 on, it is {value!r}")


def _plain(value: Any) -> float | None:
    return None if value is None else float(value)
