"""What the operator beside it computes."""

import numpy as np

multicore = False


def reference(x, factor):
    return x * factor


inputs = (np.random.default_rng(31).random(5000, np.float32), 2.0)
tolerance = (1e-6, 1e-6)
