"""A (fake) Trn2 of SDK 2.33: torch loads AWS's backend by itself, which imports AWS's nki."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

TEST = """
import torch

def test_torch(run_kernel, request):
    x = torch.arange(8, dtype=torch.float32).reshape(2, 4)
    out = run_kernel(double, x)
    assert type(out) is torch.Tensor and torch.equal(out, 2 * x)

def test_environment(run_kernel, request):
    on_hardware = "[hw]" in request.node.name
    assert os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD") == (None if on_hardware else "0")
    assert hasattr(torch, "neuron") == on_hardware
    run_kernel(double, X)
"""


def test_files_that_import_torch_run_in_simulation(machine: Any) -> None:
    """The stand-in is in nki's place, and torch's import leaves AWS's backend alone; afterwards it does not."""
    author = machine("native", "aws")
    result = author.run_apart("-m", "sim", test=TEST)
    result.assert_outcomes(passed=2, deselected=2)
