"""The judgement whether a step gives the same bits where its operands lie in memory in another way.

BLAS and NumPy choose their loops by strides, too. So a step that passes have moved is compared with the recorded one on
random values, once for each form of its operands.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from nkitools.chip.core import CORE
from nkitools.chip.numeric_flags import noticing
from nkitools.chip.numerics import Array
from nkitools.replay.steps import Step, View


class SameBits:
    """The forms of steps that were compared."""

    def __init__(self) -> None:
        self._known: dict[Hashable, bool] = {}

    def hold(self, before: Step, after: Step) -> bool:
        """Return whether a step gives the bits that it gave before it was moved."""
        if before.compute is after.compute and (
            before.kind == "gather" or before.arguments == after.arguments or _strides(before) == _strides(after)
        ):
            return True  # a gather copies
        form = (before.compute, after.overwrites, tuple(before.keywords.items()), _shapes(before))
        key = (*form, _strides(before), _strides(after), after.compute is before.compute)
        try:
            known = self._known.get(key)
        except TypeError:  # a setting that is an array
            return _compare(before, after)
        if known is None:
            known = self._known[key] = _compare(before, after)
        return known


def _strides(step: Step) -> tuple[Hashable, ...]:
    return tuple((number, view.strides) for number, view in step.views())


def _shapes(step: Step) -> tuple[Hashable, ...]:
    return tuple((number, view.shape, view.dtype) for number, view in step.views())


def _compare(before: Step, after: Step) -> bool:
    """Return whether both steps make the same bytes of the same random values."""
    random = np.random.default_rng(0)
    values: dict[View, Array] = {}
    for _, view in before.views():
        if view not in values:
            values[view] = _drawn(random, view)
    made = [_computed(step, before, values) for step in (before, after)]
    return all(one.tobytes() == other.tobytes() for one, other in zip(*made, strict=True))


def _drawn(random: np.random.Generator, view: View) -> Array:
    """Return random elements for a view: ordinary numbers, any bytes where the elements are no numbers."""
    if view.dtype.kind == "V" and view.dtype.names is not None:
        return np.frombuffer(random.bytes(_size(view) * view.dtype.itemsize), view.dtype).reshape(view.shape)
    return (random.standard_normal(view.shape, np.float32) * np.float32(4)).astype(view.dtype)


def _size(view: View) -> int:
    return int(np.prod(view.shape))


def _computed(step: Step, before: Step, values: dict[View, Array]) -> list[Array]:
    """Return what a step writes, from the values of the views that the recorded step has at the same places."""
    placed: dict[View, Array] = {}
    given = list(step.arguments)
    for (number, view), (_, recorded) in zip(step.views(), before.views(), strict=True):
        if recorded not in placed:
            placed[recorded] = _laid_out(view, values[recorded])
        given[number] = placed[recorded]
    token = CORE.set(step.engines)  # type: ignore[arg-type]  # the part of a core that computations use
    try:
        with noticing(None):
            step.compute(*given, **step.keywords)
    finally:
        CORE.reset(token)
    return [given[number] for number in step.outputs]


def _laid_out(view: View, values: Array) -> Array:
    """Return an array of a view's strides with these values, in memory of its own."""
    low, high = view.bounds
    memory = np.zeros(high - low, np.uint8)
    array = np.ndarray(view.shape, view.dtype, memory, view.offset - low, view.strides)
    array[...] = values
    return array
