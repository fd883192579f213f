from pathlib import Path

import numpy as np
import pytest
from relu_from_operator import relu

from nkitools.customop import load

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def operator():
    return load("relu_ops", [HERE / "relu.cpp"], [HERE / "relu_shape.cpp"]).relu


@pytest.mark.parametrize("shape", [(1, 1), (128, 64), (200, 33)])
def test_the_kernel_is_the_operator(run_kernel, operator, shape):
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    expected = operator(x)
    np.testing.assert_array_equal(run_kernel(relu, x), expected)
