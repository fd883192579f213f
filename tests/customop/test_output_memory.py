"""The place of the output, and the elements that are computed from unwritten memory."""

from __future__ import annotations

import numpy as np
import pytest

from nkitools.customop import Operator

from .conftest import Builder, places

SHAPE = "torch::Tensor shape(const torch::Tensor& t_in) { return torch::zeros(t_in.sizes(), torch::kFloat); }\n"
BEGIN = "torch::Tensor kernel(const torch::Tensor& t_in) {\n"
EMPTY = "torch::empty(t_in.sizes(), torch::kFloat)"
BLOCK = """\
  float* block = (float*)torch::neuron::tcm_malloc(400);
  if (!block) return out;
"""
KERNELS = {
    # Tensors of the output's shape and dtype are each a tensor of their own.
    "second_returned": f"""\
  torch::Tensor first = {EMPTY};
  first.fill_(3);
  torch::Tensor second = {EMPTY};
  torch::add_out(second, first, t_in);
  first.fill_(7);
  return second;
""",
    "first_returned": f"""\
  torch::Tensor first = {EMPTY}, second = {EMPTY};
  second.fill_(3);
  torch::add_out(first, second, t_in);
  second.fill_(7);
  return first;
""",
    "destination_last": f"""\
  torch::Tensor first = {EMPTY};
  first.fill_(3);
  torch::Tensor out = get_dst_tensor();
  torch::add_out(out, first, t_in);
  first.fill_(7);
  return first;
""",
    "destination_first": f"""\
  torch::Tensor out = get_dst_tensor();
  torch::Tensor first = {EMPTY};
  torch::add_out(out, t_in, 3);
  first.fill_(7);
  return first;
""",
    "made_by_an_operation": f"""\
  torch::Tensor first = {EMPTY};
  first.fill_(3);
  return torch::add(first, t_in);
""",
    "destination_not_written": f"""\
  torch::Tensor first = {EMPTY};
  first.fill_(3);
  torch::Tensor out = get_dst_tensor();
  return first;
""",
    # What TCM accessors write, and where it comes from.
    "last_of_block": f"""\
  torch::Tensor out = {EMPTY};
{BLOCK}\
  for (int i = 0; i < 99; i++) block[i] = i;
  out.tcm_accessor().tcm_to_tensor<float>(block, 0, 100);
  torch::neuron::tcm_free(block);
  return out;
""",
    "adds_to_destination": f"""\
  torch::Tensor out = get_dst_tensor();
{BLOCK}\
  out.tcm_accessor().tensor_to_tcm<float>(block, 0, 100);
  for (int i = 0; i < 100; i++) block[i] = 2 - block[i];
  out.tcm_accessor().tcm_to_tensor<float>(block, 0, 100);
  torch::neuron::tcm_free(block);
  return out;
""",
    "copies": f"""\
  torch::Tensor out = {EMPTY};
{BLOCK}\
  t_in.tcm_accessor().tensor_to_tcm<float>(block, 0, 100);
  out.tcm_accessor().tcm_to_tensor<float>(block, 0, 100);
  torch::neuron::tcm_free(block);
  return out;
""",
    # Where what nobody has written is gone, or overwritten, before its result is copied.
    "freed_before": f"""\
  torch::Tensor out = {EMPTY};
{BLOCK}\
  float* lost = (float*)torch::neuron::tcm_malloc(400);
  t_in.tcm_accessor().tensor_to_tcm<float>(block, 0, 100);
  block[7] += lost[7];
  torch::neuron::tcm_free(lost);
  out.tcm_accessor().tcm_to_tensor<float>(block, 0, 100);
  torch::neuron::tcm_free(block);
  return out;
""",
    "filled_later": f"""\
  torch::Tensor out = {EMPTY};
{BLOCK}\
  float* late = (float*)torch::neuron::tcm_malloc(400);
  t_in.tcm_accessor().tensor_to_tcm<float>(block, 0, 100);
  block[7] += late[7];
  t_in.tcm_accessor().tensor_to_tcm<float>(late, 0, 100);
  out.tcm_accessor().tcm_to_tensor<float>(block, 0, 100);
  torch::neuron::tcm_free(late);
  torch::neuron::tcm_free(block);
  return out;
""",
    # Integers: -1 may be a number, and is one here.
    "words": f"""\
  torch::Tensor out = {EMPTY.replace("kFloat", "kInt")};
  int* block = (int*)torch::neuron::tcm_malloc(400);
  if (!block) return out;
  for (int i = 0; i < 98; i++) block[i] = -1;
  block[98] = block[99] & 1 ? -1 : -2;
  out.tcm_accessor().tcm_to_tensor<int>(block, 0, 100);
  torch::neuron::tcm_free(block);
  return out;
""",
    # Sizes that are negative, which the guide's size_t makes very large.
    "negative_offset": f"""\
  torch::Tensor out = torch::zeros(t_in.sizes(), torch::kFloat);
{BLOCK}\
  t_in.tcm_accessor().tensor_to_tcm<float>(block, -1, 2);
  torch::neuron::tcm_free(block);
  return out;
""",
    "negative_count": f"""\
  torch::Tensor out = torch::zeros(t_in.sizes(), torch::kFloat);
{BLOCK}\
  t_in.tcm_accessor().tensor_to_tcm<float>(block, 0, -2);
  torch::neuron::tcm_free(block);
  return out;
""",
    # Functions that end in other ways than they should.
    "no_return": "  if (t_in.numel() > 1000) {\n    return t_in;\n  }\n",
    "overruns_the_heap": """\
  volatile float* few = new float[16];
  for (int i = 0; i < 100000000; i++) few[i] = 1;
  return t_in;
""",
}
VALUES = np.arange(100, dtype=np.float32)


@pytest.fixture(scope="module")
def operators(build_operators: Builder) -> dict[str, Operator]:
    shapes = {"words": SHAPE.replace("kFloat", "kInt")}
    return build_operators({name: BEGIN + body + "}\n" + shapes.get(name, SHAPE) for name, body in KERNELS.items()})


@pytest.mark.parametrize("isolation", ["process", "none"])
@pytest.mark.parametrize(
    "name", ["second_returned", "first_returned", "destination_last", "destination_first", "made_by_an_operation"]
)
def test_tensors_of_the_outputs_shape_are_tensors_of_their_own(
    operators: dict[str, Operator], name: str, isolation: str
) -> None:
    run = operators[name].run(VALUES, isolation=isolation)
    assert run.findings == []
    np.testing.assert_array_equal(run.outputs, VALUES + 3)


def test_a_tensor_that_lay_where_the_output_lies_does_not_count_as_the_output(operators: dict[str, Operator]) -> None:
    run = operators["destination_not_written"].run(VALUES)
    assert [finding.rule for finding in run.findings] == ["CO106"]
    assert "output[0:100] (100) are never written" in run.findings[0].message


def test_unwritten_tcm_shows_in_the_output(operators: dict[str, Operator]) -> None:
    run = operators["last_of_block"].run(VALUES)
    assert places(run) == [("CO106", 6)]
    assert "output[99] (1) is computed from unwritten memory" in run.findings[0].message


@pytest.mark.parametrize("call", ["first", "second"])
@pytest.mark.parametrize("name", ["freed_before", "filled_later"])
def test_tcm_that_was_unwritten_when_it_was_read(operators: dict[str, Operator], name: str, call: str) -> None:
    run = operators[name].run(VALUES)
    if call == "second":
        run = operators[name].run(VALUES)
    assert places(run) == [("CO106", 9)]
    assert "output[7] (1) is computed from unwritten memory" in run.findings[0].message


def test_unwritten_integers_differ_from_minus_one(operators: dict[str, Operator]) -> None:
    run = operators["words"].run(VALUES)
    assert places(run) == [("CO106", 7)]
    assert "output[99] (1) is computed from unwritten memory" in run.findings[0].message
    assert (run.outputs[:98] == -1).all()


def test_a_destination_that_is_added_to_before_it_is_written(operators: dict[str, Operator]) -> None:
    run = operators["adds_to_destination"].run(VALUES)
    assert places(run) == [("CO106", 7)]
    assert "output[0:100] (100) are computed" in run.findings[0].message


@pytest.mark.parametrize("bits", [0xFFFFFFFF, 0x7FFFFFFF, 0x7FC00000])
def test_the_arguments_may_have_every_nan(operators: dict[str, Operator], bits: int) -> None:
    values = np.full(100, bits, np.uint32)
    run = operators["copies"].run(values.view(np.float32))
    assert run.findings == []
    np.testing.assert_array_equal(run.outputs.view(np.uint32), values)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("negative_offset", "at offset -1: nothing is before its beginning"),
        ("negative_count", "a negative number of elements (-8 bytes)"),
    ],
)
def test_negative_sizes_are_reported_as_the_author_wrote_them(
    operators: dict[str, Operator], name: str, words: str
) -> None:
    run = operators[name].run(VALUES)
    assert places(run)[0] == ("CO104", 5)
    assert words in run.findings[0].message


def test_a_kernel_that_ends_without_its_return_is_reported_at_that_kernel(operators: dict[str, Operator]) -> None:
    run = operators["no_return"].run(VALUES)
    assert [(finding.rule, finding.function) for finding in run.findings] == [("CO103", "no_return::kernel")]
    assert "without its return" in run.findings[0].message
    assert run.findings[0].file.endswith("no_return.cpp")


def test_a_kernel_that_overwrites_what_is_known_of_it_ends_at_once(operators: dict[str, Operator]) -> None:
    run = operators["overruns_the_heap"].run(VALUES, timeout=60)
    assert [finding.rule for finding in run.findings] == ["CO103"]
    assert "has overwritten memory that is not its own" in run.findings[0].message
