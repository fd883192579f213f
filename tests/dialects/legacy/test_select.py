"""``nisa.*`` that choose between values, against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
import pytest

from tests.dialects.legacy.running import outputs, random, refusal, stored

LOWEST = np.finfo(np.float32).min
row, col = np.mgrid[0:16, 0:8]
I_P, I_F = nl.arange(16)[:, None], nl.arange(8)[None, :]


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (lambda p, f: f < p, col < row),
        (lambda p, f: f <= p + 2, col <= row + 2),
        (lambda p, f: 2 * p - 3 * f >= 4, 2 * row - 3 * col >= 4),
        (lambda p, f: p + f == 9, row + col == 9),
        (lambda p, f: p > 7, row > 7),
        (lambda p, f: f - p, col - row > 0),
        (lambda p, f: True, np.ones((16, 8), bool)),
        (lambda p, f: False, np.zeros((16, 8), bool)),
    ],
)
def test_affine_select(predicate: Any, expected: Any) -> None:
    """One comparison of affine expressions, or an expression, which holds where it is above 0."""
    x = random(16, 8)
    for p, f in ((I_P, I_F), tuple(nl.mgrid[0:16, 0:8])):
        kernel = stored(lambda t, p=p, f=f: nisa.affine_select(predicate(p, f), t, nl.fp32.min))
        np.testing.assert_array_equal(outputs(kernel, x), np.where(expected, x, LOWEST))


def test_affine_select_of_three_dimensions_in_another_dtype() -> None:
    """The predicate has the axes of the tile; the result is cast once."""
    x = random(4, 3, 5)
    grid = nl.mgrid[0:4, 0:3, 0:5]
    p, f, g = np.mgrid[0:4, 0:3, 0:5]
    kernel = stored(lambda t: nisa.affine_select(grid.x + 2 * grid.y > grid.p + 3, t, -1.5, dtype=nl.bfloat16))
    expected = np.where(f + 2 * g > p + 3, x, -1.5).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(outputs(kernel, x), expected)


def test_under_a_mask_affine_select_keeps_the_positions_of_the_whole_tile() -> None:
    """What the mask leaves is what it would be without; the other lanes stay as they were."""

    def kernel(a: Any, oblique: bool) -> Any:
        result = nl.ndarray((16, 8), dtype=a.dtype, buffer=nl.shared_hbm)
        tile, chosen = nl.load(a), nl.zeros((16, 8), dtype=a.dtype)
        mask = I_P + I_F >= 6 if oblique else (I_P < 12) & (I_F >= 3)
        chosen[...] = nisa.affine_select(I_F < I_P, tile, -1.0, mask=mask)
        nl.store(result, chosen)
        return result

    x = random(16, 8)
    selected = np.where(col < row, x, np.float32(-1))
    np.testing.assert_array_equal(outputs(kernel, x, False), np.where((row < 12) & (col >= 3), selected, 0))
    np.testing.assert_array_equal(outputs(kernel, x, True), np.where(row + col >= 6, selected, 0))


def ranged(first: int, **options: Any) -> Any:
    """A kernel that stores what range_select makes, and its maxima."""

    def kernel(a: Any, low: Any, high: Any) -> tuple[Any, Any]:
        tile, maximum = nl.zeros((16, 8), dtype=nl.float32), nl.zeros((16, 1), dtype=nl.float32)
        tile[...] = nisa.range_select(
            on_true_tile=nl.load(a),
            comp_op0=np.greater_equal,
            comp_op1=nl.less,
            bound0=nl.load(low),
            bound1=nl.load(high),
            reduce_res=maximum,
            range_start=first,
            **options,
        )
        selected = nl.ndarray((16, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        largest = nl.ndarray((16, 1), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(selected, tile)
        nl.store(largest, maximum)
        return selected, largest

    return kernel


@pytest.mark.parametrize("options", [{}, {"reduce_cmd": nisa.reduce_cmd.reset_reduce}, {"reduce_op": np.max}])
def test_range_select(options: Any) -> None:
    """Elements whose index lies within bounds, and their maximum, which the default reduce_cmd gives as well."""
    x, low = random(16, 8), np.arange(16, dtype=np.float32).reshape(16, 1) / 3 + 4
    high = low + 3
    selected, largest = outputs(ranged(5, **options), x, low, high)
    expected = np.where((col + 5 >= low) & (col + 5 < high), x, LOWEST)
    np.testing.assert_array_equal(selected, expected)
    np.testing.assert_array_equal(largest, expected.max(axis=1, keepdims=True))


def test_under_a_mask_range_select_keeps_the_indices_of_the_whole_tile() -> None:
    """The part that the mask leaves is selected and reduced, with the indices that its elements have."""
    x, low, high = random(16, 8), np.full((16, 1), 4, np.float32), np.full((16, 1), 7, np.float32)
    selected, largest = outputs(ranged(0, mask=(I_P < 10) & (I_F >= 5)), x, low, high)
    chosen = np.where((col >= low) & (col < high), x, LOWEST)
    np.testing.assert_array_equal(selected, np.where((row < 10) & (col >= 5), chosen, 0))
    np.testing.assert_array_equal(largest[:10], chosen[:10, 5:].max(axis=1, keepdims=True))
    assert not largest[10:].any()


def test_range_select_came_with_neuroncore_v3() -> None:
    """NK606 on trn1."""
    column = np.zeros((16, 1), np.float32)
    assert refusal(ranged(0), random(16, 8), column, column, chip="trn1").rule == "NK606"


@pytest.mark.parametrize("reverse", [False, True])
def test_select_reduce_and_tensor_copy_predicated(reverse: bool) -> None:
    """In place, under a predicate and its reverse, on the lanes of a mask."""
    x, y = random(16, 8), random(16, 8, seed=1)
    choice = (random(16, 8, seed=2) > 0).astype(np.uint8)

    def kernel(a: Any, b: Any, c: Any) -> tuple[Any, ...]:
        on_true, choice = nl.load(a), nl.load(c)
        selected, copied, number = nl.load(b), nl.load(b), nl.load(b)
        mask = (I_P < 14) & (I_F < 6)
        maximum = nl.zeros((16, 1), dtype=nl.float32)
        nisa.select_reduce(
            dst=selected,
            predicate=choice,
            on_true=on_true,
            on_false=-9.0,
            reduce_res=maximum,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
            reverse_pred=reverse,
            mask=mask,
        )
        nisa.tensor_copy_predicated(src=on_true, dst=copied, predicate=choice, reverse_pred=reverse, mask=mask)
        nisa.tensor_copy_predicated(src=7.0, dst=number, predicate=choice, reverse_pred=reverse, dtype=nl.float32)
        results = [nl.ndarray((16, 8), dtype=a.dtype, buffer=nl.private_hbm) for _ in range(3)]
        maxima = nl.ndarray((16, 1), dtype=a.dtype, buffer=nl.private_hbm)
        for result, tile in zip([*results, maxima], [selected, copied, number, maximum], strict=True):
            nl.store(result, tile)
        return (*results, maxima)

    chosen = (choice == 0) if reverse else (choice != 0)
    within = (row < 14) & (col < 6)
    selected, copied, number, maxima = outputs(kernel, x, y, choice)
    picked = np.where(chosen, x, np.float32(-9))
    np.testing.assert_array_equal(selected, np.where(within, picked, y))
    np.testing.assert_array_equal(copied, np.where(within & chosen, x, y))
    np.testing.assert_array_equal(number, np.where(chosen, np.float32(7), y))
    np.testing.assert_array_equal(maxima[:14, 0], picked[:14, :6].max(axis=1))
    assert not maxima[14:].any()


def test_select_reduce_takes_a_vector_for_false() -> None:
    """One number a partition where the predicate does not hold; without a reduction nothing is reduced."""
    x, column = random(16, 8), random(16, 1, seed=1)
    choice = (x > 0).astype(np.int8)

    def kernel(a: Any, b: Any, c: Any) -> Any:
        result = nl.ndarray((16, 8), dtype=nl.bfloat16, buffer=nl.shared_hbm)
        tile = nl.ndarray((16, 8), dtype=nl.bfloat16)
        nisa.select_reduce(dst=tile, predicate=nl.load(c), on_true=nl.load(a), on_false=nl.load(b))
        nl.store(result, tile)
        return result

    np.testing.assert_array_equal(
        outputs(kernel, x, column, choice), np.where(x > 0, x, column).astype(ml_dtypes.bfloat16)
    )


@pytest.mark.parametrize("dtype", [None, np.int32, np.float32])
def test_sequence_bounds(dtype: Any) -> None:
    """The reference's own example: starts and ends of runs, n and -1 for padding."""
    ids = np.array([[0, 1, 1, 2, 2, 2, 0, 3, 3]], np.int32)
    found = outputs(stored(lambda t: nisa.sequence_bounds(segment_ids=t, dtype=dtype)), ids)
    assert found.dtype == (np.int32 if dtype is None else dtype)
    np.testing.assert_array_equal(found, [[[9, 1, 1, 3, 3, 3, 9, 7, 7], [-1, 3, 3, 6, 6, 6, -1, 9, 9]]])


def filled(dtype: Any) -> Any:
    """A (16, 8) tile of ones."""
    return nisa.memset((16, 8), 1, dtype)


@pytest.mark.parametrize(
    ("call", "rule", "said"),
    [
        (lambda t: nisa.affine_select((I_F < I_P) & (I_P < 3), t, 0.0), "NK604", "joins 2 comparisons"),
        (lambda t: nisa.affine_select(I_F // 2 < I_P, t, 0.0), "NK604", "//"),
        (lambda t: nisa.affine_select(t, t, 0.0), "NK604", "Tensor"),
        (lambda t: nisa.affine_select(nl.arange(7)[None, :] < 3, t, 0.0), "NK604", "7 positions"),
        (lambda t: nisa.affine_select(I_F < I_P, filled(nl.int32), 0.0), "NK301", "32-bit"),
        (lambda t: nisa.affine_select(I_F < I_P, t, 0.0, dtype=nl.uint32), "NK301", "`dtype`"),
        (lambda t: nisa.affine_select(I_F < I_P, t, t), "NK609", "on_false_value"),
        (lambda t: nisa.affine_select(I_F < I_P, nl.copy(t, buffer=nl.psum), 0.0), "NK609", "buffer"),
        (
            lambda t: nisa.range_select(
                on_true_tile=t, comp_op0=np.less, comp_op1=np.less, bound0=1.0, bound1=t[:, 0:1]
            ),
            "NK609",
            "bound0",
        ),
        (
            lambda t: nisa.range_select(
                on_true_tile=t, comp_op0=np.less, comp_op1=nl.not_equal, bound0=t[:, 0:1], bound1=t[:, 0:1]
            ),
            "NK306",
            "comp_op1",
        ),
        (
            lambda t: nisa.range_select(
                on_true_tile=t,
                comp_op0=np.less,
                comp_op1=np.less,
                bound0=t[:, 0:1],
                bound1=t[:, 0:1],
                on_false_value=0.0,
            ),
            "NK609",
            "FP32_MIN",
        ),
        (
            lambda t: nisa.range_select(
                on_true_tile=t, comp_op0=np.less, comp_op1=np.less, bound0=t[:, 0:1], bound1=t[:, 0:1], mask=I_P >= I_F
            ),
            "NK604",
            "box",
        ),
        (lambda t: nisa.tensor_copy_predicated(src=t, dst=t, predicate=t), "NK301", "predicate"),
        (
            lambda t: nisa.tensor_copy_predicated(src=t, dst=t, predicate=filled(nl.uint8), dtype=nl.bfloat16),
            "NK301",
            "`dtype`",
        ),
        (lambda t: nisa.tensor_copy_predicated(src=t, dst=3.0, predicate=t), "NK609", "dst"),
        (
            lambda t: nisa.select_reduce(dst=t, predicate=filled(nl.uint8), on_true=filled(nl.int32), on_false=0.0),
            "NK301",
            "on_true",
        ),
        (
            lambda t: nisa.select_reduce(
                dst=t, predicate=filled(nl.uint8), on_true=t, on_false=0.0, reduce_res=t[:, 0:1], reduce_op=np.add
            ),
            "NK306",
            "reduce_op",
        ),
        (lambda t: nisa.sequence_bounds(segment_ids=t), "NK109", "one partition"),
        (lambda t: nisa.sequence_bounds(t), "NK609", "positional"),
    ],
)
def test_what_is_refused(call: Any, rule: str, said: str) -> None:
    """Predicates, dtypes, operators and forms that are not possible are refused by rule."""
    finding = refusal(stored(call), random(16, 8))
    assert finding.rule == rule
    assert said in finding.message
