"""What is read from the text of sources: the names of a kernel's parameters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nkitools
from nkitools.customop import load
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
    assert "an accessor of int32 for argument 0 `boxes` (float32 [3])" in finding.message
