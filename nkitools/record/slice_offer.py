"""Backward slices of a run; the room of slices, which lies above, makes them and their texts."""

from __future__ import annotations

from collections.abc import Callable
from types import EllipsisType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from nkitools.chip.argument_types import FrameworkArray
    from nkitools.record.element_slice import Slice
    from nkitools.record.run import Run


Index: TypeAlias = int | slice | EllipsisType | tuple[int | slice | EllipsisType, ...]
"""Elements of an output, as an array takes them."""

Output: TypeAlias = "int | str | FrameworkArray"
"""A result by its number, a tensor by its name, or an array that is a result."""


class _Makers(NamedTuple):
    slices: Callable[[Run, Output, Index], Slice]
    lines: Callable[[Slice], list[str]]


_offered: list[_Makers] = []


def offer_slices(slices: Callable[[Run, Output, Index], Slice], lines: Callable[[Slice], list[str]]) -> None:
    """Let ``slices`` make the slices of runs, and ``lines`` their texts."""
    _offered[:] = [_Makers(slices, lines)]


def slice_of_run(run: Run, output: Output, index: Index) -> Slice:
    """Return what elements of a run were made of."""
    return _offered[0].slices(run, output, index)


def slice_lines(found: Slice) -> list[str]:
    """Return a slice as lines of text."""
    return _offered[0].lines(found)
