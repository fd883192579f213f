"""Pictures of tensors: a few lines of signs that say which elements are meant."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from nkitools.chip.pictures import UNWRITTEN, picture_of, picture_of_range


def test_rows_that_are_alike_share_a_line() -> None:
    """And say which they are; a sign stands for each column while there are few."""
    mask = np.zeros((300, 5), np.bool_)
    mask[:128, 4] = True
    mask[256:] = True
    picture = picture_of(mask, UNWRITTEN)
    assert picture.lines == ("....#", ".....", "#####")
    assert picture.rows == ((0, 127), (128, 255), (256, 299))
    assert (picture.columns, picture.across) == (5, "columns")
    assert picture.meanings == ((".", "written"), ("#", "never written"))


def test_what_is_large_is_drawn_in_equal_parts() -> None:
    """32 signs across and eight lines down; a part that holds both is mixed."""
    mask = np.zeros((800, 640), np.bool_)
    mask[::2, :330] = True
    picture = picture_of(mask, UNWRITTEN)
    assert picture.rows == tuple((first, first + 99) for first in range(0, 800, 100))
    assert set(picture.lines) == {"+" * 17 + "." * 15}
    assert picture.meanings == ((".", "written"), ("+", "mixed"))


def test_what_has_one_dimension_goes_across() -> None:
    """Rows of one column, a single row, a vector."""
    mask = np.arange(128) >= 96
    for shape, across in (((128, 1), "rows"), ((1, 128), "elements"), ((128,), "rows")):
        picture = picture_of(mask.reshape(shape), UNWRITTEN)
        assert (picture.lines, picture.rows, picture.across) == (("." * 48 + "#" * 16,), (), across)


def test_a_range_that_leaves_its_dimension() -> None:
    """What is asked for inside and outside, before the beginning too."""
    assert picture_of_range(8, 4, 9).lines == ("....oooo##",)
    early = picture_of_range(4, -2, 0)
    assert (early.lines, early.first) == (("##o...",), -2)
    assert early.meanings == (("#", "outside"), ("o", "asked for"), (".", "inside"))


def test_a_range_may_be_far_away() -> None:
    """An index of a thousand million costs no array of that size, and is seen."""
    picture = picture_of_range(512, 10**9, 10**9)
    assert picture.lines == ("." + " " * 62 + "#",)
    assert picture.columns == 10**9 + 1


@given(arrays(np.bool_, array_shapes(min_dims=1, max_dims=4, max_side=40)))
def test_a_picture_tells_the_truth(mask: Any) -> None:
    """Every sign says of its elements what the mask does: all, none, or both."""
    picture = picture_of(mask, UNWRITTEN)
    flat = mask.reshape(1, -1) if not picture.rows else mask.reshape(mask.shape[0], -1)
    rows = picture.rows or ((0, 0),)
    signs = len(picture.lines[0])
    assert len(picture.lines) <= 8
    assert signs <= 64
    for (first, last), line in zip(rows, picture.lines, strict=True):
        for position, sign in enumerate(line):
            part = flat[first : last + 1, flat.shape[1] * position // signs : flat.shape[1] * (position + 1) // signs]
            assert sign == ("#" if part.all() else "+" if part.any() else ".")


@given(st.integers(1, 300), st.integers(-300, 600), st.integers(0, 300))
def test_a_range_is_shown_where_it_is(size: int, first: int, more: int) -> None:
    """Something is outside exactly where the range is."""
    line = picture_of_range(size, first, first + more).lines[0]
    assert ("#" in line) == (first < 0 or first + more >= size)
