"""What is read from the text of sources: the names of a kernel's parameters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nkitools
from nkitools.customop import BuildError, load
from nkitools.customop.sources import parameter_names

SHAPE = """\
#include <torch/torch.h>
#include "torchneuron/register.h"
torch::Tensor shape(const torch::Tensor& boxes, double scale) { return torch::zeros(boxes.sizes(), torch::kFloat); }
NEURON_LIBRARY(named, m) { m.def("named", &shape, "named"); }
"""
KERNEL = """\
#include <torch/torch.h>
torch::Tensor named(const torch::Tensor& boxes, double scale) {
  auto in = boxes.accessor<int32_t, 1>();
  (void)in;
  return boxes;
}
"""


@pytest.mark.parametrize(
    ("text", "count", "names"),
    [
        ("torch::Tensor k(const torch::Tensor& a, torch::Tensor b) { return a; }", 2, ("a", "b")),
        ("Tensor k(const Tensor &a, // the first, (really)\n  double /* unused */ by) {", 2, ("a", "by")),
        ("Tensor k(const Tensor& a);\nTensor other() { return k(x); }\nTensor k(const Tensor& b) {", 1, ("b",)),
        ("Tensor k(const std::map<int, Tensor>& a, Tensor b) noexcept {", 2, ("a", "b")),
        ("Tensor k() {", 0, ()),
        ("Tensor k(const Tensor& a) {", 2, ()),
        ("#define K(x) Tensor k##x(Tensor a) {", 1, ()),
        ("Tensor kk(const Tensor& a) {", 1, ()),
    ],
)
def test_parameter_names(tmp_path: Path, text: str, count: int, names: tuple[str, ...]) -> None:
    source = tmp_path / "kernel.cpp"
    source.write_text(text)
    assert parameter_names([str(source)], "space::k", count) == names


def test_messages_name_the_parameters(tmp_path: Path) -> None:
    """Where the argument is wrong, and where the kernel uses it wrongly."""
    (tmp_path / "shape.cpp").write_text(SHAPE)
    (tmp_path / "kernel.cpp").write_text(KERNEL)
    operator = load("named", [tmp_path / "kernel.cpp"], [tmp_path / "shape.cpp"]).named
    with pytest.raises(nkitools.KernelError, match="argument 0 `boxes` of operator `named` is float64"):
        operator(np.ones(3), 1)
    with pytest.raises(nkitools.KernelError, match="argument 1 `scale` of operator `named` is str"):
        operator(np.ones(3, np.float32), "1")
    (finding,) = operator.run(np.ones(3, np.float32), 1).findings
    assert "an accessor of int32 is opened for argument 0 `boxes` (float32 [3])" in finding.message


MACROS = """\
#include <torch/torch.h>
#include "torchneuron/register.h"
#define OPERATOR "spelt"
#define KERNEL(name) #name
torch::Tensor shape(const torch::Tensor& x) { return torch::zeros(x.sizes(), torch::kFloat); }
constexpr const char* twice = "doubled";
NEURON_LIBRARY(spelt, m) {
  m.def(OPERATOR, &shape, KERNEL(space::same));
  m.def("twice", &shape, twice);
}
"""
KERNELS = """\
#include <torch/torch.h>
namespace space {
torch::Tensor same(const torch::Tensor& x) { return x; }
}
torch::Tensor doubled(const torch::Tensor& x) {
  torch::Tensor out = torch::empty(x.sizes(), torch::kFloat);
  auto from = x.accessor<float, 1>();
  auto to = out.accessor<float, 1>();
  for (int64_t i = 0; i < x.numel(); i++) to[i] = 2 * from[i];
  return out;
}
"""


@pytest.mark.process
def test_names_may_be_macros_and_constants(tmp_path: Path) -> None:
    """What m.def gets decides, and not how the source spells it; under debug=True too."""
    (tmp_path / "shape.cpp").write_text(MACROS)
    (tmp_path / "kernel.cpp").write_text(KERNELS)
    library = load("spelt", [tmp_path / "kernel.cpp"], [tmp_path / "shape.cpp"])
    values = np.arange(5, dtype=np.float32)
    assert np.array_equal(library.spelt(values), values)
    run = library.twice.run(values, debug=True)
    assert np.array_equal(run.outputs, 2 * values)
    assert run.findings == []


@pytest.mark.process
def test_a_kernel_that_is_nowhere_is_named(tmp_path: Path) -> None:
    """Also where a constant names it."""
    (tmp_path / "shape.cpp").write_text(MACROS.replace('"doubled"', '"trebled"'))
    (tmp_path / "kernel.cpp").write_text(KERNELS)
    with pytest.raises(BuildError, match=r"m\.def names the kernel `trebled`, and the compute"):
        load("lost", [tmp_path / "kernel.cpp"], [tmp_path / "shape.cpp"])
