"""The headers: what Neuron's reference guide documents compiles, and nothing else does."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from nkitools.customop import Operator
from nkitools.customop.toolchain import find_compiler, prepare, run

from .conftest import Builder

HEADERS = "#include <torch/torch.h>\n#include <neuron/neuron-utils.hpp>\n"


def compiled(directory: Path, body: str) -> str:
    """What the compiler says of a body with tensors `a` (const) and `b`; '' in silence."""
    source = directory / "source.cpp"
    source.write_text(
        f"{HEADERS}void function(const torch::Tensor& a, torch::Tensor b, torch::Scalar s) {{\n{body}\n}}\n"
    )
    compiler = find_compiler()
    flags = [*compiler.flags, *prepare(compiler).prelude, "-fsyntax-only"]
    return run([compiler.path, *flags, str(source)]).stderr


DOCUMENTED = """
  size_t num_elem = a.numel();
  torch::Tensor t = torch::empty({num_elem}, torch::kFloat);
  t = torch::full({2, 3}, 1.5, torch::kBFloat16); t = torch::zeros(a.sizes(), torch::kHalf);
  t = torch::ones({2}, torch::kInt); t = torch::eye(2, 3, torch::kChar); t = torch::empty({4}, torch::kShort);
  c10::TensorOptions options(torch::kByte); t = torch::empty(a.sizes(), options);
  bool same = a.sizes() == b.sizes(); int64_t first = a.sizes()[0];
  auto read = a.accessor<float, 2>(); float x = read[0][1];
  auto write = b.accessor<float, 2>(); write[0][1] = x; auto y = write[0][1]; y = std::max(write[0][0], x);
  auto source = a.read_stream_accessor<int32_t>(); int32_t i = source.read(); int closed = source.close();
  auto sink = b.write_stream_accessor<c10::Half>(); sink.write(2.0f); closed = sink.close();
  b.set_accessor_coherence_policy(torch::CoherencyEnforcer::INCOHERENT_QUIET);
  a.set_accessor_coherence_policy(torch::CoherencyEnforcer::Policy::COHERENT);
  torch::CoherencyEnforcer::Policy policy = a.get_accessor_coherence_policy();
  float* buffer = (float*)torch::neuron::tcm_malloc(16);
  a.tcm_accessor().tensor_to_tcm<float>(buffer, 0, 4); b.tcm_accessor().tcm_to_tensor<float>(buffer, 0, 4);
  torch::TensorTcmAccessor<true> tcm = a.tcm_accessor(); torch::neuron::tcm_free(buffer);
  a.fill_(s); torch::Tensor other = get_dst_tensor(); other = t; other = torch::exp(t);
  uint32_t cores = get_cpu_count() + get_cpu_id();
  torch::abs_out(b, a); torch::ceil(a); torch::floor(a); torch::sin(a); torch::cos(a); torch::tan_out(b, a);
  torch::log(a); torch::log2(a); torch::log10(a); torch::exp_out(b, a);
  torch::pow(a, 2); torch::pow(2, a); torch::pow_out(b, a, a); torch::clamp(a, 0, 6.0); torch::clamp_out(b, a, s, s);
  torch::add(a, 1); torch::add(a, a, 2); torch::sub_out(b, a, a); torch::mul(a, 2.5); torch::div_out(b, a, s);
  torch::bitwise_and(a, 1); torch::bitwise_or(1, a); torch::bitwise_and_out(b, a, a); torch::bitwise_not(a);
"""


def test_everything_documented_compiles_in_silence(tmp_path: Path) -> None:
    """Every factory, operation, member, accessor and function of the guide, with the kinds of arguments it lists."""
    assert compiled(tmp_path, DOCUMENTED) == ""


@pytest.mark.parametrize(
    "body",
    [
        "torch::Tensor t = torch::zeros({2});",  # a dtype must be given
        "torch::Tensor t = torch::zeros({2}, torch::kDouble);",
        "auto x = a.accessor<float, 1>(); x[0] = 1;",  # of a const tensor: read-only
        "a.tcm_accessor().tcm_to_tensor<float>((float*)nullptr, 0, 1);",
        "auto sink = a.write_stream_accessor<float>();",
        "auto x = a.accessor<double, 1>();",
        "auto x = a.accessor<int64_t, 1>();",
        "float* data = b.data_ptr<float>();",
        "torch::Tensor t = a.reshape({1});",
        "torch::Tensor t = a + b;",
        "torch::Tensor t = torch::relu(a);",
        "torch::Tensor t = torch::matmul(a, b);",
        "torch::Tensor t = b[0];",
    ],
)
def test_what_is_not_documented_does_not_compile(tmp_path: Path, body: str) -> None:
    """It would fail on the way to the device; it fails here."""
    assert "error" in compiled(tmp_path, body)


@pytest.mark.parametrize(
    "body",
    [
        "a.size(0);",
        "a.dim();",
        "a.scalar_type();",
        "a.dtype();",
        "a.sizes().size();",
        "torch::Tensor t;",
        "s.to<float>();",
    ],
)
def test_what_runs_elsewhere_compiles_with_a_remark(tmp_path: Path, body: str) -> None:
    """Undocumented members that sources use are served, and named with their line (CO112)."""
    said = compiled(tmp_path, body)
    assert "error" not in said
    assert ":4:" in said
    assert "nkitools CO112" in said


def test_headers_stand_alone_and_are_cxx14(tmp_path: Path) -> None:
    """Each of them can be the only one, without the precompiled header, in strict C++14 with all warnings."""
    compiler = find_compiler()
    strict = ["-std=c++14", "-pedantic-errors", "-Wall", "-Wextra", "-fsyntax-only"]
    strict += [] if compiler.is_clang else ["-Wno-init-list-lifetime"]
    include = [flag for flag in compiler.flags if flag.endswith("include")]
    for header in ("torch/torch.h", "neuron/neuron-utils.hpp", "torchneuron/register.h"):
        source = tmp_path / "alone.cpp"
        source.write_text(f"#include <{header}>\n")
        assert run([compiler.path, *strict, "-I", *include, str(source)]).stderr == ""


# --- numbers ---------------------------------------------------------------------------------------------------------

SAME = "torch::Tensor shape(torch::Tensor t_in) { return torch::zeros(t_in.sizes(), torch::@); }\n"
THROUGH = """\
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::empty(t_in.sizes(), torch::@);
  auto from = t_in.accessor<#, 1>();
  auto to = t_out.accessor<$, 1>();
  for (int64_t i = 0; i < t_in.numel(); i++) to[i] = static_cast<float>(from[i]);
  return t_out;
}
"""
CASTS = {
    "to_half": ("kHalf", "float", "c10::Half"),
    "to_bfloat16": ("kBFloat16", "float", "c10::BFloat16"),
    "of_half": ("kFloat", "c10::Half", "float"),
    "of_bfloat16": ("kFloat", "c10::BFloat16", "float"),
}


@pytest.fixture(scope="module")
def casts(build_operators: Builder) -> dict[str, Operator]:
    return build_operators(
        {
            name: (THROUGH + SAME).replace("@", dtype).replace("#", source).replace("$", result)
            for name, (dtype, source, result) in CASTS.items()
        }
    )


def floats() -> np.ndarray:
    """Floats of every size: random bits, and the edges of both small formats."""
    bits = np.random.default_rng(3).integers(0, 1 << 32, 20000, dtype=np.uint64).astype(np.uint32)
    edges = np.array(
        [0, 65504, 65519.99, 65520, 6e-8, 2.98e-8, 2.99e-8, 6.1e-5, 3.39e38, np.inf, -np.inf, 1.00048828125]
    )
    return np.concatenate([bits.view(np.float32), edges.astype(np.float32), -edges.astype(np.float32)])


@pytest.mark.parametrize(("name", "dtype"), [("half", np.float16), ("bfloat16", ml_dtypes.bfloat16)])
def test_small_floats_round_as_numpy_does(casts: dict[str, Operator], name: str, dtype: type) -> None:
    """To nearest even, subnormals and infinities included; and every one of them comes back as it was."""
    values = floats()
    with np.errstate(over="ignore", invalid="ignore"):
        expected = values.astype(dtype)
    numbers = ~np.isnan(values)
    result = casts[f"to_{name}"](values)
    assert result.dtype == dtype
    assert np.array_equal(result[numbers].view(np.uint16), expected[numbers].view(np.uint16))
    assert np.isnan(result[~numbers].astype(np.float32)).all()
    every = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    assert np.array_equal(casts[f"of_{name}"](every), every.astype(np.float32), equal_nan=True)
