"""Operators under torch.ops: values on the CPU, shapes on Meta, errors at the author's line, and gone when asked to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import nkitools  # noqa: E402 - torch decides whether this file is collected
from nkitools import customop  # noqa: E402
from nkitools.customop import Library, register_with_torch  # noqa: E402
from nkitools.customop.torch_operators import schema_of  # noqa: E402

KERNELS = """
#include <torch/torch.h>
torch::Tensor outer(const torch::Tensor& a, const torch::Tensor& b, const torch::Scalar& s, double d) {
  torch::Tensor out = torch::empty({a.numel(), b.numel()}, torch::kFloat);
  auto row = a.accessor<float, 1>();
  auto column = b.accessor<float, 1>();
  auto to = out.accessor<float, 2>();
  for (int i = 0; i < a.numel(); i++)
    for (int j = 0; j < b.numel(); j++) to[i][j] = row[i] * column[j] * static_cast<float>(d);
  torch::mul_out(out, out, s);
  return out;
}
torch::Tensor half(const torch::Tensor& a) { return torch::div(a, 2); }
torch::Tensor takes_float(const torch::Tensor& a, float f) { return a; }
"""
SHAPES = """
#include <assert.h>
#include <torch/torch.h>
#include "torchneuron/register.h"
torch::Tensor outer_shape(const torch::Tensor& a, const torch::Tensor& b, const torch::Scalar& s, double d) {
  return torch::zeros({a.numel(), b.numel()}, torch::kFloat);
}
torch::Tensor half_shape(const torch::Tensor& a) {
  assert(a.sizes()[0] < 100);
  return torch::zeros(a.sizes(), torch::kBFloat16);
}
NEURON_LIBRARY(registered, m) {
  m.def("outer", &outer_shape, "outer");
  m.def("half", &half_shape, "half");
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    place = tmp_path_factory.mktemp("registered")
    (place / "kernels.cpp").write_text(KERNELS)
    (place / "shapes.cpp").write_text(SHAPES)
    return customop.load("registered", [place / "kernels.cpp"], [place / "shapes.cpp"])


@pytest.fixture
def ops(library: Library) -> Iterator[Any]:
    with register_with_torch(library):
        yield torch.ops.registered


def test_tensors_and_numbers_reach_the_kernel(ops: Any) -> None:
    """Tensor, Scalar and double, by position; a tensor that is not contiguous as a device would have it."""
    a, b = torch.arange(6.0).reshape(2, 3).t()[0], torch.arange(4.0)[::2]
    assert not a.is_contiguous()
    expected = np.outer(a.numpy(), b.numpy()) * np.float32(0.5) * 3
    np.testing.assert_array_equal(ops.outer(a, b, 3, 0.5).numpy(), expected)


def test_meta_tensors_ask_the_shape_function(ops: Any) -> None:
    """Shape and dtype without data, as compilers of torch want them."""
    a, b = torch.empty(3, device="meta"), torch.empty(5, device="meta")
    out = ops.outer(a, b, 1, 1.0)
    assert (out.shape, out.dtype, out.device.type) == ((3, 5), torch.float32, "meta")
    assert ops.half(a).dtype is torch.bfloat16


def test_a_graph_is_exported_with_the_operator(ops: Any) -> None:
    """torch.export traces through it by its shapes alone."""

    class Model(torch.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, a: Any) -> Any:
            return ops.outer(a + 1, a, 2, 1.0).sum()

    exported = torch.export.export(Model(), (torch.ones(3),))
    assert "registered.outer" in str(exported.graph)
    assert exported.module()(torch.ones(3)).item() == 36.0


def here() -> str:
    return Path(__file__).name


def test_errors_are_reported_at_the_authors_line(ops: Any) -> None:
    """Neither torch's frames nor ours: the line that calls; and what a shape function says, at its own."""
    for call in (
        lambda: ops.half(torch.ones(2, dtype=torch.float64)),
        lambda: ops.half(torch.empty(2, dtype=torch.float64, device="meta")),
    ):
        with pytest.raises(nkitools.KernelError, match=r"is float64; tensors of custom operators are") as caught:
            call()
        assert (caught.value.finding.rule, Path(caught.value.finding.file).name) == ("CO110", here())
        assert caught.value.finding.line == call.__code__.co_firstlineno
    with pytest.raises(nkitools.KernelError) as caught:
        ops.half(torch.empty(100, device="meta"))
    assert Path(caught.value.finding.file).name == "shapes.cpp"
    with pytest.raises(nkitools.KernelError, match="dimension 0 is empty"):
        ops.half(torch.empty(0, device="meta"))


def test_findings_of_the_kernel_are_raised(ops: Any) -> None:
    """The kernel returns float32 where its shape function says bfloat16."""
    with pytest.raises(nkitools.KernelError, match="CO107"):
        ops.half(torch.ones(3))


def test_to_register_again_replaces_and_to_remove_forgets(library: Library) -> None:
    """A name belongs to the library that came last; removing one that was replaced leaves it alone."""
    first = register_with_torch(library)
    second = register_with_torch(library)
    first.remove()
    assert torch.ops.registered.outer(torch.ones(1), torch.ones(1), 1, 1.0).item() == 1.0
    second.remove()
    second.remove()
    assert not hasattr(torch.ops.registered, "outer")


def test_a_name_that_somebody_else_has_is_not_taken(library: Library) -> None:
    """torch says whose it is; nothing is half registered."""
    theirs = torch.library.Library("registered", "DEF")
    with pytest.raises(RuntimeError, match="registered"):
        register_with_torch(library)
    theirs._destroy()
    with register_with_torch(library):
        assert hasattr(torch.ops.registered, "outer")


def test_the_schema_is_the_kernels_signature(library: Library, tmp_path: Path) -> None:
    """In torch's words; a kernel that nobody can call has none."""
    assert schema_of(library.outer) == "outer(Tensor a0, Tensor a1, Scalar a2, float a3) -> Tensor"
    (tmp_path / "shapes.cpp").write_text(
        "#include <torch/torch.h>\n"
        '#include "torchneuron/register.h"\n'
        "torch::Tensor shape(const torch::Tensor& a, float f) { return torch::zeros(a.sizes(), torch::kFloat); }\n"
        'NEURON_LIBRARY(wrong, m) { m.def("takes_float", &shape, "takes_float"); }\n'
    )
    wrong = customop.load("wrong", library.built.recipe.compute, [tmp_path / "shapes.cpp"])
    with pytest.raises(nkitools.KernelError, match="`takes_float` of library `wrong` has a parameter of a type"):
        register_with_torch(wrong)
