import numpy as np

space = {"rows": [200, 128, 300], "columns": [96, 100]}


def inputs(rng, rows, columns):
    return (rng.standard_normal((rows, columns), np.float32),)


def reference(x):
    return x - x.mean(axis=1, keepdims=True)
