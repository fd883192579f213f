import numpy as np
import pytest

pytest.importorskip("jax")

from column_sums_mended import column_sums


def test_column_sums(run_kernel, device_prints):
    x = np.arange(32 * 128, dtype=np.int32).reshape(32, 128)
    np.testing.assert_array_equal(run_kernel(column_sums, x), x.sum(axis=0, keepdims=True))
    if device_prints:  # in simulation
        assert [(one.prefix, one.program) for one in device_prints] == [("block", (block,)) for block in range(4)]
