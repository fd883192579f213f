import numpy as np


def inputs(rng):
    return (rng.standard_normal((200, 96), np.float32),)


def reference(x):
    return x - x.mean(axis=1, keepdims=True)
