"""Steps on memory that lies in another way: the same bits, or not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nkitools.replay.same_bits import SameBits
from nkitools.replay.steps import Root, Step, View

FLOAT32 = np.dtype(np.float32)


def dense(*shape: int, dtype: Any = FLOAT32) -> View:
    """Return a view of a root of its own, one row behind the other."""
    strides = tuple(dtype.itemsize * int(np.prod(shape[axis + 1 :])) for axis in range(len(shape)))
    return View(Root(dtype.itemsize * int(np.prod(shape))), 0, shape, strides, dtype)


def apart(view: View, factor: int) -> View:
    """Return a view of the same elements whose rows lie further apart."""
    strides = (factor * view.strides[0], *view.strides[1:])
    return View(Root(factor * view.root.nbytes), 0, view.shape, strides, view.dtype)


def moved(step: Step) -> Step:
    """Return a step that reads its source, the second argument, from rows that are further apart."""
    return replace(step, arguments=[step.arguments[0], apart(step.arguments[1], 3), *step.arguments[2:]])


@pytest.mark.parametrize("dtype", [FLOAT32, np.dtype(np.int8), np.dtype([("float8_e4m3fn_x4", "<u4")])])
def test_a_copy_has_the_same_bits_from_anywhere(dtype: Any) -> None:
    """Numbers and packed elements."""
    step = Step("dma_copy", np.copyto, [dense(4, 8, dtype=dtype), dense(4, 8, dtype=dtype)], (0,))
    assert SameBits().hold(step, moved(step))


def test_a_step_that_depends_on_its_strides_is_found() -> None:
    """Here the rows' distance is what it writes; a step that was not moved is not compared."""

    def distance(destination: Any, source: Any) -> None:
        destination[...] = source.strides[0]

    step = Step("dma_copy", distance, [dense(4, 8), dense(4, 8)], (0,))
    judgement = SameBits()
    assert judgement.hold(step, step)
    assert not judgement.hold(step, moved(step))


def test_another_computation_is_compared() -> None:
    """One that adds, too, where the recorded one copies; what the output held plays its part."""

    def add(destination: Any, source: Any) -> None:
        destination += source

    step = Step("dma_copy", np.copyto, [dense(4, 8), dense(4, 8)], (0,))
    assert not SameBits().hold(step, replace(step, compute=add))
    summed = replace(step, compute=lambda destination, source: np.add(destination, source, out=destination))
    assert SameBits().hold(summed, replace(step, compute=add))
