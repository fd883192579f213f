import unittest

import numpy as np
import pytest
from test_scale import scale


class TestScale(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def _take(self, run_kernel):
        self.run_kernel = run_kernel

    def test_scale(self):
        x = np.ones((128, 64), np.float32)
        np.testing.assert_array_equal(self.run_kernel(scale, x, 2.0), 2 * x)

    def test_nothing_is_reported(self):
        self.run_kernel(scale, np.ones((1, 64), np.float32), 3.0)
        assert self.run_kernel.run.findings == []
