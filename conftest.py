"""What every test of this repository can count on."""

import gc
import os
from collections.abc import Iterator
from glob import glob

import pytest

pytest_plugins = [
    "pytester",
    "tests.at_most",
    "tests.careful",
    "tests.nki_versions",
    "tests.processes",
    "tests.session_results",
    "tests.skips",
    "tests.soak",
    "tests.time_limits",
]

# Where libtpu is installed for its compiler alone, JAX would try to start a TPU in every process.
if not any(glob(nodes) for nodes in ("/dev/accel*", "/dev/vfio/[0-9]*", "/dev/nvidia[0-9]*")):
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Kernels that talk to other devices run on simulated ones. JAX compiles the small tests for longer than they run:
# without the optimizations that they never repay.
_QUICK_TO_COMPILE = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
os.environ.setdefault("XLA_FLAGS", f"--xla_force_host_platform_device_count=4 {_QUICK_TO_COMPILE}")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Iterator[object]:
    """Keep all that collection makes, 16,000 tests, out of the searches for garbage that follow."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
