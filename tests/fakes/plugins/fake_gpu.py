"""A pytest plugin: JAX's CPU taken for a GPU. Sources and means as in `fake_tpu`."""

import pytest
from fake_plug import pull

from nkitools.targets.jax_devices import GpuDevice

GpuDevice.call = pull(GpuDevice.call)


def pytest_configure(config):
    """The plugin of JAX for CUDA counts as installed."""
    GpuDevice.plugins = ("jax",)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """In the process that runs hardware tests."""
    from jax.experimental.pallas import tpu as pltpu

    GpuDevice.platform = GpuDevice.lowers_to = "cpu"
    with pltpu.force_tpu_interpret_mode(True):
        return (yield)
