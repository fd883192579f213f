"""What cores do: their order, what they write, and what they count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nkitools.customop import Operator

from .conftest import Builder, places

SHAPE = "torch::Tensor shape(torch::Tensor t_in) { return torch::zeros(t_in.sizes(), torch::kFloat); }\n"
SINGLE = {
    "negate": """\
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::empty(t_in.sizes(), torch::kFloat);
  size_t num_elem = t_in.numel();
  float* buffer = (float*)torch::neuron::tcm_malloc(sizeof(float) * 1000);
  if (!buffer) return t_out;
  for (size_t i = 0; i < num_elem; i += 1000) {
    size_t size = std::min((size_t)1000, num_elem - i);
    t_in.tcm_accessor().tensor_to_tcm<float>(buffer, i, size);
    for (size_t j = 0; j < size; j++) buffer[j] = -buffer[j];
    t_out.tcm_accessor().tcm_to_tensor<float>(buffer, i, size);
  }
  torch::neuron::tcm_free(buffer);
  return t_out;
}
""",
    "partly": """\
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::empty(t_in.sizes(), torch::kFloat);
  auto from = t_in.accessor<float, 1>();
  auto to = t_out.accessor<float, 1>();
  for (int64_t i = 0; i < t_in.numel(); i++) {
    if (i % 100 < 97) to[i] = from[i];
  }
  return t_out;
}
""",
    "differences": """\
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::empty(t_in.sizes(), torch::kFloat);
  auto from = t_in.accessor<float, 1>();
  auto to = t_out.accessor<float, 1>();
  for (int64_t i = 0; i < t_in.numel(); i++) {
    if (i != 5) to[i] = from[i + 1] - from[i];
  }
  return t_out;
}
""",
    "copied": """\
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::empty(t_in.sizes(), torch::kFloat);
  auto from = t_in.accessor<float, 1>();
  auto to = t_out.accessor<float, 1>();
  for (int64_t i = 0; i < t_in.numel(); i++) to[i] = from[i];
  return t_out;
}
""",
}
MULTI = {
    # The part of the last core is larger, and its offset is counted in parts of that size: a mistake in public code.
    "uneven": """\
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = get_dst_tensor();
  size_t num_elem = t_in.numel(), part = num_elem / get_cpu_count();
  if (get_cpu_id() == get_cpu_count() - 1) part = num_elem - 7 * part;
  float* buffer = (float*)torch::neuron::tcm_malloc(sizeof(float) * 1024);
  if (!buffer) return t_out;
  for (size_t i = 0; i < part; i += 1024) {
    size_t size = std::min((size_t)1024, part - i);
    t_in.tcm_accessor().tensor_to_tcm<float>(buffer, part * get_cpu_id() + i, size);
    t_out.tcm_accessor().tcm_to_tensor<float>(buffer, part * get_cpu_id() + i, size);
  }
  torch::neuron::tcm_free(buffer);
  return t_out;
}
""",
    "who": """\
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = get_dst_tensor();
  float* buffer = (float*)torch::neuron::tcm_malloc(sizeof(float) * t_in.numel());
  if (!buffer) return t_out;
  for (int64_t i = 0; i < t_in.numel(); i++) buffer[i] = get_cpu_id();
  t_out.tcm_accessor().tcm_to_tensor<float>(buffer, 0, t_in.numel());
  torch::neuron::tcm_free(buffer);
  return t_out;
}
""",
}


# Each core writes its part; then it reads the element before it, which is the last one of the core before.
NEIGHBOUR = """\
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = get_dst_tensor();
  size_t part = t_in.numel() / get_cpu_count(), first = get_cpu_id() * part;
  float* buffer = (float*)torch::neuron::tcm_malloc(sizeof(float) * (part + 1));
  if (!buffer) return t_out;
  t_in.tcm_accessor().tensor_to_tcm<float>(buffer, first, part);
  t_out.tcm_accessor().tcm_to_tensor<float>(buffer, first, part);
  size_t before = READ;
  t_out.tcm_accessor().tensor_to_tcm<float>(buffer, before, 1);
  buffer[1] = buffer[0];
  t_out.tcm_accessor().tcm_to_tensor<float>(buffer + 1, first, 1);
  torch::neuron::tcm_free(buffer);
  return t_out;
}
"""
MULTI["neighbour"] = NEIGHBOUR.replace("READ", "first == 0 ? 0 : first - 1")
MULTI["own"] = NEIGHBOUR.replace("READ", "first")
# As many blocks as asked for, of four bytes each; the last one holds the sum of all.
SINGLE["blocks"] = """\
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::empty(t_in.sizes(), torch::kFloat);
  std::vector<float*> blocks;
  float sum = 0;
  for (int64_t i = 0; i < t_in.numel(); i++) {
    float* block = (float*)torch::neuron::tcm_malloc(4);
    if (block == nullptr) return t_out;
    t_in.tcm_accessor().tensor_to_tcm<float>(block, i, 1);
    blocks.push_back(block);
  }
  for (float* block : blocks) sum += *block;
  *blocks.back() = sum;
  for (int64_t i = 0; i < t_in.numel(); i++) t_out.tcm_accessor().tcm_to_tensor<float>(blocks[i], i, 1);
  if (t_in.numel() % 2) blocks[t_in.numel() / 2][1] = 1;
  for (float* block : blocks) torch::neuron::tcm_free(block);
  return t_out;
}
"""


@pytest.fixture(scope="module")
def single(build_operators: Builder) -> dict[str, Operator]:
    return build_operators({name: text + SHAPE for name, text in SINGLE.items()})


@pytest.fixture(scope="module")
def multi(build_operators: Builder) -> dict[str, Operator]:
    return build_operators({name: text + SHAPE for name, text in MULTI.items()}, multicore=True)


def ones(count: int) -> Any:
    return np.arange(1, count + 1, dtype=np.float32)


@pytest.mark.parametrize("count", [1, 7, 1000, 1001, 4096])
def test_one_core_computes_what_numpy_does(single: dict[str, Operator], count: int) -> None:
    """Results are NumPy's to the bit, whatever the size."""
    values = np.random.default_rng(count).standard_normal(count).astype(np.float32)
    run = single["negate"].run(values)
    assert np.array_equal(run.outputs, -values)
    assert run.findings == []


def test_counters_are_exact(single: dict[str, Operator]) -> None:
    """Bursts, bytes and the most of the pool, as the kernel's text says."""
    (core,) = single["negate"].run(ones(2500)).cores
    assert (core.tcm_reads, core.tcm_writes) == (3, 3)
    assert (core.tcm_bytes_read, core.tcm_bytes_written) == (10000, 10000)
    assert (core.tcm_peak, core.tcm_leaked) == (4000, 0)
    assert (core.element_reads, core.element_writes) == (0, 0)
    (core,) = single["copied"].run(ones(2500)).cores
    assert (core.element_reads, core.element_writes) == (2500, 2500)
    assert (core.tcm_reads, core.tcm_writes, core.tcm_peak) == (0, 0, 0)


@pytest.mark.parametrize(("count", "first", "last"), [(1001, 875, 881), (3003, 2625, 2645), (8193, 7168, 7174)])
def test_never_written_elements_are_named_exactly(
    multi: dict[str, Operator], count: int, first: int, last: int
) -> None:
    """Of n = 8 p + r elements the last core leaves out 7 r from 7 p on, and goes as many past the end: one cause."""
    run = multi["uneven"].run(ones(count))
    left_out = last - first + 1
    assert places(run) == [("CO104", 9), ("CO104", 10)]
    assert all(f"{left_out} elements past" in finding.message for finding in run.findings)
    assert f"; output[{first}:{last + 1}] ({left_out}) are never written" in run.findings[1].message
    expected = ones(count)
    assert np.array_equal(np.delete(run.outputs, np.s_[first : last + 1]), np.delete(expected, np.s_[first : last + 1]))


def test_a_size_that_divides_evenly_is_silent(multi: dict[str, Operator]) -> None:
    """The same kernel is right for a multiple of eight."""
    run = multi["uneven"].run(ones(4096))
    assert run.findings == []
    assert np.array_equal(run.outputs, ones(4096))
    assert [core.core for core in run.cores] == list(range(8))


@pytest.mark.parametrize(
    ("order", "last"), [("forward", 7), ("reverse", 0), ([3, 1, 0, 2, 7, 6, 4, 5], 5), ("seeded", None)]
)
def test_the_order_of_cores_is_chosen(multi: dict[str, Operator], order: Any, last: int | None) -> None:
    """What all write holds what the last core wrote, and is reported in every order."""
    if order == "seeded":
        results = [multi["who"].run(ones(5), order=seed).outputs[0] for seed in range(4)]
        assert len(set(results)) > 1
        assert results == [multi["who"].run(ones(5), order=seed).outputs[0] for seed in range(4)]
        return
    run = multi["who"].run(ones(5), order=order)
    assert places(run) == [("CO105", 6)]
    assert "output[0:5] (5) are written by several cores (0, 1, 2, 3, 4, 5, 6, 7)" in run.findings[0].message
    assert set(run.outputs) == {last}


def test_cores_can_run_side_by_side(multi: dict[str, Operator]) -> None:
    """Threads give the same result and the same findings."""
    assert np.array_equal(multi["uneven"].run(ones(4096), threads=True).outputs, ones(4096))
    assert places(multi["who"].run(ones(5), threads=True)) == [("CO105", 6)]


def test_what_was_never_written_through_references_is_found(single: dict[str, Operator]) -> None:
    """Element accessors hand out references: what was never assigned is told exactly all the same."""
    run = single["partly"].run(ones(200))
    assert places(run) == [("CO106", 2)]
    assert "output[97:100], output[197:200] (6) are never written" in run.findings[0].message


def test_an_element_that_was_stored_is_not_unwritten(single: dict[str, Operator]) -> None:
    """The last one is computed from an element that there is not, and stored all the same; element 5 is not."""
    run = single["differences"].run(ones(20))
    assert places(run) == [("CO104", 6), ("CO106", 2)]
    assert "output[5] (1) is never written" in run.findings[1].message


@pytest.mark.parametrize("canary", [0xFF, 0x5A])
def test_elements_that_look_unwritten_are_not_reported(single: dict[str, Operator], canary: int) -> None:
    """A kernel may write the very bits that unwritten memory is filled with."""
    values = np.full(16, 0, np.float32)
    values.view(np.uint32)[:] = canary * 0x01010101
    run = single["copied"].run(values)
    assert run.findings == []
    assert np.array_equal(run.outputs.view(np.uint32), values.view(np.uint32))


def test_an_element_that_another_core_writes_is_no_input(multi: dict[str, Operator]) -> None:
    """Seven of eight cores read the last element of the core before theirs; what a core wrote itself it may read."""
    run = multi["neighbour"].run(ones(80))
    assert places(run) == [("CO105", 9)]
    assert run.findings[0].message == (
        "the core reads output[9] of the output (float32 [80]) that another core writes; nothing orders the two, "
        "on cores 1..7"
    )
    run = multi["own"].run(ones(80))
    assert run.findings == []
    assert np.array_equal(run.outputs, ones(80))


@pytest.mark.parametrize("count", [64, 66, 1000, 4096])
def test_the_pool_is_as_many_blocks_as_fit(single: dict[str, Operator], count: int) -> None:
    """16,384 bytes are 4,096 blocks of four bytes, all of them live at once."""
    expected = ones(count)
    expected[-1] = expected.sum()
    for _ in range(2):
        run = single["blocks"].run(ones(count))
        assert run.findings == []
        assert np.array_equal(run.outputs, expected)
        assert run.cores[0].tcm_peak == 4 * count


def test_a_block_of_a_later_chunk_is_guarded(single: dict[str, Operator]) -> None:
    """Of 201 blocks the one in the middle is written beyond; of 4,097 the last finds the pool full."""
    run = single["blocks"].run(ones(201))
    assert [finding.rule for finding in run.findings] == ["CO103"]
    assert run.findings[0].message == "an access goes just past the end of the TCM block of 4 bytes (line 6)"
    assert run.findings[0].remedy.startswith("Let the index end below the number of elements, i < n")
    run = single["blocks"].run(ones(4097))
    assert "CO106" in {finding.rule for finding in run.findings}
