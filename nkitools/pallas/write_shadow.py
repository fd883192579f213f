"""The state of a watched buffer's elements: for each element, the grid step of its last write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nkitools.pallas.calls import Operand
from nkitools.pallas.source_places import NOWHERE, Place
from nkitools.rules.finding import Finding

# Instead of a grid step, of elements that no step of the kernel wrote:
UNWRITTEN = -1
GIVEN = -2  # there before the kernel began
VISITED = -3  # part of an output block that was stored without having been written
PADDING = -4  # beyond the edge of the array, where a block juts out


@dataclass(eq=False)
class Shadow:
    """A buffer of a running kernel under its author's name, with the writers of its elements.

    ``kind``: ``input``, ``output`` and ``scalar`` lie in HBM and SMEM; a ``window`` holds the current block of an
    operand; ``scratch``; ``scoped`` was allocated by the kernel while it ran.
    """

    name: str
    kind: str
    steps: Any
    operand: Operand | None = None
    place: Place = NOWHERE

    @property
    def is_output(self) -> bool:
        """Return whether the buffer is an output or its window."""
        return self.operand is not None and self.operand.is_output

    @property
    def is_scalar(self) -> bool:
        """Return whether the buffer lies in the memory of scalars."""
        return self.kind == "scalar" or (self.operand is not None and self.operand.memory == "smem")

    def text(self) -> str:
        """Return the words for the buffer in messages."""
        if self.operand is not None and self.kind != "window":
            return self.operand.text()
        what = {"window": "the block of", "scratch": "scratch", "scalar": "scalar operand"}.get(self.kind, "buffer")
        return f"{what} `{self.name}`"


def new_shadow(shape: tuple[int, ...], step: int) -> Any:
    """Return the steps of a buffer all of whose elements are alike."""
    return np.full(shape, step, np.int32)


def given(logical: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """Return the steps of an input: given, and padding outside of the array."""
    steps = new_shadow(shape, PADDING)
    steps[tuple(slice(0, size) for size in logical)] = GIVEN
    return steps


def spans(ranges: tuple[Any, ...], shape: tuple[int, ...]) -> Iterator[tuple[int, int, int, bool]]:
    """Yield start, stop, step and whether it is a slice, for each dimension; one without an index is whole."""
    full = (*ranges, *(slice(0, size) for size in shape[len(ranges) :]))
    for each, size in zip(full, shape, strict=True):
        if isinstance(each, slice):
            yield int(each.start or 0), size if each.stop is None else int(each.stop), int(each.step or 1), True
        else:
            yield int(each), int(each) + 1, 1, False


def clipped(ranges: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[Any, ...]:
    """``ranges`` with the parts that lie outside of ``shape`` left out."""
    inside: list[Any] = []
    for (start, stop, step, is_slice), size in zip(spans(ranges, shape), shape, strict=True):
        if is_slice:
            inside.append(slice(max(start, 0), max(min(stop, size), 0), step))
        else:
            inside.append(start if 0 <= start < size else slice(start, stop))
    return tuple(inside)


def lengths(ranges: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the elements that ``ranges`` index, inside and outside of ``shape``."""
    along = spans(ranges, shape)
    return tuple(len(range(start, stop, step)) for start, stop, step, is_slice in along if is_slice)


def is_outside(ranges: tuple[Any, ...], shape: tuple[int, ...]) -> bool:
    """Return whether a part of ``ranges`` lies outside of ``shape``; an empty range does not."""
    along = zip(spans(ranges, shape), shape, strict=True)
    return any(
        start < stop and (start < 0 or start + (stop - 1 - start) // step * step >= size)
        for (start, stop, step, _), size in along
    )


def show(ranges: tuple[Any, ...], shape: tuple[int, ...]) -> str:
    """``[256:264, 0:128]``; the dimensions that are not indexed are whole."""
    parts = [
        (f"{start}:{stop}" if step == 1 else f"{start}:{stop}:{step}") if is_slice else str(start)
        for start, stop, step, is_slice in spans(ranges, shape)
    ]
    return f"[{', '.join(parts)}]"


@dataclass
class Observed:
    """The findings of a run, each line's first of a rule and operand; the others are only counted."""

    findings: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    def add(self, finding: Finding, about: tuple[Place, str]) -> None:
        """Keep ``finding`` unless an equal rule, operand ``about`` and line have one already."""
        self.findings.setdefault((finding.rule, about, finding.file, finding.line), finding)
