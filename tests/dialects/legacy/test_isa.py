"""``nisa.*``: instructions that return their result."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.isa.constants as constants
import neuronxcc.nki.language as nl
import numpy as np
import pytest

from tests.dialects.legacy.running import outputs, random, refusal, run, stored


def test_activation_with_scale_and_bias() -> None:
    """op(data * scale + bias), with NumPy functions as operator tokens too, cast once."""
    x, bias = random(16, 8), random(16, 1, seed=1)
    measured = outputs(stored(lambda a, b: nisa.activation(op=np.square, data=a, bias=b, scale=2.0)), x, bias)
    np.testing.assert_allclose(measured, np.square(2 * x + bias), rtol=1e-5)
    narrow = outputs(stored(lambda a: nisa.activation(op=nl.exp, data=a, dtype=nl.bfloat16)), x)
    np.testing.assert_array_equal(narrow, np.exp(x).astype(ml_dtypes.bfloat16))


def test_activation_reduces_into_a_tile() -> None:
    """reduce_res receives the registers in place."""

    def kernel(x: Any) -> Any:
        total = nl.ndarray((16, 1), dtype=nl.float32)
        nisa.activation(
            op=np.exp, data=nl.load(x), reduce_op=np.add, reduce_res=total, reduce_cmd=nisa.reduce_cmd.reset_reduce
        )
        result = nl.ndarray((16, 1), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(result, total)
        return result

    x = random(16, 8)
    np.testing.assert_allclose(outputs(kernel, x), np.exp(x).sum(axis=1, keepdims=True), rtol=1e-5)


def test_tensor_scalar_and_tensor_tensor() -> None:
    """Two operators on numbers and vectors, reversed sides, and two tiles."""
    x, column, y = random(16, 8), random(16, 1, seed=1), random(16, 8, seed=2)
    measured = outputs(stored(lambda a, b: nisa.tensor_scalar(a, np.multiply, b, op1=np.add, operand1=2.5)), x, column)
    np.testing.assert_allclose(measured, x * column + np.float32(2.5), rtol=1e-5, atol=1e-6)
    measured = outputs(stored(lambda a: nisa.tensor_scalar(a, np.subtract, 1.0, reverse0=True)), x)
    np.testing.assert_allclose(measured, 1 - x, rtol=1e-6)
    measured = outputs(stored(lambda a, b: nisa.tensor_tensor(a, b, op=nl.maximum)), x, y)
    np.testing.assert_array_equal(measured, np.maximum(x, y))


def test_the_rest_of_the_slice() -> None:
    """reciprocal, tensor_copy, tensor_reduce and memset."""
    x = np.abs(random(16, 8)) + 1
    np.testing.assert_allclose(outputs(stored(nisa.reciprocal), x), 1 / x, rtol=1e-6)
    np.testing.assert_array_equal(outputs(stored(lambda a: nisa.tensor_copy(a, engine=nisa.vector_engine)), x), x)
    measured = outputs(stored(lambda a: nisa.tensor_reduce(np.add, a, axis=[1], negate=True)), x)
    np.testing.assert_allclose(measured, -x.sum(axis=1, keepdims=True), rtol=1e-5)
    measured = outputs(stored(lambda a: nisa.tensor_reduce(nl.max, a.reshape((16, 2, 4)), axis=2, keepdims=True)), x)
    np.testing.assert_array_equal(measured, x.reshape(16, 2, 4).max(axis=2, keepdims=True))
    measured = outputs(stored(lambda a: nisa.memset((4, 6), value=0.2, dtype=nl.float32)), x)
    np.testing.assert_array_equal(measured, np.full((4, 6), 0.2, np.float32))


GRID = nl.mgrid[0:4, 0:3, 0:2]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (lambda: nl.arange(0, 512)[None, :], np.arange(512)[None, :]),
        (lambda: nl.arange(0, 128)[:, None], np.arange(128)[:, None]),
        (lambda: nl.arange(0, 512)[None, :] * -1, -np.arange(512)[None, :]),
        (lambda: 5 + nl.arange(128)[:, None] * 2, 5 + np.arange(128)[:, None] * 2),
        (lambda: nl.arange(8)[:, None] + nl.arange(6)[None, :], np.arange(8)[:, None] + np.arange(6)),
        (lambda: 3 * GRID.x - GRID.y, 3 * np.mgrid[0:4, 0:3, 0:2][1] - np.mgrid[0:4, 0:3, 0:2][2]),
        (lambda: 7, np.full((1, 1), 7)),
    ],
)
def test_iota_makes_a_tile_of_an_index(expression: Any, expected: Any) -> None:
    """The values of an affine expression, as integers or cast."""
    for dtype in (nl.int32, nl.float32):
        measured = outputs(stored(lambda a, dtype=dtype: nisa.iota(expression(), dtype=dtype)), random(2, 2))
        np.testing.assert_array_equal(measured, expected.astype(dtype))


def test_results_go_to_the_memory_that_buffer_names() -> None:
    """buffer=, undocumented but used and named in activation's text, chooses SBUF or PSUM."""

    def kernel(x: Any) -> Any:
        tile = nl.load(x)
        assert nisa.activation(op=nl.exp, data=tile, buffer=nl.psum, name="e").buffer is nl.psum
        assert nisa.tensor_copy(tile).buffer is nl.sbuf
        return x

    outputs(kernel, random(8, 8))


def test_the_enums_are_those_of_the_constants_module() -> None:
    """nki.isa.constants hands out the same objects."""
    assert constants.engine is nisa.engine
    assert constants.oob_mode.skip is nisa.oob_mode.skip
    assert nisa.vector_engine is nisa.engine.vector
    assert nisa.fp32.min == np.finfo(np.float32).min


def test_the_generation_is_that_of_the_chip() -> None:
    """get_nc_version inside a kernel is the launch's."""

    def kernel(x: Any) -> Any:
        assert nisa.get_nc_version() == nisa.nc_version.gen2
        return x

    run(kernel, random(2, 2), chip="inf2")


@pytest.mark.parametrize(
    ("call", "rule", "said"),
    [
        (lambda t: nisa.tensor_tensor(t, t[:, 0:3], op=nl.add), "NK109", ""),
        (lambda t: nisa.tensor_reduce(np.add, t.reshape((16, 2, 4)), axis=[0, 1]), "NK112", "partition"),
        (
            lambda t: nisa.activation(op=nl.exp, data=t, bias=nisa.memset((16, 1), 1, nl.int8)),
            "NK301",
            "bias_invalid_type",
        ),
        (lambda t: nisa.activation(op=nl.exp, data=t, scale=nisa.memset((16, 1), 1, nl.float16)), "NK301", "scale"),
        (lambda t: nisa.activation(op=nl.exp, data=t, scale=nisa.memset((1, 16), 1, nl.float32)), "NK111", ""),
        (lambda t: nisa.activation(op=nl.add, data=t), "NK306", ""),
        (lambda t: nisa.tensor_copy(t, engin=1), "NK609", "engin"),
        (lambda t: nisa.iota(nl.arange(8), dtype=nl.int32), "NK603", "two dimensions"),
        (lambda t: nisa.iota(nl.arange(8)[None, :] // 2, dtype=nl.int32), "NK603", "//"),
        (lambda t: nisa.builtin_custom_op("f", "lib.so", "1", "1", [t], [t]), "NK607", "lib.so"),
        (lambda t: nisa.tensor_copy(), "NK609", "missing 1 required positional argument"),
        (lambda t: nisa.tensor_tensors(t), "NK607", "tensor_tensors"),
    ],
)
def test_what_is_refused(call: Any, rule: str, said: str) -> None:
    """Shapes, axes, dtypes, keywords and names that are not possible are refused by rule."""
    finding = refusal(stored(call), random(16, 8))
    assert finding.rule == rule
    assert said in finding.message
