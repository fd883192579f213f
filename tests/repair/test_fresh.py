"""Other values and shapes for a verification, of NumPy's arrays and of other frameworks' tensors alike."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from nkitools.repair.fresh import (
    has_codes,
    other_shapes,
    other_values,
    scaled_values,
    with_one_other,
    with_rows_in_order,
)


@pytest.fixture(params=["jax.numpy", pytest.param("torch", marks=pytest.mark.frameworks)])
def framework(request: pytest.FixtureRequest) -> ModuleType:
    """Return a framework that is not NumPy, where it is installed."""
    module: ModuleType = pytest.importorskip(request.param)
    return module


@pytest.mark.frameworks
def test_tensors_of_a_framework_get_other_values_and_shapes(framework: ModuleType) -> None:
    """As NumPy's arrays do, in the framework; integers stay, and what was given keeps its elements."""
    numbers = np.random.default_rng(0).standard_normal((6, 5), np.float32)
    given: Any = ((framework.asarray(numbers), framework.asarray(np.arange(6, dtype=np.int32))), {"scale": 2.0})
    plain: Any = ((numbers, np.arange(6, dtype=np.int32)), {"scale": 2.0})

    (x, codes), kwargs = other_values(given, 1)
    assert type(x) is type(given[0][0])
    np.testing.assert_array_equal(np.asarray(x), other_values(plain, 1)[0][0])
    assert not (np.asarray(x) == numbers).any()
    np.testing.assert_array_equal(np.asarray(codes), plain[0][1])
    assert kwargs == {"scale": 2.0}
    np.testing.assert_array_equal(np.asarray(given[0][0]), numbers)
    np.testing.assert_allclose(np.asarray(scaled_values(given, 10)[0][0]), 10 * numbers, rtol=1e-6)
    assert has_codes(given)
    assert [said for said, _ in other_shapes(given)] == [said for said, _ in other_shapes(plain)] != []
    (_, ((first, _), _)) = next(iter(other_shapes(given)))
    assert first.shape == (12, 5)


def test_rows_of_ordered_columns_stay_whole() -> None:
    """The corners of boxes: other boxes in other rows, whose ends do not come before their begins."""
    corners = np.sort(np.random.default_rng(0).integers(0, 256, (64, 5, 2, 2)), axis=2).reshape(64, 5, 4)
    boxes = corners.astype(np.float32)
    ((other,), _) = other_values(((boxes,), {}), 1)
    assert (other[..., 2:] >= other[..., :2]).all()
    assert (other != boxes).any()
    known = {each.tobytes() for part in (1.0, 0.5) for each in boxes * np.float32(part)}
    assert {each.tobytes() for each in other} <= known


def test_one_array_after_the_other() -> None:
    """Each array of numbers is another one once; integers stay."""
    random = np.random.default_rng(0)
    given = random.standard_normal((40, 3)), np.arange(40), random.standard_normal((40, 2))
    changed = [
        [not np.array_equal(one, other) for one, other in zip(args, given, strict=True)]
        for args, _ in with_one_other((given, {}))
    ]
    assert changed == [[True, False, False], [False, False, True]]


def test_rows_in_one_order() -> None:
    """All arrays with the commonest number of rows change places alike, integers too."""
    numbers = np.arange(12.0).reshape(6, 2)
    (x, codes, other), kwargs = with_rows_in_order(((numbers, np.arange(6), np.ones((2, 2))), {"scale": 2}), 1)
    np.testing.assert_array_equal(x, numbers[codes])
    assert sorted(codes) == list(range(6)) != list(codes)
    np.testing.assert_array_equal(other, np.ones((2, 2)))
    assert kwargs == {"scale": 2}


@pytest.mark.parametrize("shape", [(256,), (128, 2), (2, 128), (64, 4)])
def test_numbers_in_order_are_others_in_order(shape: tuple[int, ...]) -> None:
    """A range gets other numbers for each seed: whole ones that rise along each long axis, and none beyond it."""
    given: Any = ((np.arange(256, dtype=np.float32).reshape(shape),), {})
    for seed in range(12):
        ((x,), _) = other_values(given, seed)
        assert not np.array_equal(x, given[0][0])
        assert all((np.diff(x, axis=axis) >= 0).all() for axis, size in enumerate(shape) if size > 4)
        assert 0 <= x.min() <= x.max() <= 255
