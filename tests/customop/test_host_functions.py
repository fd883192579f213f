"""Names of ATen and c10, shape functions as PyTorch compiles them, and parameters that cannot be passed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nkitools.customop import BuildError, load
from nkitools.customop.run import OperatorRun
from tests.cases import each

HEAD = "#include <torch/torch.h>\n"
KERNEL = HEAD + "torch::Tensor kernel(const torch::Tensor& x) {{ {body} return torch::abs(x); }}\n"
SHAPE = (
    '{headers}#include "torchneuron/register.h"\n'
    "torch::Tensor shape(const torch::Tensor& x) {{ {body} }}\n"
    'NEURON_LIBRARY(host_ops, m) {{ m.def("op", &shape, "kernel"); }}\n'
)
X = np.array([[-1, 2, -3]], np.float32)


def run_of(folder: Path, kernel: str, shape: str, *arguments: object) -> OperatorRun:
    """Return a run of the operator of two sources."""
    folder.mkdir(exist_ok=True)
    (folder / "kernel.cpp").write_text(kernel)
    (folder / "shape.cpp").write_text(shape)
    library = load("host", [folder / "kernel.cpp"], [folder / "shape.cpp"])
    return library.op.run(*arguments, rules="report")


def test_at_has_the_names_of_torch(tmp_path: Path) -> None:
    """Tensors, scalars by value and by reference, dtypes, sizes, functions: in a kernel and in a shape function."""
    parameters = "const at::Tensor& x, at::Scalar a, const at::Scalar& b, const c10::Scalar &c, double d"
    kernel = (
        f"{HEAD}at::Tensor kernel({parameters}) {{\n"
        "  at::Tensor sum = at::add(at::mul(x, a), b);\n"
        "  return torch::add(at::mul(sum, c), d);\n}\n"
    )
    shape = (
        f'{HEAD}#include "torchneuron/register.h"\n'
        f"at::Tensor shape({parameters}) {{\n"
        "  at::IntArrayRef sizes = x.sizes();\n  at::ScalarType dtype = at::kFloat;\n"
        "  return at::empty(sizes, dtype);\n}\n"
        'NEURON_LIBRARY(host_ops, m) { m.def("op", &shape, "kernel"); }\n'
    )
    run = run_of(tmp_path, kernel, shape, X, 2.0, 0.5, 3, 0.25)
    assert run.findings == []
    np.testing.assert_array_equal(run.outputs, (X * 2 + 0.5) * 3 + 0.25)


HEADERS = [
    "torch/extension.h",
    "torch/script.h",
    "ATen/ATen.h",
    "c10/util/Exception.h",
    "torch/csrc/api/include/torch/all.h",
]


@each("body", [
    "return torch::zeros({x.size(0), x.size(-1)}, torch::kFloat);",
    "return torch::zeros_like(x);",
    "TORCH_CHECK(x.dim() == 2, \"of two, not \", x.dim()); return at::empty_like(x);",
    "return torch::empty({x.sizes().size() == 2 ? x.sizes()[0] : 1, x.size(1)}, x.scalar_type());",
])  # fmt: skip
def test_a_shape_function_is_compiled_by_pytorch(body: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What a kernel has not, or is warned of, is right there, and gives no finding."""
    headers = "".join(f"#include <{name}>\n" for name in HEADERS)
    folder = tmp_path_factory.mktemp("shape")
    run = run_of(folder, KERNEL.format(body=""), SHAPE.format(headers=headers, body=body), X)
    assert run.findings == []
    np.testing.assert_array_equal(run.outputs, np.abs(X))


def test_a_header_beside_the_shape_function_may_include_pytorchs(tmp_path: Path) -> None:
    """Its change is a new library, as that of every header of an author."""
    for sizes in ("x.sizes()", "{x.size(0), x.size(1)}"):
        (tmp_path / "common.h").write_text(f"#include <ATen/core/Tensor.h>\n#define SIZES {sizes}\n")
        shape = SHAPE.format(headers='#include "common.h"\n', body="return torch::empty(SIZES, torch::kFloat);")
        run = run_of(tmp_path, KERNEL.format(body=""), shape, X)
        np.testing.assert_array_equal(run.outputs, np.abs(X))


def test_a_check_that_fails_says_its_words(tmp_path: Path) -> None:
    """As an exception of the shape function."""
    shape = SHAPE.format(headers=HEAD, body='TORCH_CHECK(x.dim() == 3, "3 dimensions, not ", x.dim()); return x;')
    (finding,) = run_of(tmp_path, KERNEL.format(body=""), shape, X).findings
    assert finding.rule == "CO103"
    assert finding.message == "the shape function throws an exception that it does not catch: 3 dimensions, not 2"


def test_a_kernel_has_the_guides_names_alone(tmp_path: Path) -> None:
    """The device has a port of torch: size(i) is a warning there, PyTorch's headers and its macros are refused."""
    shape = SHAPE.format(headers=HEAD, body="return torch::zeros(x.sizes(), torch::kFloat);")
    run = run_of(tmp_path / "size", KERNEL.format(body="if (x.size(0) == 9) throw 1;"), shape, X)
    assert [(each.rule, each.severity) for each in run.findings] == [("CO112", "warning")]
    for name, kernel in (
        ("torch/extension.h", "#include <torch/extension.h>\n" + KERNEL.format(body="")),
        ("TORCH_CHECK", KERNEL.format(body="TORCH_CHECK(true);")),
    ):
        with pytest.raises(BuildError, match=name):
            run_of(tmp_path / name.replace("/", "-"), kernel, shape, X)


@each(
    "type", ["std::vector<double>", "std::tuple<double, double>", "at::IntArrayRef", "at::ScalarType", "bool", "float"]
)
def test_a_parameter_that_cannot_be_passed_is_named(type: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """With the types that can."""
    parameters = f"const torch::Tensor& x, {type} factor"
    kernel = f"{HEAD}torch::Tensor kernel({parameters}) {{ return torch::abs(x); }}\n"
    shape = (
        f'{HEAD}#include "torchneuron/register.h"\n'
        f"torch::Tensor shape({parameters}) {{ return torch::zeros(x.sizes(), torch::kFloat); }}\n"
        'NEURON_LIBRARY(host_ops, m) { m.def("op", &shape, "kernel"); }\n'
    )
    (finding,) = run_of(tmp_path_factory.mktemp("type"), kernel, shape, X, 2.0).findings
    assert (finding.rule, finding.line) == ("CO112", 2)
    assert "has the parameter `factor` of " in finding.message
    assert "torch::Tensor, torch::Scalar or double" in finding.remedy


TCM = """#include <torch/torch.h>
#include <neuron/neuron-utils.hpp>
torch::Tensor kernel(const torch::Tensor& x) {{
  torch::Tensor out = torch::empty(x.sizes(), torch::kFloat);
  auto from = x.tcm_accessor();
  auto to = out.tcm_accessor();
  size_t room = 16384;
  float* one = (float*)torch::neuron::tcm_malloc(room);
  float* block = {block};
  if (block == nullptr) {{
    {otherwise}
  }}
  from.tensor_to_tcm<float>(block, 0, x.numel());
  to.tcm_to_tensor<float>(block, 0, x.numel());
  torch::neuron::tcm_free(block);
  {free}
  return out;
}}
"""
REFUSED = "(float*)torch::neuron::tcm_malloc(8192)"


def test_a_refused_block_is_the_first_thing_said(tmp_path: Path) -> None:
    """Before the elements that are not written since the kernel gave up, and the block that it kept."""
    shape = SHAPE.format(headers=HEAD, body="return torch::zeros(x.sizes(), torch::kFloat);")
    run = run_of(tmp_path, TCM.format(block=REFUSED, otherwise="return out;", free="(void)one;"), shape, X)
    assert [(each.rule, each.line) for each in run.findings] == [("CO101", 9), ("CO102", 8), ("CO106", 4)]
    assert run.findings[0].message == "tcm_malloc of 8192 bytes returned null: 0 of 16384 bytes are free"


def test_a_kernel_that_goes_on_without_the_block_is_right(tmp_path: Path) -> None:
    """It frees another one, or asks for less: nothing else is wrong, so that nothing is said."""
    shape = SHAPE.format(headers=HEAD, body="return torch::zeros(x.sizes(), torch::kFloat);")
    kernel = TCM.format(
        block=REFUSED, otherwise="block = one; one = nullptr;", free="if (one) torch::neuron::tcm_free(one);"
    )
    run = run_of(tmp_path, kernel, shape, X)
    assert run.findings == []
    np.testing.assert_array_equal(run.outputs, X)
