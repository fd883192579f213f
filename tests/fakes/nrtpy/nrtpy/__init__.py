"""A fake of nrtpy as it comes with nki: ``SpikeModel`` and ``SpikeTensor``.

Sources: the pages of nrtpy (``load_from_neff``, ``input_tensors_info``, a call with tensors by name, ``benchmark`` with
its result, ``mode="device"``). From public reports: on two physical cores ``benchmark`` has one sample of each core for
a launch, so that the mean lies between the two; outputs come as bytes without a dtype.

A NEFF of the fake nki has the outputs in it: nothing is computed here.
"""

import os
import pickle
import statistics
from types import SimpleNamespace

import numpy as np

CORES_MS = (0.025, 0.02)  # the time of each physical core of a launch
launches = []


class SpikeTensor:
    """A tensor on the device."""

    def __init__(self, array):
        self._array = array

    @classmethod
    def from_numpy(cls, array, name="", core_id=0):
        """Copy an array there."""
        return cls(array.copy())

    def numpy(self):
        """The bytes, without a dtype."""
        return self._array.view(f"V{self._array.itemsize}")


class SpikeModel:
    """A NEFF that is loaded."""

    def __init__(self, neff):
        self._neff = neff
        self.input_tensors_info = neff["inputs"]
        self.output_tensors_info = {f"output{number}": None for number, _ in enumerate(neff["outputs"])}
        degree = int(os.environ.get("NEURON_LOGICAL_NC_CONFIG", "1"))
        if degree != neff["lnc"]:
            raise RuntimeError(f"NRT_LOAD_NOT_ENOUGH_NC (9): the NEFF is for {neff['lnc']} cores")

    @classmethod
    def load_from_neff(cls, path, name=None, core_id=0):
        """Load a file onto a core."""
        with open(path, "rb") as file:
            return cls(pickle.load(file))

    def __call__(self, inputs, outputs=None):
        """Execute it once, and wait."""
        for name, (shape, itemsize) in self.input_tensors_info.items():
            given = inputs[name]._array
            if (given.shape, given.itemsize) != (shape, itemsize):
                raise RuntimeError(f"NRT_EXEC_BAD_INPUT (1002): {name}")
        launches.append(self._neff["lnc"])
        return {
            name: type(next(iter(inputs.values())))(np.ascontiguousarray(array))
            for name, array in zip(self.output_tensors_info, self._neff["outputs"], strict=True)
        }

    def benchmark(self, inputs, outputs=None, warmup_iter=5, benchmark_iter=5, mode="device"):
        """Time it: on two cores each launch is there twice."""
        assert mode in ("device", "host")
        self(inputs)
        samples = [*CORES_MS[: self._neff["lnc"]]] * benchmark_iter
        mean = statistics.fmean(samples)
        return SimpleNamespace(
            mean_ms=mean,
            min_ms=min(samples),
            max_ms=max(samples),
            std_dev_ms=0.0,
            iterations=benchmark_iter,
            durations_ms=samples,
        )
