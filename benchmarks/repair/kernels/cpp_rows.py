"""What the operator beside it computes."""

import numpy as np

multicore = False


def reference(x):
    return x.sum(axis=1)


inputs = (np.random.default_rng(33).random((20, 30), np.float32),)
tolerance = (1e-5, 1e-5)
