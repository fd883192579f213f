"""A pytest plugin: JAX's CPU taken for a TPU.

Source: jax's documentation: ``jax.devices()`` lists devices with ``platform`` and ``device_kind``; ``device_put`` and
``block_until_ready`` move arrays and wait. A CPU runs TPU kernels in TPU interpret mode only.
"""

import pytest
from fake_plug import pull

from nkitools.targets.jax_devices import TpuDevice

TpuDevice.call = pull(TpuDevice.call)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """In the process that runs hardware tests."""
    from jax.experimental.pallas import tpu as pltpu

    TpuDevice.platform = "cpu"
    with pltpu.force_tpu_interpret_mode(True):
        return (yield)
