import numpy as np
from test_scale import scale


class Library:
    """Takes the kernel for what fits into a tile, and NumPy for all else: the mistake is in the limit."""

    def __init__(self, run):
        self.run = run

    def doubled(self, x):
        return self.run(scale, x, 2.0) if x.shape[0] < 128 else 2 * x


def test_small_arrays_take_the_kernel(run_kernel, kernels_ran):
    x = np.ones((64, 8), np.float32)
    np.testing.assert_array_equal(Library(run_kernel).doubled(x), 2 * x)
    assert kernels_ran == ["scale"]


def test_a_whole_tile_does_not(run_kernel, kernels_ran):
    x = np.ones((128, 8), np.float32)
    np.testing.assert_array_equal(Library(run_kernel).doubled(x), 2 * x)  # green, and no kernel has run
    assert kernels_ran == []
