"""A fake of neuronxcc.nki 2.26 on an instance.

Source: the docstring of ``nki.jit`` ("automatically detect the current framework"; modes among them "simulation"), of
``simulate_kernel`` ("simulate a nki kernel on CPU"), of ``trace`` (outputs are passed by reference).
"""

import functools


class Kernel:
    """What the decorators return."""

    def __init__(self, function, grid=()):
        self._function, self._grid = function, grid
        functools.update_wrapper(self, function)

    def __getitem__(self, grid):
        return Kernel(self._function, grid)

    def __call__(self, *args, **kwargs):
        from nkitools.dialects import legacy

        kernel = legacy.jit(self._function)
        return (kernel[self._grid] if self._grid else kernel)(*args, **kwargs)


def jit(func=None, mode="auto", **kwargs):
    """As a decorator with and without arguments."""
    return Kernel if func is None else Kernel(func)


def simulate_kernel(kernel, *args, **kwargs):
    """On the CPU."""
    return kernel(*args, **kwargs)
