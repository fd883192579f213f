"""A reference under other choices: the 8th and the 9th value of a row may be closer than float32 rounds.

The reference is computed again, in float64, of arguments that are off by a rounding of float32. An element that then is
another one hangs on a choice between values that are closer than float32 rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.launch.nested_arguments import mapped
from nkitools.precision.runs import arrays_in, in_float64

_TIMES = 16
_ROUNDING = 2.0**-21  # some roundings to float32, as values that are computed have had several


class TiedChoices:
    """The results of a reference, function of some arguments, for arguments that are off by a rounding of float32."""

    def __init__(self, function: Callable[..., Any] | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._function, self._given = function, (args, kwargs)

    def of(self, place: int) -> Iterator[Array]:
        """Yield the other values of a result, by its place among the arrays."""
        for arrays in self._results:
            if place < len(arrays):
                yield arrays[place]

    @cached_property
    def _results(self) -> list[list[Array]]:
        found: list[list[Array]] = []
        for seed in range(_TIMES if self._function is not None else 0):
            args, kwargs = in_float64(self._given)
            random = np.random.default_rng(seed)
            args, kwargs = mapped((args, kwargs), partial(_off, random))
            try:
                values = self._function(*args, **kwargs)  # type: ignore[misc]
            except Exception:  # a reference need not take float64: then no tie is shown
                return found
            found.append([array for _, (_, array) in arrays_in("output", values)])
        return found


def _off(random: np.random.Generator, value: Any) -> Any:
    """Return an array of float64 that is off by a rounding of float32; other values as they are."""
    if not isinstance(value, np.ndarray) or value.dtype != np.float64:
        return value
    return value * (1 + _ROUNDING * random.uniform(-1, 1, value.shape))
