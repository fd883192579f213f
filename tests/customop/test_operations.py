"""Tensor operations compute what NumPy does, and refuse what they do not take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nkitools.customop import Operator

from .conftest import Builder, places

SHAPE = "torch::Tensor shape(@) { return torch::zeros(t_in.sizes(), torch::kFloat); }\n"
ONE = "const torch::Tensor& t_in"
TWO = "const torch::Tensor& t_in, const torch::Tensor& other"
# Each name: the parameters, the expression, and NumPy's.
CASES: dict[str, tuple[str, str, Callable[..., Any]]] = {
    "unary": (
        ONE,
        "torch::add(torch::mul(torch::abs(t_in), 2), torch::sub(torch::ceil(t_in), torch::floor(t_in)), 3)",
        lambda x: np.abs(x) * np.float32(2) + np.float32(3) * (np.ceil(x) - np.floor(x)),
    ),
    "scalars": (
        ONE,
        "torch::div(torch::sub(torch::add(t_in, 1.5, 2), 4), 3)",
        lambda x: (x + np.float32(2) * np.float32(1.5) - np.float32(4)) / np.float32(3),
    ),
    "tensors": (
        TWO,
        "torch::div(torch::mul(t_in, other), torch::add(other, t_in, 0.5))",
        lambda x, y: (x * y) / (y + np.float32(0.5) * x),
    ),
    "clamped": (ONE, "torch::clamp(t_in, -0.5, 1)", lambda x: np.clip(x, np.float32(-0.5), np.float32(1))),
    "trigonometric": (
        ONE,
        "torch::add(torch::sin(t_in), torch::add(torch::cos(t_in), torch::tan(t_in)))",
        lambda x: np.sin(x) + (np.cos(x) + np.tan(x)),
    ),
    "logarithms": (
        ONE,
        "torch::add(torch::log(torch::exp(t_in)), torch::add(torch::log2(torch::abs(t_in)), "
        "torch::log10(torch::abs(t_in))))",
        lambda x: x + (np.log2(np.abs(x)) + np.log10(np.abs(x))),
    ),
    "powers": (TWO, "torch::pow(torch::abs(t_in), other)", lambda x, y: np.abs(x) ** y),
}
EXACT = ("unary", "scalars", "tensors", "clamped")
FORMS = {
    "into": (ONE, "torch::Tensor t = torch::empty(t_in.sizes(), torch::kFloat); torch::exp_out(t, t_in); return t;"),
    "filled": (ONE, "torch::Tensor t = torch::empty(t_in.sizes(), torch::kFloat); t.fill_(2.5); return t;"),
    "full": (ONE, "return torch::full(t_in.sizes(), 7, torch::kFloat);"),
    "shapes": (TWO, "return torch::add(t_in, other);"),
    "bits_of_floats": (ONE, "return torch::bitwise_not(t_in);"),
    "wrong_out": (
        ONE,
        "torch::Tensor t = torch::empty(t_in.sizes(), torch::kInt); torch::exp_out(t, t_in); return t_in;",
    ),
}
INTEGERS = {
    "bits": (TWO, "return torch::bitwise_or(torch::bitwise_and(t_in, 12), torch::bitwise_not(other));"),
    "wraps": (TWO, "return torch::add(torch::mul(t_in, other), 100);"),
    "eye": (TWO, "return torch::eye(t_in.sizes()[0], t_in.sizes()[1], torch::kInt);"),
    "cubes": (TWO, "return torch::pow(t_in, 3);"),
}


def source(parameters: str, body: str, dtype: str = "kFloat") -> str:
    shape = SHAPE.replace("@", parameters).replace("kFloat", dtype)
    return f"torch::Tensor kernel({parameters}) {{\n  {body}\n}}\n{shape}"


@pytest.fixture(scope="module")
def operators(build_operators: Builder) -> dict[str, Operator]:
    sources = {name: source(parameters, f"return {expression};") for name, (parameters, expression, _) in CASES.items()}
    sources |= {name: source(*form) for name, form in FORMS.items()}
    sources |= {name: source(*form, "kInt") for name, form in INTEGERS.items()}
    return build_operators(sources)


def values(seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal((40, 25)).astype(np.float32) * 4


@pytest.mark.parametrize("name", CASES)
def test_operations_compute_what_numpy_does(operators: dict[str, Operator], name: str) -> None:
    """Arithmetic to the bit; functions to a few units in the last place of float32."""
    parameters, _, reference = CASES[name]
    arguments = (values(1), values(2)) if parameters == TWO else (values(1),)
    result, expected = operators[name](*arguments), reference(*arguments)
    if name in EXACT:
        assert np.array_equal(result, expected)
    else:
        np.testing.assert_allclose(result, expected, rtol=4e-6, atol=4e-6)


def test_results_go_where_the_author_says(operators: dict[str, Operator]) -> None:
    """`f_out` writes all of its result, fill_ and full all of theirs."""
    run = operators["into"].run(values(1))
    assert run.findings == []
    np.testing.assert_allclose(run.outputs, np.exp(values(1)), rtol=4e-7)
    assert (operators["filled"](values(1)) == 2.5).all()
    assert (operators["full"](values(1)) == 7).all()


def test_integers_are_integers(operators: dict[str, Operator]) -> None:
    """Bits, overflow and powers are those of 32 bits."""
    a, b = np.random.default_rng(4).integers(-(1 << 31), 1 << 31, (2, 30, 20)).astype(np.int32)
    assert np.array_equal(operators["bits"](a, b), (a & 12) | ~b)
    with np.errstate(over="ignore"):
        assert np.array_equal(operators["wraps"](a, b), a * b + np.int32(100))
        assert np.array_equal(operators["cubes"](a, b), a * a * a)
    assert np.array_equal(operators["eye"](a, b), np.eye(30, 20, dtype=np.int32))


@pytest.mark.parametrize(("name", "rule"), [("bits_of_floats", "CO110"), ("wrong_out", "CO110")])
def test_wrong_types_are_refused(operators: dict[str, Operator], name: str, rule: str) -> None:
    """Bit operations take integers; a result has the type of what is computed."""
    run = operators[name].run(values(1))
    assert places(run) == [(rule, 2)]
    assert run.outputs is None


def test_nothing_is_broadcast(operators: dict[str, Operator]) -> None:
    """Operands of different shapes are refused, where torch would stretch one."""
    run = operators["shapes"].run(values(1), values(1)[:1])
    assert places(run) == [("CO117", 2)]
