"""NumPy writes right results into memory of any stride, in every form in which the package calls it.

NumPy 2.4 does not: ``np.negative`` goes wrong where the source has a stride of 16 bytes and ``out`` is not dense, and
``np.isfinite`` where ``out`` is not dense. Each function that the package calls with ``out=`` is scanned here over
strides of 1 to 9 elements, and compared with the same computation on dense arrays.
"""

from __future__ import annotations

import ast
import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.engines.arithmetic import negate
from nkitools.engines.operators import ACTIVATIONS, OPERATORS, Operator
from tests.house.sources import nodes_in, nodes_under

ROOT = Path(inspect.getfile(nkitools)).parent
STRIDES = range(1, 10)
SIZE = 37  # more than twice the widest vector register of float32, and no multiple of one
ROWS = 3

# Functions of NumPy that are no ufuncs but take ``out=``: how the package calls them, on one array.
ONE_ARRAY: dict[str, Callable[..., Any]] = {
    "cumsum": lambda x, out: np.cumsum(x, axis=0, out=out),
    "maximum.accumulate": lambda x, out: np.maximum.accumulate(x, axis=0, out=out),
    "clip": lambda x, out: np.clip(x, 0.3, 0.6, out=out),
    "mean": lambda x, out: np.mean(np.stack([x, x + 1], axis=-1), axis=-1, out=out),
    "sum": lambda x, out: np.sum(np.stack([x, x + 1], axis=-1), axis=-1, out=out),
    "take": lambda x, out: np.take(x, np.arange(x.shape[0])[::-1], axis=0, out=out, mode="clip"),
}
# Called with ``out=`` on dense arrays alone, by the one function that is named.
DENSE_ONLY = {"negative": "negate"}


def _values(dtype: str, seed: int) -> np.ndarray:
    numbers = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return numbers.uniform(0.1, 0.9, SIZE).astype(dtype)
    return numbers.integers(1, 7, SIZE).astype(dtype)


def _strided(values: np.ndarray, stride: int) -> np.ndarray:
    """A view with the given stride in elements, with the values in it."""
    view = np.zeros(SIZE * stride, values.dtype)[::stride]
    view[:] = values
    return view


def _in_rows(values: np.ndarray, stride: int) -> np.ndarray:
    """A view of two dimensions, its first one strided, that repeats the values in each column."""
    view = np.zeros((SIZE, ROWS + stride), values.dtype)[:, :ROWS]
    view[:] = values[:, None]
    return view


LAYOUTS = {"line": _strided, "rows": _in_rows}


def _dense(like: np.ndarray, dtype: Any) -> np.ndarray:
    return np.zeros(like.shape, dtype)


def _wrong(function: Callable[..., Any], arrays: Sequence[np.ndarray], out: np.ndarray) -> bool:
    """Run a function into ``out``, and return whether its elements differ from those of dense arrays.

    ``out`` may be one of the arrays.
    """
    expected = np.zeros(out.shape, out.dtype)
    function(*[np.ascontiguousarray(array).copy() for array in arrays], out=expected)
    function(*arrays, out=out)
    return out.tobytes() != expected.tobytes()


def one_array(function: Callable[..., Any], dtype: str, result: str = "") -> Iterator[str]:
    """Yield the forms in which a function of one array goes wrong: in place, or from one stride to another."""
    values, empty = _values(dtype, 1), np.zeros(SIZE, result or dtype)
    for (layout, lay), stride in itertools.product(LAYOUTS.items(), STRIDES):
        place = lay(values, stride)
        if empty.dtype == values.dtype and _wrong(function, [place], place):
            yield f"{dtype} {layout}, in place, stride {stride}"
        for other in STRIDES:
            if _wrong(function, [lay(values, stride)], lay(empty, other)):
                yield f"{dtype} {layout}, from stride {stride} to {other}"


def two_arrays(function: Callable[..., Any], dtype: str, result: str = "") -> Iterator[str]:
    """Yield the forms in which a function of two operands goes wrong: in place of either, apart, with a number."""
    values, others, empty = _values(dtype, 1), _values(dtype, 2), np.zeros(SIZE, result or dtype)
    for (layout, lay), strides in itertools.product(LAYOUTS.items(), itertools.product(STRIDES, STRIDES)):
        form = f"{dtype} {layout}, strides {strides[0]} and {strides[1]}"
        for out in (1, 4, 5):
            if _wrong(function, [lay(values, strides[0]), lay(others, strides[1])], lay(empty, out)):
                yield f"{form} to {out}"
        if empty.dtype == values.dtype:
            for number in (0, 1):
                arrays = [lay(values, strides[0]), lay(others, strides[1])]
                if _wrong(function, arrays, arrays[number]):
                    yield f"{form}, in place of operand {number}"
    number = others[0]
    yield from one_array(lambda x, out: function(x, number, out=out), dtype, result)
    yield from one_array(lambda x, out: function(number, x, out=out), dtype, result)


def folds(function: np.ufunc, dtype: str) -> Iterator[str]:
    """Yield the strides from and to which a function's reduction goes wrong, and those of ``accumulate`` in place."""
    rows = np.stack([_values(dtype, seed) for seed in range(ROWS)], axis=1)
    reduced, running = function.reduce(rows, axis=1), function.accumulate(rows, axis=1)
    for stride in STRIDES:
        tile = np.zeros((SIZE, ROWS * stride), dtype)[:, ::stride]
        tile[:] = rows
        for other in STRIDES:
            out = _strided(np.zeros(SIZE, dtype), other)
            if function.reduce(tile, axis=1, out=out).tobytes() != reduced.tobytes():
                yield f"{dtype} reduced from stride {stride} to {other}"
        if function.accumulate(tile, axis=1, out=tile).tobytes() != running.tobytes():
            yield f"{dtype} accumulated in place, stride {stride}"


def _dtypes(operator: Operator) -> list[tuple[str, str]]:
    """The dtypes in which an operator computes: (operands, result)."""
    if operator.kind == "bitvec":
        return [("u1", "u1"), ("u2", "u2"), ("u4", "u4")]
    if operator.name in ("divide", "power", "rsqrt", "reciprocal"):
        return [("f4", "f4"), ("f8", "f8")]
    return [("f4", "f4"), ("f8", "f8"), ("i8", "i8"), ("i4", "i4"), ("u4", "u4")]


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_writes_any_stride(name: str) -> None:
    """Every operator has the result of dense arrays, whatever the strides of operands and result."""
    operator = OPERATORS[name]
    scan = one_array if operator.unary else two_arrays
    assert [form for pair in _dtypes(operator) for form in scan(operator.compute, *pair)] == []


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_function_writes_any_stride(name: str) -> None:
    """Every activation function has the result of dense arrays in float32, in place too."""
    assert list(one_array(ACTIVATIONS[name].compute, "f4")) == []


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "minimum"])
def test_a_reduction_writes_any_stride(name: str) -> None:
    """Reductions and running results are those of dense arrays."""
    assert list(folds(getattr(np, name), "f4")) == []


def _functions_with_out() -> dict[str, set[str]]:
    """Return the functions of NumPy that the package calls by name with ``out=``, and in which functions of its own."""
    found: dict[str, set[str]] = {}
    for path in ROOT.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        # Every process that collects tests is here: only sources that may have such a call are parsed.
        for function in nodes_in(source) if "out=" in source and "np." in source else ():
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                for name in _called_with_out(function):
                    found.setdefault(name, set()).add(function.name)
    return found


def _called_with_out(function: ast.AST) -> Iterator[str]:
    for call in nodes_under(function):
        if isinstance(call, ast.Call) and any(keyword.arg == "out" for keyword in call.keywords):
            parts = ast.unparse(call.func).split(".")
            if parts[0] == "np":
                yield ".".join(parts[1:])


WITH_OUT = _functions_with_out()


@pytest.mark.parametrize("name", sorted(set(WITH_OUT) - set(DENSE_ONLY)))
def test_a_function_of_numpy_writes_any_stride(name: str) -> None:
    """Every function of NumPy that the package calls with ``out=`` has the result of dense arrays."""
    integers = name.startswith(("bitwise", "left", "right"))
    function = None if name in ONE_ARRAY else getattr(np, name)
    if function is None:
        wrong = list(one_array(ONE_ARRAY[name], "f4"))
    elif name == "matmul":
        wrong = list(one_array(_product, "f4"))
    elif function.nin == 1:
        wrong = [form for dtype in ("f4", "f8") for form in one_array(function, dtype)]
    else:
        wrong = [form for dtype in (("u1", "u4") if integers else ("f4", "f8")) for form in two_arrays(function, dtype)]
    assert wrong == []


def _product(x: np.ndarray, out: np.ndarray) -> None:
    """Multiply a matrix by the identity, into ``out``; a line is a matrix of one column."""
    matrix = x.reshape(SIZE, -1)
    np.matmul(np.eye(SIZE, dtype=x.dtype), matrix, out=out[:, None] if out.ndim == 1 else out)


@pytest.mark.parametrize("name", DENSE_ONLY)
def test_a_function_that_numpy_gets_wrong_has_one_caller(name: str) -> None:
    """Only the function that sees to dense arrays calls it with ``out=``."""
    assert WITH_OUT[name] == {DENSE_ONLY[name]}


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8"])
def test_negation_in_place_takes_any_stride(dtype: str) -> None:
    """`negate` leaves the negative of every element, in memory of any stride."""
    for lay, stride in itertools.product(LAYOUTS.values(), STRIDES):
        place = lay(_values(dtype, 1), stride)
        expected = 0 - np.ascontiguousarray(place)
        negate(place)
        np.testing.assert_array_equal(place, expected)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8", "u4"])
def test_a_new_array_has_the_result_of_any_stride(dtype: str) -> None:
    """Negation and the tests for finite numbers are right where NumPy makes the result's memory."""
    for lay, stride in itertools.product(LAYOUTS.values(), STRIDES):
        x = lay(_values(dtype, 1), stride)
        np.testing.assert_array_equal(np.negative(x), 0 - np.ascontiguousarray(x))
        if np.dtype(dtype).kind == "f":
            x[1:-1:5], x[2:-1:7] = np.nan, np.inf
            dense = np.ascontiguousarray(x)
            np.testing.assert_array_equal(np.isfinite(x), dense < 8)
            np.testing.assert_array_equal(np.isnan(x), dense != dense)
            np.testing.assert_array_equal(np.isinf(x), dense == np.inf)


def test_the_scan_finds_a_function_that_one_stride_breaks() -> None:
    """A function that is wrong from a stride of 16 bytes alone is found there, in place and apart, and nowhere else."""

    def breaks(x: np.ndarray, out: np.ndarray) -> None:
        np.copyto(out, 0 - x)
        if x.strides == (16,):
            out[1:] = 7

    found = list(one_array(breaks, "f4"))
    apart = [f"f4 line, from stride 4 to {other}" for other in STRIDES]
    assert found == ["f4 line, in place, stride 4", *apart]
