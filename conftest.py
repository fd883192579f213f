"""What every test of this repository can count on."""

import os
from glob import glob

pytest_plugins = ["pytester", "tests.careful", "tests.processes", "tests.soak"]

# Where libtpu is installed for its compiler alone, JAX would try to start a TPU in every process.
if not any(glob(nodes) for nodes in ("/dev/accel*", "/dev/vfio/[0-9]*", "/dev/nvidia[0-9]*")):
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
