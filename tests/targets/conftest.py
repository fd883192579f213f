"""A machine on which the tests of targets look for devices."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nkitools.targets import packages

CACHES = (packages.is_installed, packages.aws_package)
VARIABLES = ("JAX_PLATFORMS", "NEURON_RT_VISIBLE_CORES", "NEURON_LOGICAL_NC_CONFIG", "CUDA_VISIBLE_DEVICES")


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A machine without devices, told nothing; each test looks for itself."""
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("NKITOOLS_SYSROOT", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for cached in CACHES:
        cached.cache_clear()
    yield tmp_path
    monkeypatch.undo()
    for cached in CACHES:
        cached.cache_clear()
