"""A reference under other choices: the 8th and the 9th value of a row may be closer than float32 rounds.

The reference is computed again, in float64, of arguments that are off by a rounding of float32. An element that then is
another one hangs on a choice between values that are closer than float32 rounds. One that is another one for arguments
that are off by much less hangs on values that are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from nkitools.chip.dtypes import float32
from nkitools.chip.numerics import Array
from nkitools.launch.frameworks import NUMPY, TORCH, framework_of
from nkitools.launch.nested_arguments import mapped
from nkitools.precision.runs import arrays_in, in_float64

_TIMES = 16


class TiedChoices:
    """The results of a reference, function of some arguments, for arguments that are off a little."""

    def __init__(self, function: Callable[..., Any] | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._function, self._given = function, (args, kwargs)
        self._results: dict[float, list[list[Array]]] = {}

    def of(self, place: int, rounding: float) -> Iterator[Array]:
        """Yield other values of a result, by its place among the arrays; ``rounding``: how far the arguments are off.

        That is relative to each of their elements.
        """
        if rounding not in self._results:
            self._results[rounding] = self._off_by(rounding)
        for arrays in self._results[rounding]:
            if place < len(arrays):
                yield arrays[place]

    def _off_by(self, rounding: float) -> list[list[Array]]:
        found: list[list[Array]] = []
        for seed in range(_TIMES if self._function is not None else 0):
            random = np.random.default_rng(seed)
            args, kwargs = mapped(in_float64(self._given), partial(_off, random, rounding))
            try:
                values = self._function(*args, **kwargs)  # type: ignore[misc]
            except Exception:  # a reference need not take float64: then no tie is shown
                return found
            found.append([array for _, (_, array) in arrays_in("output", values)])
        return found


def _off(random: np.random.Generator, rounding: float, value: Any) -> Any:
    """Return an array of float64 that is off by a rounding, of NumPy or torch; other values as they are."""
    framework = framework_of(value)
    if framework not in (NUMPY, TORCH) or str(value.dtype).removeprefix("torch.") != "float64":
        return value
    factors: Array = 1 + rounding * random.uniform(-1, 1, tuple(value.shape))
    return value * (factors if framework is NUMPY else TORCH.from_numpy(factors, float32))
