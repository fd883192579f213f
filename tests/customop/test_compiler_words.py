"""The compiler's own errors come first, at the author's line; every path and every $CXX builds."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from nkitools.customop import load
from nkitools.customop.compiler_words import authors_words, remedies_of
from nkitools.customop.toolchain import INCLUDE, find_compiler
from tests.cases import each

from .test_build import KERNEL, REGISTER, SHAPE, VALUES, refusal, written

HEAD = "#include <torch/torch.h>\n"
WRONG = {
    "a brace that is missing": (
        "torch::Tensor kernel(const torch::Tensor& t_in) {\n  if (true) {\n  return t_in;\n}\n", "expected '}'", None,
    ),
    "a typo in the return type": (
        "torch::Tenser kernel(const torch::Tensor& t_in) {\n  return t_in;\n}\n", "Tenser", 2,
    ),
    "an optional": (
        "torch::Tensor kernel(const torch::Tensor& x, c10::optional<double> a) {\n  return x;\n}\n", "optional", 2,
    ),
    "a semicolon that is missing": (
        "torch::Tensor kernel(const torch::Tensor& t_in) {\n  int a = 1\n  return t_in;\n}\n", "expected", None,
    ),
    "undocumented members beside an error": (
        "torch::Tensor kernel(const torch::Tensor& t_in) {\n" + "  t_in.size(0);\n" * 9 + "  return y;\n}\n", "'y'", 12,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_the_compilers_error_comes_first(what: str, tmp_path: Path) -> None:
    """Not that m.def names a kernel that is not there, no remark of ours before it, none of our names in it."""
    source, words, line = WRONG[what]
    said = refusal(tmp_path, HEAD + source)
    assert said.startswith("kernel.cpp does not compile:\n")
    first = next(each for each in said.splitlines() if re.search(r": (fatal )?error: ", each))
    assert first.startswith(f"{tmp_path}/kernel.cpp:")
    assert words in first
    assert line is None or f"kernel.cpp:{line}:" in first
    assert [name for name in ("nkt_host", "CO112", "m.def", "compute0.cpp") if name in said] == []


def test_our_remarks_are_no_words_of_the_compiler() -> None:
    """A remark goes with its lines, and the messages around it stay."""
    text = (
        "a.cpp: In function 'torch::nkt_host::Tensor f()':\n"
        "a.cpp:3:4: warning: 'size' is deprecated: nkitools CO112: Tensor::size is not there [-Wdeprecated]\n"
        "    3 |   t.size(0);\n"
        f"{INCLUDE}/nkitools/tensor.h:67:11: note: declared here\n   67 |   int64_t size(\n"
        "In file included from /cache/prelude.h:1,\n                 from a.cpp:1:\n"
        f"{INCLUDE}/nkitools/tensor.h:67:11: note: declared here\n"
        "a.cpp:5:1: error: 'y' was not declared\n"
        f"{INCLUDE}/nkitools/scalar.h:95:7: note: 'c10::TensorOptions' declared here\n"
        "a.cpp:4:1: note: the author's own\n"
    )
    assert authors_words(text) == (
        "a.cpp: In function 'torch::Tensor f()':\na.cpp:5:1: error: 'y' was not declared\n"
        "a.cpp:4:1: note: the author's own\n"
    )


def test_a_name_that_is_not_documented_is_one_finding(tmp_path: Path) -> None:
    """It was one for each use, twice in a line."""
    uses = "  for (int i = 0; i < t_in.size(0); i++) if (t_in.size(0) == 7) break;\n" * 3
    compute, shape = written(
        tmp_path,
        KERNEL.replace("{ return", "{\n" + uses + "  if (t_in.dim() == 3) throw 1;\n  return"),
        SHAPE + REGISTER,
    )
    run = load("remarks", [compute], [shape]).absolute.run(VALUES)
    told = [(finding.rule, finding.line, finding.message) for finding in run.findings]
    assert [each[:2] for each in told] == [("CO112", 3), ("CO112", 6)]
    assert told[0][2].endswith("(and 5 more uses)")
    assert "more" not in told[1][2]


@pytest.mark.parametrize(
    "name",
    ["dollar$sign", "two$$", "hash#", 'quo"te', "back\\slash", "line\nend", "space and #$", "tab\there", "a\\ b"],
)
def test_sources_below_every_path_build(name: str, tmp_path: Path) -> None:
    """With a header beside them, whose change is a new library."""
    compute, shape = written(
        tmp_path / name, '#include "factor.h"\n' + KERNEL.replace("torch::abs(t_in)", "torch::mul(t_in, kFactor)"),
        SHAPE + REGISTER,
    )  # fmt: skip
    for factor in (2, 3):
        (compute.parent / "factor.h").write_text(f"constexpr float kFactor = {factor};\n")
        library = load("paths", [compute], [shape])
        np.testing.assert_array_equal(library.absolute(VALUES), factor * VALUES)
    assert {str(compute), str(shape), str(compute.parent / "factor.h")} <= set(library.built.sources)


@pytest.mark.parametrize("behind", [False, True])
def test_cxx_may_have_arguments(behind: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `g++ -DX`, and as `ccache g++`, of which env is a stand-in."""
    compiler = find_compiler().path
    monkeypatch.setenv("CXX", f"{shutil.which('env')} {compiler}" if behind else f"{compiler} -DFACTOR=5")
    kernel = KERNEL.replace("torch::abs(t_in)", "torch::mul(t_in, FACTOR)")
    compute, shape = written(tmp_path, "#ifndef FACTOR\n#define FACTOR 7\n#endif\n" + kernel, SHAPE + REGISTER)
    built = load("arguments", [compute], [shape])
    np.testing.assert_array_equal(built.absolute(VALUES), (7 if behind else 5) * VALUES)


@each(
    "said, remedy",
    [
        (
            "s.cpp:3:10: fatal error: torch/extension.h: No such file or directory",
            "torch/extension.h is no header of custom operators: include <torch/torch.h>.",
        ),
        (
            "s.cpp:3:59: error: too few arguments to function 'torch::Tensor torch::zeros(c10::IntArrayRef, c10::X)'",
            "Give the dtype: torch::zeros(sizes, torch::kFloat).",
        ),
        (
            "s.cpp:3:60: error: 'c10::optional' has not been declared",
            "optional is no type of custom operators: a function takes torch::Tensor, torch::Scalar and double.",
        ),
        (
            "s.cpp:3:46: error: no type named 'TensorList' in namespace 'at'",
            "TensorList is no type of custom operators: a function takes torch::Tensor, torch::Scalar and double.",
        ),
        (
            "s.cpp:3:73: error: 'class torch::Tensor' has no member named 'options'",
            "Give the dtype in place of options(): torch::kFloat.",
        ),
        (
            "s.cpp:2:80: error: 'TensorOptions' is not a member of 'torch'; did you mean 'c10::TensorOptions'?",
            "Give the dtype itself in place of TensorOptions: torch::kFloat.",
        ),
        (
            "s.cpp:2:40: error: 'TORCH_CHECK' was not declared in this scope",
            "TORCH_CHECK is not there in custom operators: write assert(condition).",
        ),
        (
            "s.cpp:9:16: error: 'const class torch::Tensor' has no member named 'data_ptr'",
            "Custom operators have no data_ptr(): reach elements by accessor<T, N>(), or copy them by tcm_accessor().",
        ),
        (
            "s.cpp:9:12: error: no member named 'contiguous' in 'torch::Tensor'",
            "Leave contiguous() out: tensors of a device are contiguous.",
        ),
        (
            "s.cpp:2:54: error: 'empty_like' is not a member of 'torch'",
            "Give sizes and dtype in place of _like: torch::empty(x.sizes(), torch::kFloat).",
        ),
        (
            "s.cpp:2:58: error: too few arguments to function 'torch::Tensor torch::full(c10::IntArrayRef, c10::X)'",
            "Give the dtype: torch::full(sizes, value, torch::kFloat).",
        ),
        ("s.cpp:3:73: error: expected ';'", ""),
    ],
)
def test_what_other_extensions_have_is_refused_with_its_remedy(said: str, remedy: str) -> None:
    """By name, behind the compiler's own words."""
    assert remedies_of(said).strip() == remedy


def test_the_words_of_a_hostile_source_command_nothing(tmp_path: Path) -> None:
    """The compiler quotes the line as it is."""
    said = refusal(tmp_path, HEAD + "#error \x1b[31m\u202e\n" + KERNEL)
    assert "#error \\x1b[31m\\u202e" in said
    assert not set(said) & set("\x1b\u202e")
