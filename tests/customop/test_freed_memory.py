"""Memory that a kernel has freed: whatever it does there is found, in the first call and in any later one."""

from __future__ import annotations

import numpy as np
import pytest

from nkitools.customop import Operator

from .conftest import Builder, places

SHAPE = "torch::Tensor shape(const torch::Tensor& t_in) { return torch::zeros(t_in.sizes(), torch::kFloat); }\n"
BEGIN = """\
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor out = get_dst_tensor();
  float* block = (float*)torch::neuron::tcm_malloc(400);
  float* other = (float*)torch::neuron::tcm_malloc(400);
  if (!block || !other) return out;
  t_in.tcm_accessor().tensor_to_tcm<float>(block, 0, 100);
  t_in.tcm_accessor().tensor_to_tcm<float>(other, 0, 100);
  const bool wrong = other[0] < 0;
  if (!wrong) out.tcm_accessor().tcm_to_tensor<float>(block, 0, 100);
"""
END = """\
  return out;
}
"""
# What is done after the block is freed, for arguments that begin below zero; the line of it is 11.
AFTER = {
    "reads": """\
  torch::neuron::tcm_free(block);
  if (wrong) other[0] = block[0];
  if (wrong) out.tcm_accessor().tcm_to_tensor<float>(other, 0, 100);
  torch::neuron::tcm_free(other);
""",
    "writes": """\
  torch::neuron::tcm_free(block);
  if (wrong) block[0] = 1;
  if (wrong) out.tcm_accessor().tcm_to_tensor<float>(other, 0, 100);
  torch::neuron::tcm_free(other);
""",
    "prints": """\
  torch::neuron::tcm_free(block);
  if (wrong) printf("%f", block[0]);
  torch::neuron::tcm_free(other);
""",
    "throws": """\
  torch::neuron::tcm_free(block);
  if (wrong && block[0] < 0) throw std::runtime_error("negative");
  torch::neuron::tcm_free(other);
""",
    "copies": """\
  torch::neuron::tcm_free(block);
  if (wrong) out.tcm_accessor().tcm_to_tensor<float>(block, 0, 100);
  torch::neuron::tcm_free(other);
""",
    "reuses": """\
  torch::neuron::tcm_free(block);
  float* again = wrong ? (float*)torch::neuron::tcm_malloc(400) : nullptr;
  if (again) { volatile float stale = block[0]; again[0] = stale; torch::neuron::tcm_free(again); }
  torch::neuron::tcm_free(other);
""",
}
LAST = """\
  torch::neuron::tcm_free(other);
  if (t_in.numel() > 100) *other = 1;
  torch::neuron::tcm_free(block);
"""
RIGHT = np.arange(100, dtype=np.float32)


@pytest.fixture(scope="module")
def operators(build_operators: Builder) -> dict[str, Operator]:
    sources = {name: BEGIN + after + END + SHAPE for name, after in AFTER.items()}
    sources["ends"] = BEGIN + LAST + END + SHAPE
    return build_operators(sources, headers="#include <stdexcept>\n", multicore=False)


@pytest.mark.parametrize("before", [0, 1, 3])
@pytest.mark.parametrize("name", AFTER)
def test_what_is_done_with_freed_memory_is_found(operators: dict[str, Operator], name: str, before: int) -> None:
    """However many calls before were right, and so will those be that come after."""
    operator = operators[name]
    for values in [RIGHT] * before + [RIGHT - 1] + [RIGHT] * 2:
        run = operator.run(values)
        if values is RIGHT:
            assert run.findings == []
            np.testing.assert_array_equal(run.outputs, RIGHT)
            continue
        rule, line = places(run)[0]
        assert rule == ("CO104" if name == "copies" else "CO103")
        assert line == (12 if name == "reuses" else 11)
        assert "after its tcm_free (line 10)" in run.findings[0].message


def test_the_last_thing_that_a_kernel_does_is_found(operators: dict[str, Operator]) -> None:
    """Also where nothing comes of it, in the first call with arguments of a shape."""
    operator = operators["ends"]
    for _ in range(2):
        assert operator.run(RIGHT).findings == []
    run = operator.run(np.arange(101, dtype=np.float32))
    assert places(run) == [("CO103", 11)]
    assert "after its tcm_free (line 10)" in run.findings[0].message
