"""``nki.typing.scalar``: a value of the running kernel that a while loop may ask for."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from nkitools.chip.view_checks import describe
from nkitools.dialects.legacy.tiles.dtypes import is_number
from nkitools.dialects.legacy.tiles.elementwise import check_tile
from nkitools.dialects.legacy.tiles.result_tiles import Tile
from nkitools.launch.plain_ranges import is_range_call
from nkitools.record.source_sites import is_internal
from nkitools.rules.finding import refuse, report


class Scalar:
    """A number that is known only when the kernel runs: compared, it gives another one, whose truth a loop may ask.

    The reference shows no more of it than ``cond = scalar(tile) < 10`` and ``while cond:`` (nki.errors,
    err_while_loop_requires_unconditional_entry); AWS's paged attention also loops over ``range(scalar(tile))``.
    """

    __slots__ = ("number",)
    is_runtime = True  # an index of it is not affine
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, number: float | np.generic) -> None:
        self.number = number

    def __bool__(self) -> bool:
        return bool(self.number)

    def __index__(self) -> int:
        """For range, which the author's own code calls; nkitools asks where the compiler must know an integer."""
        frame = sys._getframe(1)
        if is_internal(frame.f_code.co_filename) and not is_range_call(frame):
            refuse("NK609", f"{self!r} is known only when the kernel runs; an integer must be known before")
        return operator.index(self.number)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"nki.typing.scalar({self.number!r})"

    def _compare(self, other: Any, compare: Callable[[Any, Any], Any]) -> Any:
        number = other.number if isinstance(other, Scalar) else other
        return Scalar(bool(compare(self.number, number))) if is_number(number) else NotImplemented

    def __lt__(self, other: Scalar | float) -> Any:
        return self._compare(other, operator.lt)

    def __le__(self, other: Scalar | float) -> Any:
        return self._compare(other, operator.le)

    def __gt__(self, other: Scalar | float) -> Any:
        return self._compare(other, operator.gt)

    def __ge__(self, other: Scalar | float) -> Any:
        return self._compare(other, operator.ge)

    def __eq__(self, other: object) -> Any:
        return self._compare(other, operator.eq)

    def __ne__(self, other: object) -> Any:
        return self._compare(other, operator.ne)


def scalar(value: Tile | Scalar | float | np.generic) -> Scalar:
    """Return a number, or a tile of one element as it is now, for the condition of a do-while loop. Errors: NK401,
    NK609.
    """
    if isinstance(value, Scalar):
        return Scalar(value.number)
    if isinstance(value, (bool, int, float, np.generic)):
        return Scalar(value)
    check_tile("nki.typing.scalar", "value", value)
    tile = value.resolved()
    if tile.size != 1 or not tile.on_chip:
        refuse("NK609", f"nki.typing.scalar takes a tile of one element on chip, it is given {describe(tile)}")
    if tile.unwritten() is not None:
        report("NK401", f"nki.typing.scalar reads {describe(tile)}, which was never written", about=(tile,))
    return Scalar(tile.read().reshape(-1)[0].item())
