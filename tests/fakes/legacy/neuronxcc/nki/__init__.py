"""A fake of neuronxcc.nki 2.26 on an instance.

Source: the docstring of ``nki.jit`` ("automatically detect the current framework"; modes among them "simulation"), of
``simulate_kernel`` ("simulate a nki kernel on CPU"), of ``trace`` (outputs are passed by reference). That ``auto`` with
NumPy arrays is ``baremetal``: the traceback of aws-neuron-sdk issue 1058.
"""

import functools

import numpy as np

log = []


class Kernel:
    """What the decorators return."""

    def __init__(self, function, grid=(), mode="auto"):
        self._function, self._grid, self._mode = function, grid, mode
        functools.update_wrapper(self, function)

    def __getitem__(self, grid):
        return Kernel(self._function, grid, self._mode)

    def __call__(self, *args, **kwargs):
        from nkitools.dialects import legacy

        modes = {"baremetal" if isinstance(each, np.ndarray) else "framework" for each in args}
        log.extend(sorted(modes) if self._mode == "auto" else [self._mode])
        kernel = legacy.jit(self._function)
        return (kernel[self._grid] if self._grid else kernel)(*args, **kwargs)


def jit(func=None, mode="auto", **kwargs):
    """As a decorator with and without arguments."""
    return functools.partial(Kernel, mode=mode) if func is None else Kernel(func, mode=mode)


def simulate_kernel(kernel, *args, **kwargs):
    """On the CPU."""
    return kernel(*args, **kwargs)
