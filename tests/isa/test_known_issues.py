"""Forms that release notes list as known issues, or that have a page for another instruction: computed, with a word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa.issued import empty, issue, tile
from tests.isa.oracles import float64

X = np.arange(1, 17, dtype=np.float32).reshape(4, 4)

FORMS: dict[str, tuple[Callable[[Any], Any], np.ndarray]] = {
    "a number as exponent": (lambda x: nl.power(x, 2.0), float64(X) ** 2),
    "a column beside a tile": (lambda x: nl.add(x, x[:, 0:1]), float64(X) + X[:, :1]),
    "a product that is not given transposed": (lambda x: nl.matmul(x, x), float64(X) @ float64(X)),
}
DOCUMENTED: dict[str, tuple[Callable[[Any], Any], np.ndarray]] = {
    "a tile as exponent": (lambda x: nl.power(x, nl.full((4, 4), 2.0, nl.float32)), float64(X) ** 2),
    "a number beside a tile": (lambda x: nl.add(x, 2.0), float64(X) + 2),
    "a view of the whole shape": (lambda x: nl.add(x, x[:, 0:1].broadcast(1, 4)), float64(X) + X[:, :1]),
    "a product that is given transposed": (lambda x: nl.matmul(x, x, transpose_x=True), float64(X).T @ float64(X)),
}


def applied(function: Callable[[Any], Any], **options: Any) -> Any:
    """Return the run of a kernel that stores what ``function`` makes of a tile."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        kept = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(kept, function(nl.load(x)))
        nisa.dma_copy(out, kept)
        return out

    return nkitools.simulate(kernel, X, **options)


@pytest.mark.parametrize("name", FORMS)
def test_forms_of_nl_that_compilers_refuse_are_a_warning(name: str) -> None:
    """NK615, once; the values are what simulation gives."""
    function, expected = FORMS[name]
    run = applied(function)
    assert [(each.rule, each.severity) for each in run.findings] == [("NK615", "warning")]
    np.testing.assert_allclose(run.outputs, expected, rtol=1e-6)


def _scanned(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_tensor_scan(out, x, x, 1.0, nl.divide, nl.add)
    return out


def _scalar(x: Any, **operators: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(out, x, **operators)
    return out


def _pair(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_tensor(out, x, x, nl.divide)
    return out


DIVISIONS: dict[str, tuple[Callable[[Any], Any], np.ndarray | None]] = {
    "tensor_tensor": (_pair, np.ones((4, 4))),
    "op0": (lambda x: _scalar(x, op0=nl.divide, operand0=4.0), float64(X) / 4),
    "op1": (lambda x: _scalar(x, op0=nl.add, operand0=1.0, op1=nl.divide, operand1=2.0), (float64(X) + 1) / 2),
    "scan": (_scanned, None),
    "nl": (lambda x: nl.divide(x, 8.0), float64(X) / 8),
}


@pytest.mark.parametrize("version", ["0.6", "0.7"])
@pytest.mark.parametrize("name", DIVISIONS)
def test_a_division_is_an_error_in_the_modern_dialect(name: str, version: str) -> None:
    """NK615: the compiler has no such instruction. Where errors are only reported the quotient is computed."""
    function, expected = DIVISIONS[name]
    with pytest.raises(nkitools.KernelError) as caught:
        applied(function, nki_version=version)
    assert (caught.value.finding.rule, caught.value.finding.severity) == ("NK615", "error")
    assert "reciprocal" in caught.value.finding.remedy
    run = applied(function, nki_version=version, rules="report")
    assert {(each.rule, each.severity) for each in run.findings if each.rule != "NK618"} == {("NK615", "error")}
    if expected is not None:
        np.testing.assert_allclose(run.outputs, expected, rtol=1e-6)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_forms_beside_them_are_documented(name: str) -> None:
    """What the remedies propose has no finding."""
    function, expected = DOCUMENTED[name]
    run = applied(function)
    assert run.findings == []
    np.testing.assert_allclose(run.outputs, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("memory", "options"), [("sbuf", {"engine": nisa.engine.vector}), ("psum", {})], ids=["vector", "psum"]
)
def test_a_reverse_square_root_on_the_vector_engine_is_beyond_the_documents(memory: str, options: Any) -> None:
    """NK621: it "can run on GpSIMD Engine or Scalar Engine", and the GpSimd Engine cannot reach PSUM."""
    issued = issue(nisa.tensor_scalar, empty(X.shape), tile(X, memory), nl.rsqrt, 0.0, **options)
    assert [(each.rule, each.severity) for each in issued.findings] == [("NK621", "hint")]
    np.testing.assert_allclose(issued.dst, 1 / np.sqrt(float64(X)), rtol=1e-6)
    assert issue(nisa.tensor_scalar, empty(X.shape), tile(X), nl.rsqrt, 0.0).findings == []


BYPASSED: dict[str, tuple[Any, ...]] = {
    "tensor_tensor": (nisa.tensor_tensor, empty(X.shape), tile(X), tile(-X), nl.bypass),
    "tensor_scalar": (nisa.tensor_scalar, empty(X.shape), tile(X), nl.bypass, 3.0),
    "its second operator": (
        nisa.tensor_scalar, empty(X.shape), tile(X), nl.multiply, 1.0, False, nl.bypass, 3.0
    ),
    "scalar_tensor_tensor": (
        nisa.scalar_tensor_tensor, empty(X.shape), tile(X), nl.bypass, 3.0, nl.bypass, tile(-X)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BYPASSED)
def test_bypass_has_a_page_for_another_instruction(name: str) -> None:
    """NK621 at each operator: nl.bypass is documented for nisa.activate2 only."""
    issued = issue(*BYPASSED[name])
    assert {(each.rule, each.severity) for each in issued.findings} == {("NK621", "hint")}
    np.testing.assert_array_equal(issued.dst, X)


@pytest.mark.parametrize(("value", "stored"), [(-1, 0), (256, 255)])
def test_a_fill_beyond_the_dtype_saturates(value: int, stored: int) -> None:
    """NK304 names the number; the element is the end of the range."""
    issued = issue(nisa.memset, empty((4, 4), nl.uint8), value)
    assert [(each.rule, each.severity) for each in issued.findings] == [("NK304", "warning")]
    assert f"{value} becomes {stored}" in issued.findings[0].message
    assert (issued.dst == stored).all()
