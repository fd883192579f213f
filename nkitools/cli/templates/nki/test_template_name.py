import numpy as np
import pytest
from template_name import reference, template_name


@pytest.mark.parametrize("shape", [(128, 512), (1, 1), (300, 200)], ids=str)
def test_template_name(run_kernel, shape):
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    np.testing.assert_allclose(run_kernel(template_name, x), reference(x), rtol=1e-5, atol=1e-6)


@pytest.mark.sim
def test_the_mean_of_each_tile_is_printed(run_kernel, device_prints):
    x = np.arange(600, dtype=np.float32).reshape(300, 2)
    run_kernel(template_name, x)
    means = np.concatenate([each.value for each in device_prints["mean"]])
    np.testing.assert_allclose(means, x.mean(axis=1, keepdims=True), rtol=1e-6)
