"""Masks against NumPy's boolean arrays."""

from __future__ import annotations

import operator
from typing import Any

import neuronxcc.nki.language as nl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
from nkitools.dialects.legacy.indexing.masks import Lanes, lanes_of
from nkitools.dialects.legacy.indexing.mesh_grids import arange
from tests.dialects.legacy.running import outputs, random, refusal

COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq}


def chosen(lanes: Lanes | None, shape: tuple[int, ...]) -> Any:
    """Lanes as a boolean array of the tile."""
    result = np.zeros(shape, bool)
    if lanes is None:
        return np.ones(shape, bool)
    if not lanes.empty:
        result[lanes.slices] = True if lanes.where is None else lanes.where
    return result


@st.composite
def masks(draw: st.DrawFn) -> tuple[Any, Any, tuple[int, ...]]:
    """A mask over a tile, the same in NumPy, and the tile's shape."""
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=2, max_size=3)))
    keys = [tuple(slice(None) if dim == axis else None for dim in range(len(shape))) for axis in range(len(shape))]
    symbolic: Any = True
    numeric: Any = np.ones(shape, bool)
    for _ in range(draw(st.integers(1, 3))):
        sides: list[tuple[Any, Any]] = []
        for _ in range(2):
            left: Any = draw(st.integers(-8, 8))
            right: Any = left
            for axis in draw(st.sets(st.integers(0, len(shape) - 1))):
                factor = draw(st.integers(-3, 3))
                left = left + factor * arange(shape[axis])[keys[axis]]
                right = right + factor * np.arange(shape[axis])[keys[axis]]
            sides.append((left, right))
        compare = COMPARISONS[draw(st.sampled_from(sorted(COMPARISONS)))]
        symbolic = compare(sides[0][0], sides[1][0]) & symbolic
        numeric = numeric & compare(sides[0][1], sides[1][1])
    return symbolic, numeric, shape


@given(masks())
def test_a_mask_chooses_the_lanes_that_numpy_chooses(case: tuple[Any, Any, tuple[int, ...]]) -> None:
    """Any comparisons of affine expressions joined by & leave exactly the lanes for which they hold."""
    mask, expected, shape = case
    lanes = lanes_of(mask if not isinstance(mask, np.bool_) else bool(mask), shape, "test")
    np.testing.assert_array_equal(chosen(lanes, shape), expected)


@given(masks())
def test_the_boxes_of_a_mask_cover_its_lanes_once(case: tuple[Any, Any, tuple[int, ...]]) -> None:
    """Cut into boxes, a predicate addresses every lane for which it holds once, and no other."""
    mask, expected, shape = case
    lanes = lanes_of(mask if not isinstance(mask, np.bool_) else bool(mask), shape, "test")
    if lanes is None or lanes.empty:
        return
    counted = np.zeros(shape, int)
    for box in lanes.boxes():
        counted[tuple(slice(*lane) for lane in box)] += 1
    np.testing.assert_array_equal(counted, expected.astype(int))


def test_comparisons_of_one_axis_each_make_a_box() -> None:
    """A mask that bounds axes one by one is a smaller tile, without a predicate."""
    i_p, i_f = arange(128)[:, None], arange(512)[None, :]
    lanes = lanes_of((i_p < 64) & (i_f + 4 >= 8) & (2 * i_f < 300), (128, 512), "test")
    assert lanes is not None
    assert lanes.box == ((0, 64), (4, 150))
    assert lanes.where is None


def test_a_mask_that_holds_everywhere_is_no_mask() -> None:
    """Nothing is restricted where nothing is left out."""
    assert lanes_of(arange(128)[:, None] < 128, (128, 4), "test") is None
    assert lanes_of(True, (128, 4), "test") is None


def test_a_plain_truth_value_executes_or_skips() -> None:
    """A comparison of loop counters is a bool: False leaves no lane."""
    lanes = lanes_of(False, (128, 4), "test")
    assert lanes is not None
    assert lanes.empty


@pytest.mark.parametrize(
    "mask",
    [
        lambda i, t: (i < 3) | (i > 5),
        lambda i, t: ~(i < 3),
        lambda i, t: i != 3,
        lambda i, t: i % 2 < 1,
        lambda i, t: (i // 4) < 1,
        lambda i, t: i < 1.5,
        lambda i, t: i < t,
        lambda i, t: t < i,
        lambda i, t: (i < 3) & t,
    ],
)
def test_other_masks_are_refused(mask: Any) -> None:
    """A mask is comparisons of affine expressions joined with & (NK604)."""

    def kernel(x: Any) -> Any:
        tile = nl.load(x)
        return nl.exp(tile, mask=mask(nl.arange(128)[:, None], tile))

    finding = refusal(kernel, random(128, 8))
    assert finding.rule == "NK604"
    assert "err_unsupported_expression_in_mask" in finding.message


def with_or(x: Any) -> Any:
    i_p = nl.arange(128)[:, None]
    return nl.load(x, mask=(i_p > 2) or (i_p < 9))


def with_not(x: Any) -> Any:
    return nl.load(x, mask=not (nl.arange(128)[:, None] > 2))


def with_chain(x: Any) -> Any:
    return nl.load(x, mask=2 < nl.arange(128)[:, None] < 9)


@pytest.mark.parametrize("kernel", [with_or, with_not, with_chain])
def test_words_and_chains_in_a_mask_are_refused(kernel: Any) -> None:
    """`or`, `not` and chained comparisons ask a mask for one truth value (NK604); of `and` see test_mask_and."""
    assert refusal(kernel, random(128, 8)).rule == "NK604"


def test_control_flow_on_a_mask_is_refused() -> None:
    """`if` on an index expression is refused with AWS's code (NK602)."""

    def kernel(x: Any) -> Any:
        i_f = nl.arange(8)[None, :]
        if i_f > 4:
            return nl.load(x)
        return x

    finding = refusal(kernel, random(128, 8))
    assert finding.rule == "NK602"
    assert "err_control_flow_condition_depending_on_arange" in finding.message


def test_a_mask_of_another_tile_is_refused() -> None:
    """The axes of a mask are those of the tile that it is used on (NK604)."""
    for mask, shape in ((arange(128)[:, None] < 9, (64, 4)), (arange(128)[:, None, None] < 9, (128, 4))):
        with pytest.raises(nkitools.KernelError) as caught:
            lanes_of(mask, shape, "test")
        assert caught.value.finding.rule == "NK604"


def test_a_triangular_mask_computes_its_lanes_only() -> None:
    """Where a mask is no box, the lanes for which it holds are computed and the others keep what they had."""

    def kernel(x: Any) -> Any:
        i_p, i_f = nl.arange(64)[:, None], nl.arange(64)[None, :]
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.zeros((64, 64), dtype=x.dtype)
        tile[i_p, i_f] = nl.exp(nl.load(x), mask=i_p >= i_f)
        nl.store(result, tile)
        return result

    x = random(64, 64)
    np.testing.assert_allclose(outputs(kernel, x), np.tril(np.exp(x)), rtol=1e-6)


def test_masked_lanes_may_lie_outside_of_the_tensor() -> None:
    """A load and a store address the lanes of the mask only, also where that is no box."""

    def kernel(x: Any) -> Any:
        i_p, i_f = nl.arange(40)[:, None], nl.arange(30)[None, :]
        result = nl.ndarray((1, 50), dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.zeros((40, 30), dtype=x.dtype)
        tile[i_p, i_f] = nl.load(x[0, i_p + i_f], mask=i_p + i_f < 50)
        nl.store(result[0, i_p + i_f], tile, mask=i_p + i_f < 50)
        return result

    x = random(1, 50)
    np.testing.assert_array_equal(outputs(kernel, x), x)
