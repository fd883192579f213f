"""nl's element-wise functions against NumPy: operands of every kind, broadcasting, dtypes, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
import nkitools.dialects.modern.language as nl
from tests.isa.issued import Tile, empty, inside, placed, tile
from tests.isa.oracles import ACTIVATIONS, ARITHMETIC, BITWISE, MAGNITUDE, float64, held, sample, words

UNARY: dict[str, Any] = {
    **{name: ACTIVATIONS[name][0] for name in ACTIVATIONS if name not in ("copy", "sin")},
    "negative": np.negative,
    "logical_not": np.logical_not,
}
SMALL = np.random.default_rng(0).integers(-2, 3, (64, 3, 4)).astype(np.float32)


def computed(function: Any, *operands: Any, chip: str = "trn2", **kwargs: Any) -> tuple[np.ndarray, Any, Any]:
    """Values, dtype and memory of a function of tiles (Tile, or arrays in SBUF) and numbers."""

    def body() -> tuple[np.ndarray, Any, Any]:
        as_tiles = [tile(each) if isinstance(each, np.ndarray) else each for each in operands]
        result = function(*[placed(each) if isinstance(each, Tile) else each for each in as_tiles], **kwargs)
        return np.array(result.array), result.dtype, result.buffer

    found: tuple[np.ndarray, Any, Any] = inside(body, chip=chip)
    return found


def refused(function: Any, *operands: Any, chip: str = "trn2", **kwargs: Any) -> Any:
    """The finding of a refused call."""
    with pytest.raises(nkitools.KernelError) as caught:
        computed(function, *operands, chip=chip, **kwargs)
    return caught.value.finding


# --- two operands ----------------------------------------------------------------------------------------------------

OPERANDS: dict[str, Any] = {
    "tile": np.random.default_rng(1).integers(-2, 3, SMALL.shape).astype(np.float32),
    "int": 2,
    "float": -1.0,
    "numpy number": np.float32(1),
    "vector": np.random.default_rng(2).integers(-2, 3, (64, 1, 1)).astype(np.float32),
    "row of each partition": np.random.default_rng(3).integers(-2, 3, (64, 1, 4)).astype(np.float32),
    "column of each partition": np.random.default_rng(4).integers(-2, 3, (64, 3, 1)).astype(np.float32),
    "bfloat16 vector": np.random.default_rng(5).integers(-2, 3, (64, 1, 1)).astype(nl.bfloat16.dtype),
}


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("kind", OPERANDS)
@pytest.mark.parametrize("name", ARITHMETIC)
def test_a_function_of_two_takes_tiles_and_numbers_on_either_side(name: str, kind: str, swapped: bool) -> None:
    """Free dimensions of size 1 broadcast; comparisons and logical functions give 1 and 0."""
    other = OPERANDS[kind]
    sides = (other, SMALL) if swapped else (SMALL, other)
    with np.errstate(all="ignore"):
        expected = ARITHMETIC[name](*(float64(np.asarray(side)) for side in sides)).astype(np.float32)
    values, dtype, memory = computed(getattr(nl, name), *sides)
    np.testing.assert_array_equal(values, expected)
    assert (dtype, memory) == (nl.float32, nl.sbuf)


@pytest.mark.parametrize("kind", OPERANDS)
@pytest.mark.parametrize("name", MAGNITUDE)
def test_magnitude_functions_keep_the_sign(name: str, kind: str) -> None:
    """``abs_max(-5, 3)`` is -5; of a tie the second."""
    other = OPERANDS[kind]
    values, _, _ = computed(getattr(nl, name), SMALL, other, chip="trn3")
    np.testing.assert_array_equal(values, MAGNITUDE[name](SMALL, float64(np.asarray(other))))
    assert refused(getattr(nl, name), SMALL, other, chip="trn2").rule == "NK606"


@pytest.mark.parametrize("kind", ["tile", "number", "vector"])
@pytest.mark.parametrize("dtype", [nl.int32, nl.uint8, nl.int16, nl.uint32], ids=str)
def test_bitwise_functions_and_shifts(dtype: Any, kind: str) -> None:
    """Integers of any width, to the bit."""
    x = words((32, 10), dtype, 1)
    y: Any = {"tile": words((32, 10), dtype, 2), "vector": words((32, 1), dtype, 2), "number": 5}[kind]
    for name, oracle in BITWISE.items():
        values, result, _ = computed(getattr(nl, name), x, y)
        np.testing.assert_array_equal(values, oracle(x, np.asarray(y, dtype.dtype)))
        assert result == dtype
    unsigned = np.dtype(f"u{dtype.itemsize}")
    np.testing.assert_array_equal(computed(nl.left_shift, x, 2)[0].view(unsigned), x.view(unsigned) << 2)
    np.testing.assert_array_equal(computed(nl.right_shift, x, 2)[0].view(unsigned), x.view(unsigned) >> 2)
    np.testing.assert_array_equal(computed(nl.invert, x)[0], ~x)


def test_power() -> None:
    """On tiles, with a number, and of a number."""
    x = np.array([[1, 2, 3, 0.5]], np.float32)
    np.testing.assert_array_equal(computed(nl.power, x, 2)[0], x * x)
    np.testing.assert_array_equal(computed(nl.power, 2, x)[0], np.exp2(float64(x)).astype(np.float32))
    np.testing.assert_array_equal(computed(nl.power, x, x)[0], (float64(x) ** float64(x)).astype(np.float32))


def test_words_are_added_exactly() -> None:
    """int32 tiles go to the GpSimd Engine, also where one of them is broadcast."""
    x, y = words((16, 6), nl.int32, 1), words((16, 1), nl.int32, 2)
    with np.errstate(over="ignore"):
        expected = x + y
    np.testing.assert_array_equal(computed(nl.add, x, y)[0], expected)


PROMOTED = [
    (nl.float32, nl.bfloat16, nl.float32),
    (nl.float32, nl.tfloat32, nl.float32),
    (nl.float16, nl.bfloat16, nl.float32),
    (nl.float8_e4m3, nl.float16, nl.float16),
    (nl.float8_e4m3, nl.bfloat16, nl.bfloat16),
    (nl.float8_e4m3, nl.float8_e5m2, nl.bfloat16),
    (nl.int32, nl.float16, nl.float16),
    (nl.uint16, nl.tfloat32, nl.tfloat32),
    (nl.int16, nl.int32, nl.int32),
    (nl.uint8, nl.uint16, nl.uint16),
    (nl.uint16, nl.int32, nl.int32),
    (nl.int8, nl.uint8, nl.int16),
    (nl.int8, nl.uint16, nl.int32),
    (nl.int32, nl.uint32, nl.float32),
    (nl.bfloat16, nl.bfloat16, nl.bfloat16),
]


@pytest.mark.parametrize(("first", "second", "result"), PROMOTED, ids=str)
def test_different_dtypes_promote(first: Any, second: Any, result: Any) -> None:
    """The examples of the type promotion rules, in both orders; a dtype asked for wins."""
    x, y = (tile(sample((8, 4), dtype, seed, 0, 9), dtype=dtype) for seed, dtype in enumerate((first, second)))
    for sides in ((x, y), (y, x)):
        values, dtype, _ = computed(nl.add, *sides)
        assert dtype is result
        np.testing.assert_array_equal(values, held(float64(x.values) + float64(y.values), result))
    values, dtype, _ = computed(nl.multiply, x, y, dtype=nl.float32)
    assert dtype is nl.float32
    np.testing.assert_array_equal(values, (float64(x.values) * float64(y.values)).astype(np.float32))


def test_packed_elements_and_others_have_no_common_dtype() -> None:
    """NK301, on both sides."""
    words, packed = tile(np.zeros((4, 4), np.uint32)), empty((4, 4), nl.float8_e4m3fn_x4)
    for sides in ((packed, words), (words, packed)):
        with pytest.raises(nkitools.KernelError) as raised:
            computed(nl.bitwise_and, *sides)
        assert raised.value.finding.rule == "NK301"
        assert "packed elements" in raised.value.finding.message


@pytest.mark.parametrize("number", [2, 2.5, np.int64(2), np.float64(2.5), True])
def test_a_number_does_not_change_the_dtype(number: Any) -> None:
    """The result has the tile's dtype, on whichever side the number stands."""
    x = sample((4, 4), nl.bfloat16)
    for sides in ((x, number), (number, x)):
        values, dtype, _ = computed(nl.multiply, *sides)
        assert dtype is nl.bfloat16
        np.testing.assert_array_equal(values, held(float64(x) * float(number), nl.bfloat16))


@given(
    st.lists(st.tuples(st.integers(1, 4), st.booleans(), st.booleans()), min_size=1, max_size=4), st.integers(1, 128)
)
def test_free_dimensions_broadcast_as_numpys(dims: list[tuple[int, bool, bool]], partitions: int) -> None:
    """Any dimension but the first may be 1 on either side."""
    x = sample((partitions, *[1 if one else size for size, one, _ in dims]), seed=1)
    y = sample((partitions, *[1 if one else size for size, _, one in dims]), seed=2)
    np.testing.assert_array_equal(computed(nl.subtract, x, y)[0], x - y)


@pytest.mark.parametrize("memory", ["sbuf", "psum"])
def test_the_result_is_in_sbuf_also_of_psum(memory: str) -> None:
    """One operand may be in PSUM."""
    x = sample((16, 4))
    values, _, where = computed(nl.add, tile(x, "psum"), tile(x, "sbuf"))
    np.testing.assert_array_equal(values, x + x)
    assert where == nl.sbuf
    assert computed(nl.exp, tile(x, memory))[2] == nl.sbuf


X = np.ones((32, 8), np.float32)


@pytest.mark.parametrize(
    ("rule", "operands"),
    [
        ("NK102", (X, X[:16])),
        ("NK111", (X, X[:1])),
        ("NK111", (X[:1], X)),
        ("NK109", (X, X[:, :3])),
        ("NK109", (X, X[:, :, None])),
        ("NK201", (X, tile(X, "hbm"))),
        ("NK201", (tile(X, "psum"), tile(X, "psum"))),
        ("NK609", (1.0, 2.0)),
        ("NK609", (X, "2")),
        ("NK609", (None, X)),
        ("NK101", (np.ones((129, 2), np.float32), 1.0)),
    ],
)
def test_what_a_function_of_two_refuses(rule: str, operands: tuple[Any, ...]) -> None:
    """Partitions that differ, free dimensions that do not broadcast, other memories, and what is no operand."""
    assert refused(nl.add, *operands).rule == rule


def test_bits_of_floats_and_unknown_dtypes_are_refused() -> None:
    """NK301, with the sentence of the instruction or of the dtype."""
    assert refused(nl.bitwise_and, X, 1).rule == "NK301"
    assert refused(nl.bitwise_and, X.astype(np.int32), 1.5).rule == "NK301"
    assert refused(nl.add, X, 1.0, dtype=np.float64).rule == "NK301"


# --- one operand -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", [nl.float32, nl.bfloat16], ids=str)
def test_a_function_of_one_gives_the_tiles_dtype(name: str, dtype: Any) -> None:
    """Computed in float32, to a few units, rounded once."""
    x = sample((128, 20), dtype, 1, 0.25, 3)
    x[:, ::5] = 0 if name in ("relu", "sign", "logical_not", "abs", "negative") else 1
    reference = UNARY[name](float64(x))
    values, kind, memory = computed(getattr(nl, name), tile(x, dtype=dtype))
    assert (kind, memory) == (dtype, nl.sbuf)
    if dtype is nl.float32:
        np.testing.assert_array_max_ulp(values, reference.astype(np.float32), 4)
    else:
        np.testing.assert_allclose(float64(values), reference, rtol=2**-8)


@pytest.mark.parametrize("name", ["exp", "abs", "reciprocal", "negative", "relu"])
def test_a_function_of_one_casts_once_where_a_dtype_is_given(name: str) -> None:
    """To the nearest value of that dtype."""
    x = sample((16, 12), seed=1, low=0.5, high=4)
    values, dtype, _ = computed(getattr(nl, name), x, dtype=nl.int8)
    assert dtype is nl.int8
    np.testing.assert_array_equal(values, held(UNARY[name](float64(x)), nl.int8))


@pytest.mark.parametrize("name", ["exp", "abs", "reciprocal", "invert", "negative", "logical_not"])
def test_what_a_function_of_one_refuses(name: str) -> None:
    """Numbers, arrays, and tensors in HBM."""
    function = getattr(nl, name)
    integers = np.ones((4, 4), np.int32)
    assert refused(function, tile(integers, "hbm")).rule == "NK201"
    assert refused(function, 1).rule == "NK609"
    with pytest.raises(nkitools.KernelError) as caught:
        inside(lambda: function(integers))
    assert caught.value.finding.rule == "NK609"


@pytest.mark.parametrize(
    ("name", "value", "inexact"),
    [
        ("abs", -16777217, 16777216),
        ("negative", 16777217, -16777216),
        ("relu", 16777217, 16777216),
        ("square", 4097, 16785408),
    ],
)
def test_integers_that_float32_does_not_hold_are_reported(name: str, value: int, inexact: int) -> None:
    """The result is what float32 makes of it, and NK307 says so."""
    found: list[Any] = []

    def kernel() -> None:
        found.append(getattr(nl, name)(placed(tile(np.array([[value]], np.int32)))).array.item())

    run = nkitools.simulate(kernel)
    assert (found, [finding.rule for finding in run.findings]) == ([inexact], ["NK307"])
