"""Errors of the size that dtypes, sums and functions of an engine may have, drawn at random for a shadow run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import ml_dtypes
import numpy as np

from nkitools.chip.dtypes import DType
from nkitools.chip.numerics import Array

_FLOAT32 = 2.0**-24  # the relative error of one rounding to float32
_FUNCTION = 8 * _FLOAT32  # that of a function of an engine, which another implementation approximates differently
_TFLOAT32 = 2.0**-11


class RoundingNoise:
    """The random errors of one run; equal seeds draw equal errors."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def summed(self, values: Array, terms: float) -> Array:
        """Return the operand of a sum of so many terms, with the error that summing in float32 in any order has."""
        drawn: Array = values * (1 + _FLOAT32 * terms**0.5 * self._rng.standard_normal(values.shape))
        return drawn

    def shift(self, values: Array, share: float) -> None:
        """Add errors of a share of the root mean square of the finite values, in place."""
        finite = values[np.isfinite(values)]
        if finite.size:
            size = share * float(np.sqrt(np.mean(np.square(finite.astype(np.float64)))))
            values += (size * self._rng.standard_normal(values.shape)).astype(values.dtype)

    def round(self, values: Array, dtype: DType, *, is_function: bool) -> None:
        """Add the error of a rounding to ``dtype`` to float64 values, in place; ``is_function``: of a function, too.

        Values that the dtype represents exactly are not changed, so that counts and indices stay right.
        """
        with np.errstate(all="ignore"):
            rounds = (values.astype(dtype.dtype).astype(np.float64) != values) | (dtype.name == "tfloat32")
        largest = np.where(rounds, _rounding(dtype), 0.0) + (_FUNCTION if is_function else 0)
        values *= 1 + largest * self._rng.uniform(-1, 1, values.shape)


NOISE: ContextVar[RoundingNoise | None] = ContextVar("rounding noise", default=None)


@contextmanager
def with_noise(seed: int) -> Iterator[None]:
    """Add errors to the computations of shadow runs inside the block."""
    token = NOISE.set(RoundingNoise(seed))
    try:
        yield
    finally:
        NOISE.reset(token)


def _rounding(dtype: DType) -> float:
    """Return the largest relative error of a rounding to a dtype of floating-point numbers."""
    if dtype.name == "tfloat32":
        return _TFLOAT32
    return float(ml_dtypes.finfo(dtype.dtype).eps) / 2  # type: ignore[no-untyped-call]
