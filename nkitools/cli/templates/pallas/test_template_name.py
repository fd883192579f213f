import numpy as np
import pytest

pytest.importorskip("jax")

from template_name import reference, template_name

import nkitools


@pytest.mark.parametrize("shape", [(8, 128), (32, 384)], ids=str)
def test_template_name(run_kernel, shape):
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    np.testing.assert_allclose(run_kernel(template_name, x), reference(x), rtol=1e-5, atol=1e-6)


@pytest.mark.sim
def test_the_tpu_compiler_may_take_it():
    x = np.ones((32, 384), np.float32)
    assert nkitools.pallas.check(template_name, x, chips=("v5e",), modes=("lower",)).findings == []
