"""Values as JSON: every bit comes back, and what does not fit is refused."""

from __future__ import annotations

import dataclasses
import json
import math
import zlib
from base64 import b64decode, b64encode
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nkitools.chip.dtypes import DTYPES
from nkitools.record.saved.decoding import Reader
from nkitools.record.saved.encoding import Described, Writer, leaves

KINDS = [*{each.dtype for each in DTYPES.values()}, *map(np.dtype, ("float64", "int64", "complex64", "?"))]
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5)


def through_json(plain: Any) -> Any:
    return json.loads(json.dumps(plain, allow_nan=False))


def encoded_array(array: Any, *, compress: bool) -> Any:
    """The array as JSON has it, with its bytes inside."""
    return through_json(Writer(compress=compress, inline=True).array(array))


def through_file(array: Any, *, compress: bool) -> Any:
    """The array out of JSON and the bytes beside it, behind those of another one."""
    writer = Writer(compress=compress)
    writer.array(np.arange(3))
    encoded = through_json(writer.array(array))
    assert "data" not in encoded
    return Reader(memoryview(writer.beside)).array(encoded)


def decoded_array(encoded: Any) -> Any:
    return Reader().array(encoded)


def through_value(value: Any, *, compress: bool = False) -> Any:
    """A value out of JSON and the bytes beside it."""
    writer = Writer(compress=compress)
    encoded = through_json(writer.value(value))
    return Reader(memoryview(writer.beside)).value(encoded)


@given(data=st.data(), dtype=st.sampled_from(KINDS), shape=SHAPES, compress=st.booleans())
def test_every_bit_of_an_array_comes_back(data: st.DataObject, dtype: Any, shape: Any, compress: bool) -> None:
    """Of every dtype of the chip, with every NaN, of any shape, compressed or not."""
    nbytes = math.prod(shape) * dtype.itemsize
    content = data.draw(st.binary(min_size=nbytes, max_size=nbytes)) if dtype != np.bool_ else bytes(nbytes)
    array = np.frombuffer(content, dtype).reshape(shape)
    for back in (decoded_array(encoded_array(array, compress=compress)), through_file(array, compress=compress)):
        assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.shape, content)
        back[...] = back  # its memory is its own


@pytest.mark.parametrize("compress", [False, True])
def test_arrays_are_kept_in_c_order_and_little_endian(compress: bool) -> None:
    """Whatever they were in memory: transposed, with gaps, backwards, big-endian, large."""
    numbers = np.arange(120, dtype=">i4").reshape(2, 3, 20)
    noise = np.random.default_rng(0).random((300, 300))
    for array in (numbers, numbers.T, numbers[:, ::-1, ::3], np.zeros((400, 400), np.float32), noise):
        encoded = encoded_array(array, compress=compress)
        np.testing.assert_array_equal(decoded_array(encoded), array)
        np.testing.assert_array_equal(through_file(array, compress=compress), array)
    plain = b64decode(encoded_array(numbers, compress=False)["data"])
    assert plain == numbers.astype("<i4").tobytes()
    assert len(encoded_array(np.zeros((400, 400)), compress=compress)["data"]) < 1e4 or not compress
    assert "packing" not in encoded_array(noise, compress=True), "noise is not worth it"


def test_masked_arrays_keep_their_masks() -> None:
    """And what lies under the mask."""
    array = np.ma.MaskedArray(np.arange(6.0).reshape(2, 3), [[True, False, False], [False, False, True]])
    back = through_file(array, compress=True)
    assert isinstance(back, np.ma.MaskedArray)
    np.testing.assert_array_equal(back.mask, array.mask)
    np.testing.assert_array_equal(back.data, array.data)


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclasses.dataclass
class Config:
    bias: Any
    name: str


class Odd:
    def __repr__(self) -> str:
        return "<odd>"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text() | st.integers() | st.tuples(st.integers(), st.text()), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(value=VALUES)
def test_containers_come_back_as_they_were(value: Any) -> None:
    """Tuples as tuples, keys of any kind, numbers that JSON has no form for, every sign of a text."""
    back = through_value(value, compress=True)
    assert repr(back) == repr(value)  # NaN is not equal to itself, but looks alike


def test_what_has_fields_comes_back_as_a_namespace_and_the_rest_as_text() -> None:
    """Named tuples and dataclasses around arrays; nothing is lost without a word."""
    value = (Pair(np.ones(2), Config(np.zeros(1), "c")), Odd(), np.array(["a"]), np.float32("nan"))
    pair, odd, texts, number = through_value(value, compress=False)
    np.testing.assert_array_equal(pair.left, np.ones(2))
    np.testing.assert_array_equal(pair.right.bias, np.zeros(1))
    assert pair.right.name == "c"
    assert odd == Described(f"{__name__}.Odd", "<odd>")
    assert texts == Described("numpy.ndarray", "array(['a'], dtype='<U1')")
    assert (number.dtype, number.shape, np.isnan(number)) == (np.float32, (), True)


@pytest.mark.frameworks
def test_arrays_of_frameworks_come_back_as_numpys() -> None:
    """bfloat16 and float8 of torch through their bits."""
    jax = pytest.importorskip("jax")
    value = jax.numpy.asarray([1.5, -2.0], "bfloat16")
    back = through_value(value, compress=False)
    assert back.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(back.astype(np.float32), [1.5, -2.0])
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.bfloat16, torch.float8_e5m2, torch.int8):
        tensor = torch.tensor([[1.0, -2.0], [4.0, 8.0]]).to(dtype).T
        back = through_value(tensor, compress=False)
        assert back.dtype.name == str(dtype).removeprefix("torch.")
        np.testing.assert_array_equal(back.astype(np.float32), [[1, 4], [-2, 8]])


def test_leaves_are_named_by_their_places() -> None:
    """Also where the containers have become namespaces."""
    value = (Pair(np.ones(2), 3), {"x": [None]}, Odd())
    names = ["outputs[0].left", "outputs[0].right", "outputs[1]['x'][0]", "outputs[2]"]
    assert [name for name, _ in leaves(value)] == names
    assert [name for name, _ in leaves(through_value(value))] == names


GOOD = encoded_array(np.arange(4, dtype=np.int16), compress=False)
BOMB = b64encode(zlib.compress(bytes(1 << 24))).decode()


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [5]},
        {"shape": [-4]},
        {"shape": [2.0, 2]},
        {"shape": [True, 4]},
        {"shape": [1 << 60]},
        {"dtype": "object"},
        {"dtype": "finfo"},
        {"dtype": "S0"},
        {"dtype": "nothing"},
        {"dtype": {"fields": [["a", "object"]]}},
        {"data": "AAAA*"},
        {"data": GOOD["data"][:-4]},
        {"packing": "lzma"},
        {"packing": "zlib"},
        {"packing": "zlib", "data": BOMB},
    ],
)
def test_an_array_that_does_not_fit_is_refused(change: dict[str, Any]) -> None:
    """Wrong sizes, dtypes that are none or hold objects, bytes that are no base64, more bytes than the shape says."""
    with pytest.raises((ValueError, zlib.error)):
        decoded_array({**GOOD, **change})


def test_objects_and_texts_have_no_bytes() -> None:
    """What could only be pickled is refused."""
    for array in (np.array([object()]), np.array(["text"])):
        with pytest.raises(TypeError, match="has no saved form"):
            Writer(compress=False).array(array)


@pytest.mark.parametrize(
    "change", [{"at": 20}, {"at": -1}, {"at": 1.0}, {"bytes": 7}, {"bytes": None}, {"packing": "zlib"}]
)
def test_bytes_beside_the_json_that_do_not_fit_are_refused(change: dict[str, Any]) -> None:
    """Places behind the end or before the beginning, fewer bytes than the shape says, bytes that are not compressed."""
    writer = Writer(compress=False)
    encoded = writer.array(np.arange(4, dtype=np.int16))
    np.testing.assert_array_equal(Reader(memoryview(writer.beside)).array(encoded), np.arange(4))
    with pytest.raises(ValueError, match=r"has 8 bytes|is no size|cannot be unpacked"):
        Reader(memoryview(writer.beside)).array({**encoded, **change})


@given(ends=st.lists(st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-300, 300), max_size=3))
def test_a_column_of_integers_takes_few_bytes(ends: list[int]) -> None:
    """It comes back as int64; int8 where all of it fits."""
    writer = Writer(compress=False)
    encoded = through_json(writer.columns({"site": np.array(ends, np.int64)}))
    back = Reader(memoryview(writer.beside)).columns(encoded)["site"]
    assert (back.dtype, back.tolist()) == (np.int64, ends)
    assert (encoded["site"]["dtype"] == "int8") == all(-128 <= each < 128 for each in ends)
