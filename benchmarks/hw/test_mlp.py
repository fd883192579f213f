"""Batches of 32 through an MLP (784-4096-2048-10): torch's ReLU, and ours in the three stages of AWS's tutorial.

A round is one batch, recorded, run and awaited on the NeuronCore; parameters stay there. The custom operators are
built by AWS's loader. AWS's guide says that a model can have one library of custom operators: each model here has one,
while the process loads one after the other. Should a loader object to that, run one stage a session (``-k tcm``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cpp_ops.relu import build  # noqa: E402 - torch decides whether this file is collected

BATCH, LAYERS = 32, (784, 4096, 2048, 10)
# Multiplications and additions of the three layers.
OPERATIONS = 2 * BATCH * sum(rows * columns for rows, columns in pairwise(LAYERS))


class Mlp(torch.nn.Module):  # type: ignore[misc,name-defined]
    """Three layers with an activation of one's choice."""

    def __init__(self, relu: Callable[[Any], Any]) -> None:
        super().__init__()
        self.relu = relu
        self.first, self.second, self.third = (torch.nn.Linear(rows, columns) for rows, columns in pairwise(LAYERS))

    def forward(self, images: Any) -> Any:
        """Log-probabilities of the ten digits."""
        hidden = self.relu(self.second(self.relu(self.first(images))))
        return torch.log_softmax(self.third(hidden), dim=1)


def _ours(stage: str, values: Any) -> Any:
    """The operator by its name, looked up at each call: the module is copied to the device, an operator cannot be."""
    return getattr(torch.ops, f"relu_{stage}").relu_forward(values)


@pytest.mark.hw("neuron")
@pytest.mark.benchmark(group="mlp")
@pytest.mark.parametrize("relu", ["torch", *build.STAGES])
def test_batches(kernel_benchmark: Callable[..., Any], relu: str, request: pytest.FixtureRequest) -> None:
    """The outputs are those of torch on the host; ``batches_per_second`` is that of the fastest round."""
    if relu != "torch":
        import_module("torch_neuronx.xla_impl.custom_op").load(**build.recipe(relu))
    torch.manual_seed(0)
    model = Mlp(torch.relu if relu == "torch" else partial(_ours, relu)).eval()
    images = torch.rand(BATCH, LAYERS[0])
    measured = kernel_benchmark(model, images, operations=OPERATIONS)

    model.relu = torch.relu
    with torch.no_grad():
        expected = model(images)
    # neuronx-cc may take matrix products in bfloat16, which moves these outputs by some 1e-3.
    np.testing.assert_allclose(measured.numpy(), expected.numpy(), atol=1e-2)
    benchmark = request.getfixturevalue("benchmark")
    if benchmark.stats is not None:
        benchmark.extra_info["batches_per_second"] = 1 / benchmark.stats.stats.min
