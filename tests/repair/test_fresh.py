"""Other values and shapes for a verification, of NumPy's arrays and of other frameworks' tensors alike."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from nkitools.repair.fresh import has_codes, larger_values, other_shapes, other_values


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
    np.testing.assert_allclose(np.asarray(larger_values(given)[0][0]), 10 * numbers, rtol=1e-6)
    assert has_codes(given)
    assert [said for said, _ in other_shapes(given)] == [said for said, _ in other_shapes(plain)] != []
    (_, ((first, _), _)) = next(iter(other_shapes(given)))
    assert first.shape == (12, 5)
