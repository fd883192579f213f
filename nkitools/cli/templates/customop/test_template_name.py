from pathlib import Path

import numpy as np
import pytest

from nkitools.customop import load

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def operators():
    return load("template_name_ops", [HERE / "template_name.cpp"], [HERE / "template_name_shape.cpp"], multicore=True)


def reference(x, factor):
    return x * np.float32(factor)


@pytest.mark.sim
@pytest.mark.parametrize("shape", [(1,), (100, 21), (3, 5, 7)], ids=str)
def test_template_name(run_kernel, operators, shape):
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    np.testing.assert_array_equal(run_kernel(operators.template_name, x, 2.5), reference(x, 2.5))
