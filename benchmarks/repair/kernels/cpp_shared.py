"""What the operator beside it computes."""

import numpy as np

multicore = True


def reference(x):
    return np.abs(x)


inputs = (np.random.default_rng(32).standard_normal(1003).astype(np.float32),)
tolerance = (1e-6, 1e-6)
