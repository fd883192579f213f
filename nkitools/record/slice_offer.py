"""Backward slices of a run; the room of slices, which lies above, makes them."""

from __future__ import annotations

from collections.abc import Callable
from types import EllipsisType
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from nkitools.chip.argument_types import FrameworkArray
    from nkitools.record.element_slice import Slice
    from nkitools.record.run_contents import RunContents


Index: TypeAlias = int | slice | EllipsisType | tuple[int | slice | EllipsisType, ...]
"""Elements of an output, as an array takes them."""

Output: TypeAlias = "int | str | FrameworkArray"
"""A result by its number, a tensor by its name, or an array that is a result."""


_offered: list[Callable[[Any, Output, Index], Slice]] = []


def offer_slices(slices: Callable[[Any, Output, Index], Slice]) -> None:
    """Let ``slices`` make the slices of runs."""
    _offered[:] = [slices]


def slice_of_run(run: RunContents, output: Output, index: Index) -> Slice:
    """Return what elements of a run were made of."""
    return _offered[0](run, output, index)
