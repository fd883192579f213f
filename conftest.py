"""What every test of this repository can count on."""

import os
from glob import glob

from hypothesis import settings

pytest_plugins = ["pytester"]

# Where libtpu is installed for its compiler alone, JAX would try to start a TPU in every process.
if not any(glob(nodes) for nodes in ("/dev/accel*", "/dev/vfio/[0-9]*", "/dev/nvidia[0-9]*")):
    os.environ.setdefault("JAX_PLATFORMS", "cpu")

# A busy machine is no reason for a test to fail. All else stays as Hypothesis chooses it, for CI too.
settings.register_profile("patient", settings(), deadline=None)
settings.load_profile("patient")
