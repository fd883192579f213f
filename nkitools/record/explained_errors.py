"""The error of each output that a run's dtypes, sums and functions explain; the room of precision works it out."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from nkitools.chip.numerics import Array

_MUCH = 10  # times the explained error: what a comparison allows beyond that hides mistakes


@dataclass(frozen=True, eq=False)
class ExplainedError:
    """The error of one result: an output, or an argument that the kernel changed.

    An element may be off by ``atol + rtol * abs(right)``, as in NumPy and torch, within the bounds of
    `nkitools.comparison.bounds`; ``beyond`` is the explained error if it exceeds these bounds. ``largest`` is the
    largest error that was seen, at ``index``. ``through``: the coarsest dtype that instructions of the run rounded
    numbers to, if it is coarser than the output's.
    """

    name: str
    dtype: str
    rtol: float
    atol: float
    largest: float
    index: tuple[int, ...]
    right: Array = field(repr=False)  # the values without any rounding, float64
    seen: Array = field(repr=False)  # the largest error seen of each element
    beyond: tuple[float, float] | None = None
    through: str = ""

    @property
    def explained(self) -> tuple[float, float]:
        """Return the relative and the absolute error that the run explains, also beyond the bounds."""
        return (self.rtol, self.atol) if self.beyond is None else self.beyond

    def sentence(self, rtol: float, atol: float) -> str:
        """Return a sentence on what is wrong with a tolerance for this output; '' if it fits."""
        return self.too_narrow(rtol, atol) or self._too_wide(rtol, atol)

    def too_narrow(self, rtol: float, atol: float) -> str:
        """Return a sentence if a tolerance allows less than the error that was seen; '' otherwise."""
        allowed = self._allowed(rtol, atol)
        below = np.where(np.isfinite(allowed), self.seen - allowed, 0)
        if not below.size or below.max() <= 0:
            return ""
        at = tuple(int(axis) for axis in np.unravel_index(int(below.argmax()), below.shape))
        return (
            f"{self.name}: rtol={rtol:g}, atol={atol:g} is tighter than the rounding of this run's dtypes and sums "
            f"({self.seen[at]:.1g} at {list(at)}, where {allowed[at]:.1g} is allowed): the comparison will flake. "
            f"Use rtol={self.explained[0]:.1g}, atol={self.explained[1]:.1g}."
        )

    def _too_wide(self, rtol: float, atol: float) -> str:
        allowed = self._allowed(rtol, atol)
        finite = np.isfinite(allowed)
        most, least = float(allowed[finite].sum()), float(self._allowed(*self.explained)[finite].sum())
        if most <= _MUCH * least:
            return ""
        much = f"{most / least:.0f} times" if least else "more than"
        return (
            f"{self.name}: rtol={rtol:g}, atol={atol:g} allows {much} the error that this run's dtypes and sums "
            f"explain: the comparison would not see a lost tile. "
            f"Use rtol={self.explained[0]:.1g}, atol={self.explained[1]:.1g}."
        )

    def _allowed(self, rtol: float, atol: float) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(atol + rtol * np.abs(self.right))


@dataclass(frozen=True)
class ExplainedErrors:
    """The errors of the results of a run: its outputs, then the arguments that the kernel changed."""

    outputs: tuple[ExplainedError, ...]

    @property
    def rtol(self) -> float:
        """Return the largest relative tolerance of an output."""
        return max((each.rtol for each in self.outputs), default=0.0)

    @property
    def atol(self) -> float:
        """Return the largest absolute tolerance of an output."""
        return max((each.atol for each in self.outputs), default=0.0)

    def __getitem__(self, output: int | str) -> ExplainedError:
        """Return the error of an output by its number or its name. Raises IndexError and KeyError."""
        if isinstance(output, int):
            return self.outputs[output]
        for each in self.outputs:
            if each.name == output:
                return each
        raise KeyError(f"{output!r} is none of {', '.join(each.name for each in self.outputs)}")

    def sentences(self, rtol: float, atol: float) -> list[str]:
        """Return a sentence for each output whose tolerance is too tight, or so wide that a lost tile would pass."""
        return [text for each in self.outputs if (text := each.sentence(rtol, atol))]

    def __str__(self) -> str:
        rows = [
            f"{each.name} ({each.dtype}): rtol={each.rtol:.1g}, atol={each.atol:.1g}; largest error seen "
            f"{each.largest:.1g} at {list(each.index)}"
            + (
                ""
                if each.beyond is None
                else f"; rtol={each.beyond[0]:.1g}, atol={each.beyond[1]:.1g} are explained, more than may be derived"
            )
            for each in self.outputs
        ]
        return "\n".join(rows)
