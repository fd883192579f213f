import ml_dtypes
import numpy as np
from product import product


def test_product(run_kernel):
    random = np.random.default_rng(0)
    x = random.integers(-8, 9, (256, 128)).astype(ml_dtypes.bfloat16)
    y = random.integers(-8, 9, (128, 384)).astype(ml_dtypes.bfloat16)
    exact = x.astype(np.float64) @ y.astype(np.float64)
    np.testing.assert_array_equal(run_kernel(product, x, y, block=128), exact.astype(ml_dtypes.bfloat16))
