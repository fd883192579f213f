"""What only follows from an access out of bounds is said with it, and not again as CO106."""

from __future__ import annotations

import numpy as np
import pytest

from nkitools.customop import Operator

from .conftest import Builder, places

SHAPE = "torch::Tensor shape(torch::Tensor x) { return torch::zeros(x.sizes(), torch::kFloat); }\n"
OUT = "torch::Tensor kernel(const torch::Tensor& x) {\n  torch::Tensor out = torch::empty(x.sizes(), torch::kFloat);\n"
COPIES = "  size_t n = x.numel(); float* b = (float*)torch::neuron::tcm_malloc(4 * @); if (!b) return out;\n"
ENDS = "  torch::neuron::tcm_free(b);\n  return out;\n}\n"
LOOP = "  for (int i = 0; i < 8; i++) for (int j = 0; j < 20; j++) {0}\n  return out;\n}}\n"
PUT, GET = (
    "  out.tcm_accessor().tcm_to_tensor<float>(b, {0}, n);\n",
    "  x.tcm_accessor().tensor_to_tcm<float>(b, {0}, n);\n",
)
ELEMENTS = "  auto a = x.accessor<float, 2>(); auto o = out.accessor<float, 2>();\n"
WHOLE, HALF = COPIES.replace("@", "n"), COPIES.replace("@", "(n / 2)")
OPERATORS = {
    "shifted": OUT + ELEMENTS + LOOP.format("o[i][j + 1] = a[i][j];"),
    "shifted_more": OUT + ELEMENTS + LOOP.format("if (j < 19) o[i][i == 3 ? 40 : j] = a[i][j];"),
    "shifted_copy": OUT + WHOLE + GET.format(0) + PUT.format(10) + ENDS,
    "read_beyond": OUT + WHOLE + GET.format(10) + PUT.format(0) + ENDS,
    "read_before": OUT + WHOLE + GET.format(-5) + PUT.format(0) + ENDS,
    "small_block": OUT + HALF + GET.format(0) + PUT.format(0) + ENDS,
    "read_and_forgot": OUT + ELEMENTS + LOOP.format("if (j < 18) o[i][j] = a[i][j + 3];"),
    "neighbours": OUT + ELEMENTS + LOOP.format("o[i][j] = a[i][j + 1] - a[i][j];"),
}  # fmt: skip
X = np.arange(160, dtype=np.float32).reshape(8, 20)


@pytest.fixture(scope="module")
def operators(build_operators: Builder) -> dict[str, Operator]:
    return build_operators({name: text + SHAPE for name, text in OPERATORS.items()})


@pytest.mark.parametrize(
    ("name", "lines", "said"),
    [
        ("shifted", [4], "and 7 more like it; output[0:8, 0] (8) are never written"),
        ("shifted_copy", [5], "and 10 elements past its end; output[0, 0:10] (10) are never written"),
        (
            "read_beyond",
            [4],
            "a copy reads elements [0:8, 10:20], [1:8, 0:10] of argument 0 (float32 [8, 20]), and 10 ",
        ),
        ("read_before", [4], "at offset -5: nothing is before its beginning"),
        ("small_block", [4, 5], "has 320 left from there on"),
        ("neighbours", [4], "index 20 is past the end of dimension 1 of argument 0 (float32 [8, 20])"),
    ],
)
def test_one_cause_is_one_finding(operators: dict[str, Operator], name: str, lines: list[int], said: str) -> None:
    """Elements that a store beyond the tensor leaves out, and those made of elements that are not there."""
    run = operators[name].run(X)
    assert places(run) == [("CO104", line) for line in lines]
    assert said in run.findings[-1].message
    assert (run.findings[-1].picture is not None) == ("never written" in said)


def test_what_has_another_cause_stays(operators: dict[str, Operator]) -> None:
    """More elements are missing than were stored beyond: a loop ends too early as well."""
    run = operators["shifted_more"].run(X)
    assert places(run) == [("CO104", 4), ("CO106", 2)]
    assert "output[0:8, 19], output[3, 0:19] (27) are never written" in run.findings[1].message
    run = operators["read_and_forgot"].run(X)
    assert places(run) == [("CO104", 4), ("CO106", 2)]
    assert "output[0:8, 18:20] (16) are never written" in run.findings[1].message
