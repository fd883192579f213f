"""What operators take and give."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nkitools
from nkitools.customop import Operator

from .conftest import Builder, places

DTYPES = {
    "kFloat": ("float", np.float32),
    "kHalf": ("c10::Half", np.float16),
    "kBFloat16": ("c10::BFloat16", ml_dtypes.bfloat16),
    "kInt": ("int32_t", np.int32),
    "kShort": ("int16_t", np.int16),
    "kChar": ("int8_t", np.int8),
    "kByte": ("uint8_t", np.uint8),
}
REVERSED = """\
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::empty(t_in.sizes(), torch::@);
  auto from = t_in.accessor<$, 2>();
  auto to = t_out.accessor<$, 2>();
  for (int i = 0; i < t_in.sizes()[0]; i++) {
    for (int j = 0; j < t_in.sizes()[1]; j++) to[i][j] = from[i][t_in.sizes()[1] - 1 - j];
  }
  return t_out;
}
torch::Tensor shape(torch::Tensor t_in) { return torch::zeros(t_in.sizes(), torch::@); }
"""
NUMBERS = """\
torch::Tensor kernel(torch::Tensor t_in, double factor, torch::Scalar bias, int64_t times) {
  torch::Tensor t_out = torch::add(torch::mul(t_in, factor), bias);
  for (int64_t i = 0; i < times; i++) t_out = torch::add(t_out, 1);
  return t_out;
}
torch::Tensor shape(torch::Tensor t_in, double factor, torch::Scalar bias, int64_t times) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
"""
SAME = "torch::Tensor shape(torch::Tensor t_in) { return torch::zeros(t_in.sizes(), torch::kFloat); }\n"
OTHERS = {
    "numbers": NUMBERS,
    "list": "torch::Tensor kernel(const torch::Tensor& t_in, std::vector<int64_t> sizes) { return t_in; }\n"
    "torch::Tensor shape(torch::Tensor t_in, std::vector<int64_t> sizes) { return t_in; }\n",
    "nothing": "void kernel(const torch::Tensor& t_in) {}\n" + SAME,
    "lengths": "torch::Tensor kernel(const torch::Tensor& t_in) { return torch::zeros({4}, torch::kFloat); }\n" + SAME,
    "types": "torch::Tensor kernel(const torch::Tensor& t_in) { return torch::zeros(t_in.sizes(), torch::kInt); }\n"
    + SAME,
    "parameters": "torch::Tensor kernel(const torch::Tensor& a, const torch::Tensor& b) { return a; }\n" + SAME,
    "reads": "torch::Tensor kernel(const torch::Tensor& t_in) { return t_in; }\n"
    "torch::Tensor shape(torch::Tensor t_in) {\n  auto values = t_in.accessor<float, 1>();\n"
    "  return torch::zeros({(int64_t)values[0]}, torch::kFloat);\n}\n",
    "passes": "torch::Tensor kernel(const torch::Tensor& t_in) { return t_in; }\n" + SAME,
    "remarked": "torch::Tensor kernel(const torch::Tensor& t_in) {\n  if (t_in.dim() == 1) return t_in;\n"
    "  return torch::abs(t_in);\n}\n" + SAME,
    "broken_shape": "torch::Tensor kernel(const torch::Tensor& t_in) { return t_in; }\n"
    "torch::Tensor shape(torch::Tensor t_in) {\n  return torch::zeros({t_in.sizes()[5]}, torch::kFloat);\n}\n",
}


@pytest.fixture(scope="module")
def operators(build_operators: Builder) -> dict[str, Operator]:
    casts = {name: REVERSED.replace("@", name).replace("$", kind) for name, (kind, _) in DTYPES.items()}
    plain = {name: text for name, text in OTHERS.items() if name != "remarked"}
    return build_operators(casts) | build_operators(plain) | build_operators({"remarked": OTHERS["remarked"]})


VALUES = np.array([1, 2, 3], np.float32)


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_goes_in_and_comes_out(operators: dict[str, Operator], name: str) -> None:
    """NumPy's own dtype of each tensor type, to the bit."""
    dtype = np.dtype(DTYPES[name][1])
    values = np.random.default_rng(1).integers(0, 100, (5, 7)).astype(dtype)
    run = operators[name].run(values)
    assert run.findings == []
    assert run.outputs.dtype == dtype
    assert np.array_equal(run.outputs, values[:, ::-1])


def test_torch_in_torch_out(operators: dict[str, Operator]) -> None:
    """A torch tensor gives a torch tensor, bfloat16 included; gradients are the author's affair."""
    torch = pytest.importorskip("torch")
    values = torch.arange(6, dtype=torch.float32).reshape(2, 3).requires_grad_()
    assert torch.equal(operators["kFloat"](values), values.detach().flip(1))
    small = values.detach().to(torch.bfloat16)
    result = operators["kBFloat16"](small)
    assert result.dtype is torch.bfloat16
    assert torch.equal(result, small.flip(1))


def test_numbers_go_in_as_the_kernel_takes_them(operators: dict[str, Operator]) -> None:
    """double, Scalar and int64_t; of the last the guide says two things, which is a warning."""
    run = operators["numbers"].run(VALUES, 2.5, 1, 3)
    assert np.array_equal(run.outputs, VALUES * np.float32(2.5) + 4)
    assert [(each.rule, each.severity) for each in run.findings] == [("CO112", "warning")]
    assert np.array_equal(operators["numbers"](VALUES, 2, np.float32(0.5), np.int64(1)), VALUES * 2 + np.float32(1.5))


@pytest.mark.parametrize(
    ("arguments", "rule", "words"),
    [
        ((), "CO112", "takes 1 argument, it is given 0"),
        ((VALUES, VALUES), "CO112", "takes 1 argument, it is given 2"),
        (([1.0, 2.0],), "CO112", "is list; the kernel takes a Tensor"),
        ((3.0,), "CO112", "is float; the kernel takes a Tensor"),
        ((np.arange(10, dtype=np.float32)[::2],), "CO112", "is not contiguous"),
        ((np.ones((3, 4), np.float32).T,), "CO112", "is not contiguous"),
        ((np.ma.masked_array(VALUES),), "CO112", "MaskedArray"),
        ((np.ones(3),), "CO110", "is float64"),
        ((np.ones(3, np.int64),), "CO110", "is int64"),
        ((np.ones(3, bool),), "CO110", "is bool"),
        ((np.ones(0, np.float32),), "CO111", "is empty"),
        ((np.ones((3, 0, 2), np.float32),), "CO111", "dimension 1 is empty"),
        ((np.ones((1,) * 9, np.float32),), "CO111", "9 dimensions; 8 are the most"),
        ((np.ones((1, 1, 1, 1, 70000), np.int8),), "CO111", "more than 65535"),
    ],
)
def test_what_is_no_argument_is_refused_at_the_call(
    operators: dict[str, Operator], arguments: tuple[Any, ...], rule: str, words: str
) -> None:
    """At the line of the call, at every level: there is nothing to run."""
    for call in (operators["passes"], operators["passes"].run):
        with pytest.raises(nkitools.KernelError, match=rule) as caught:
            call(*arguments)
        assert words in caught.value.finding.message
        assert caught.value.finding.file == __file__


def test_torch_tensors_that_are_not_here_are_refused(operators: dict[str, Operator]) -> None:
    """On another device, without elements in memory, or of a type that tensors do not have."""
    torch = pytest.importorskip("torch")
    for tensor, rule in (
        (torch.ones(3, device="meta"), "CO112"),
        (torch.ones(3).to_sparse(), "CO112"),
        (torch.ones(3, 4).T, "CO112"),
        (torch.ones(3, dtype=torch.float64), "CO110"),
    ):
        with pytest.raises(nkitools.KernelError, match=rule):
            operators["passes"](tensor)


@pytest.mark.parametrize(
    ("name", "rule", "line"),
    [
        ("nothing", "CO112", 1),
        ("lengths", "CO107", 2),
        ("types", "CO107", 2),
        ("reads", "CO107", 3),
        ("broken_shape", "CO117", 3),
    ],
)
def test_a_function_of_the_wrong_form_is_reported(
    operators: dict[str, Operator], name: str, rule: str, line: int
) -> None:
    """Kernels that return nothing, and shape functions that say something else or look at data."""
    run = operators[name].run(VALUES)
    assert (rule, line) in places(run)
    assert {finding.rule for finding in run.findings} <= {rule, "CO107"}
    assert run.outputs is None


def test_parameters_that_cannot_be_passed_are_reported(operators: dict[str, Operator]) -> None:
    """A vector has no way in, and a shape function of other parameters cannot be asked."""
    run = operators["list"].run(VALUES, 1)
    assert places(run)[0] == ("CO112", 1)
    assert places(operators["parameters"].run(VALUES, VALUES)) == [("CO107", 2)]


def test_members_that_the_guide_lacks_are_remarked(operators: dict[str, Operator]) -> None:
    """With line and column, as a warning: the operator runs."""
    run = operators["remarked"].run(VALUES)
    (finding,) = run.findings
    assert (finding.rule, finding.severity, finding.line) == ("CO112", "warning", 2)
    assert finding.column in (12, 15), "of the member or of its call, as the compiler says"
    assert "Tensor::dim" in finding.message
    assert np.array_equal(run.outputs, VALUES)


@pytest.mark.parametrize(
    "setting", [{"rules": "loud"}, {"order": "random"}, {"isolation": "vm"}, {"timeout": -1}, {"memory_limit": -1}]
)
def test_settings_that_mean_nothing_are_refused(operators: dict[str, Operator], setting: dict[str, Any]) -> None:
    """By name, before anything runs."""
    with pytest.raises(ValueError, match=next(iter(setting))):
        operators["passes"].run(VALUES, **setting)


def test_levels(operators: dict[str, Operator]) -> None:
    """`report` collects, `off` keeps silent, `strict` raises warnings, and what is allowed is set aside."""
    numbers = operators["numbers"]
    assert numbers.run(VALUES, 1, 1, 1, rules="off").findings == []
    with pytest.raises(nkitools.KernelError, match="CO112"):
        numbers.run(VALUES, 1, 1, 1, rules="strict")
    with nkitools.allow_findings("CO107"):
        run = operators["lengths"].run(VALUES, rules="error")
    assert [finding.rule for finding in run.allowed] == ["CO107"]
    with nkitools.collect_runs() as runs, pytest.raises(nkitools.KernelError):
        operators["lengths"](VALUES)
    assert [(each.kernel, isinstance(each.error, nkitools.KernelError)) for each in runs] == [("lengths", True)]
