"""One step of gradient descent with momentum and weight decay. Legacy dialect."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np

RATE = 0.1
MOMENTUM = 0.9
DECAY = 0.01


@nki.jit
def kernel(weight, gradient, velocity):
    rows, columns = weight.shape
    new_weight = nl.ndarray(weight.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    new_velocity = nl.ndarray(weight.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    i_p = nl.arange(128)[:, None]
    i_f = nl.arange(columns)[None, :]
    for i in nl.affine_range((rows + 127) // 128):
        inside = i * 128 + i_p < rows
        value = nl.load(weight[i * 128 + i_p, i_f], mask=inside)
        change = nl.load(gradient[i * 128 + i_p, i_f], mask=inside)
        speed = nl.load(velocity[i * 128 + i_p, i_f], mask=inside)
        pulled = nl.add(change, nl.multiply(value, DECAY, mask=inside), mask=inside)
        faster = nl.add(nl.multiply(speed, MOMENTUM, mask=inside), pulled, mask=inside)
        step = nl.multiply(speed, RATE, mask=inside)
        moved = nl.subtract(value, step, mask=inside)
        nl.store(new_weight[i * 128 + i_p, i_f], moved, mask=inside)
        nl.store(new_velocity[i * 128 + i_p, i_f], faster, mask=inside)
    return new_weight, new_velocity


def reference(weight, gradient, velocity):
    faster = 0.9 * velocity + gradient + 0.01 * weight
    return weight - 0.1 * faster, faster


def inputs(rows, columns, seed=0):
    rng = np.random.default_rng(seed)
    return tuple(rng.standard_normal((3, rows, columns)).astype(np.float32))


space = {"rows": [150, 128], "columns": [40, 64]}
tolerance = (1e-3, 1e-4)
