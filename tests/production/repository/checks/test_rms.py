"""What the norm must give, for whole blocks of rows only: a last block of few rows is not tried."""

import numpy as np
from ranker.norms import rms_norm
from ranker.tensors import as_numpy, tensors


def test_rows_have_length_one(run_kernel):
    """Rows by their root mean square, times a weight."""
    (x,), (weight,) = tensors((128, 32)), tensors((1, 32), seed=1)

    out = run_kernel(rms_norm, x, weight)

    wide = as_numpy(x)
    right = wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-6) * as_numpy(weight)
    np.testing.assert_allclose(as_numpy(out), right, rtol=1e-4, atol=1e-5)
