"""nl.load, store, copy, transpose and matmul."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
import nkitools.dialects.modern.language as nl
from tests.isa.issued import inside, placed, tile
from tests.isa.oracles import float64, held, sample, small_integers

# --- load, store, copy -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(128, 64), (5, 3), (1, 7), (16, 2, 3), (8, 2, 3, 4)], ids=str)
@pytest.mark.parametrize("dtype", [None, nl.bfloat16, nl.int8], ids=str)
def test_load_and_store(shape: tuple[int, ...], dtype: Any) -> None:
    """A tile of the tensor's shape and dtype (or the one asked for), and back."""
    x = sample(shape, low=-100, high=100)

    def kernel(data: Any) -> Any:
        loaded = nl.load(data, dtype)
        assert (loaded.shape, loaded.dtype, loaded.buffer) == (shape, dtype or nl.float32, nl.sbuf)
        out = nl.ndarray(shape, nl.float32, nl.shared_hbm)
        nl.store(out, loaded)
        return out

    np.testing.assert_array_equal(nkitools.simulate(kernel, x).outputs, float64(held(x, dtype or nl.float32)))


def test_one_dimension_becomes_a_column() -> None:
    """A tensor of shape (N,) is loaded with an element a partition, and stored back."""
    x = sample((100,))

    def kernel(data: Any) -> Any:
        column = nl.load(data)
        assert column.shape == (100, 1)
        out = nl.ndarray((100,), nl.float32, nl.shared_hbm)
        nl.store(out, value=column)
        return out

    np.testing.assert_array_equal(nkitools.simulate(kernel, x).outputs, x)


@pytest.mark.parametrize("shape", [(2048, 128), (16, 16), (3, 5), (1, 7), (9, 1)], ids=str)
@pytest.mark.parametrize(("dtype", "asked"), [(nl.float32, None), (nl.bfloat16, nl.float32), (nl.int8, nl.bfloat16)])
@pytest.mark.parametrize("chip", ["trn1", "trn3"])
def test_load_transpose2d(shape: tuple[int, int], dtype: Any, asked: Any, chip: str) -> None:
    """Rows become columns, of any dtype; another dtype is converted afterwards, on chip."""
    x = sample(shape, dtype, low=-100, high=100)

    def kernel(data: Any) -> Any:
        turned = nl.load_transpose2d(data, dtype=asked)
        assert (turned.shape, turned.dtype, turned.buffer) == (shape[::-1], asked or dtype, nl.sbuf)
        out = nl.ndarray(shape[::-1], turned.dtype, nl.shared_hbm)
        nl.store(out, turned)
        return out

    run = nkitools.simulate(kernel, x, chip=chip)
    np.testing.assert_array_equal(run.outputs, held(float64(x.T), asked or dtype))
    names = [each.name for each in run.instructions]
    assert names == ["dma_transpose", *["tensor_copy"] * (asked is not None), "dma_copy"]


def test_load_transpose2d_of_a_part_and_what_it_refuses() -> None:
    """Slices; not more than 128 columns, nor other numbers of dimensions, nor a tile."""
    x = sample((40, 200))

    def kernel(data: Any) -> Any:
        out = nl.ndarray((100, 8), nl.float32, nl.shared_hbm)
        nl.store(out, nl.load_transpose2d(data[8:16, 1::2]))
        return out

    np.testing.assert_array_equal(nkitools.simulate(kernel, x).outputs, x[8:16, 1::2].T)
    for wrong, rule in (
        (lambda data: nl.load_transpose2d(data), "NK101"),
        (lambda data: nl.load_transpose2d(data.reshape((40, 100, 2))), "NK110"),
        (lambda data: nl.load_transpose2d(data[0]), "NK110"),
        (lambda data: nl.load_transpose2d(nl.load(data)), "NK201"),
    ):
        with pytest.raises(nkitools.KernelError) as caught:
            nkitools.simulate(wrong, x)
        assert caught.value.finding.rule == rule


def test_slices_are_loaded_and_stored() -> None:
    """Of HBM, with steps, single rows and broadcast rows."""
    x = sample((8, 12))

    def kernel(data: Any) -> Any:
        out = nl.ndarray((8, 12), nl.float32, nl.shared_hbm)
        nl.store(out[0:4, :], nl.load(data[4:8, :]))
        nl.store(out[4:6, ::2], nl.load(data[0:2, 1::2]))
        nl.store(out[4:6, 1::2], nl.load(data[0:2, ::2]))
        nl.store(out[6:8, :], nl.load(data[3:4, :].broadcast(0, 2)))
        return out

    swapped = x[0:2].reshape(2, 6, 2)[:, :, ::-1].reshape(2, 12)
    expected = np.concatenate([x[4:8], swapped, x[3:4], x[3:4]])
    np.testing.assert_array_equal(nkitools.simulate(kernel, x).outputs, expected)


@pytest.mark.parametrize("memory", ["sbuf", "psum"])
@pytest.mark.parametrize("dtype", [None, nl.bfloat16, nl.uint8], ids=str)
def test_copy(memory: str, dtype: Any) -> None:
    """A new tile in SBUF, which the original no longer touches."""
    x = sample((32, 6), low=0, high=9)

    def body() -> np.ndarray:
        original = placed(tile(x, memory))
        copied = nl.copy(original, dtype)
        assert (copied.buffer, copied.dtype) == (nl.sbuf, dtype or nl.float32)
        original.array[...] = 0
        return np.array(copied.array)

    np.testing.assert_array_equal(inside(body), held(x, dtype or nl.float32))


@pytest.mark.parametrize(
    ("rule", "call"),
    [
        ("NK201", lambda sbuf, hbm: nl.load(sbuf)),
        ("NK201", lambda sbuf, hbm: nl.store(sbuf, sbuf)),
        ("NK201", lambda sbuf, hbm: nl.store(hbm, placed(tile(np.ones((8, 4), np.float32), "psum")))),
        ("NK201", lambda sbuf, hbm: nl.copy(hbm)),
        ("NK109", lambda sbuf, hbm: nl.store(hbm, sbuf[:, 0:2])),
        ("NK301", lambda sbuf, hbm: nl.load(hbm, np.int64)),
        ("NK609", lambda sbuf, hbm: nl.load(np.ones(3))),
        ("NK609", lambda sbuf, hbm: nl.store(hbm, 1.0)),
        ("NK609", lambda sbuf, hbm: nl.store(None, sbuf)),
        ("NK609", lambda sbuf, hbm: nl.copy(2)),
    ],
)
def test_what_is_refused(rule: str, call: Any) -> None:
    """Memories that a transfer does not join, sizes that differ, and what is no tensor."""

    def body() -> None:
        call(placed(tile(np.ones((8, 4), np.float32))), placed(tile(np.ones((8, 4), np.float32), "hbm")))

    with pytest.raises(nkitools.KernelError) as caught:
        inside(body)
    assert caught.value.finding.rule == rule


def test_loading_256_rows_names_the_tensor_and_goes_on_under_report() -> None:
    """One finding at the load, although the tile is used again."""
    x = sample((256, 4))

    def kernel(rows: Any) -> Any:
        loaded = nl.load(rows)
        out = nl.ndarray(rows.shape, rows.dtype, nl.shared_hbm)
        nl.store(out, nl.add(loaded, 1.0))
        return out

    run = nkitools.simulate(kernel, x, rules="report")
    np.testing.assert_array_equal(run.outputs, x + 1)
    assert [finding.rule for finding in run.findings] == ["NK101"]
    assert "`rows`" in run.findings[0].message
    assert "256 partitions" in run.findings[0].message


# --- transpose and matmul --------------------------------------------------------------------------------------------


@given(st.integers(1, 128), st.integers(1, 128), st.sampled_from([nl.float32, nl.bfloat16, nl.int32]))
def test_transpose(partitions: int, free: int, dtype: Any) -> None:
    """In PSUM, of the tile's dtype."""
    x = sample((partitions, free), dtype, low=-50, high=50)

    def body() -> Any:
        turned = nl.transpose(placed(tile(x)))
        return np.array(turned.array), turned.dtype, turned.buffer

    values, kind, memory = inside(body)
    np.testing.assert_array_equal(values, x.T)
    assert (kind, memory) == (dtype, nl.psum)


def test_transpose_with_a_dtype() -> None:
    """Cast after the transposition."""
    x = sample((20, 8), low=-50, high=50)

    def body() -> Any:
        turned = nl.transpose(placed(tile(x)), dtype=nl.bfloat16)
        return np.array(turned.array), turned.dtype

    values, kind = inside(body)
    np.testing.assert_array_equal(values, held(x.T, nl.bfloat16))
    assert kind is nl.bfloat16


@given(st.integers(1, 128), st.integers(1, 128), st.integers(1, 512), st.booleans(), st.booleans())
def test_matmul(m: int, k: int, n: int, transpose_x: bool, half: bool) -> None:
    """``x @ y``, or ``x.T @ y``, as float32 in PSUM: exact for small integers."""
    dtype = nl.bfloat16 if half else nl.float32
    x, y = small_integers((k, m) if transpose_x else (m, k), 1), small_integers((k, n), 2)

    def body() -> Any:
        result = nl.matmul(placed(tile(held(x, dtype))), placed(tile(held(y, dtype))), transpose_x)
        return np.array(result.array), result.dtype, result.buffer

    values, kind, memory = inside(body)
    np.testing.assert_array_equal(values, (x.T if transpose_x else x) @ y)
    assert (kind, memory) == (nl.float32, nl.psum)


@pytest.mark.parametrize(
    ("rule", "shapes", "keywords"),
    [
        ("NK102", ((8, 4), (5, 3)), {}),
        ("NK102", ((8, 4), (9, 3)), {"transpose_x": True}),
        ("NK107", ((8, 129), (129, 3)), {}),
        ("NK104", ((8, 129), (8, 3)), {"transpose_x": True}),
        ("NK105", ((8, 4), (4, 513)), {}),
        ("NK110", ((8, 2, 2), (4, 3)), {}),
        ("NK110", ((8, 4), (4, 3, 1)), {}),
    ],
)
def test_sizes_that_do_not_multiply(rule: str, shapes: Any, keywords: Any) -> None:
    """Contractions that differ, and tiles too large for the array or for a bank."""

    def body() -> None:
        nl.matmul(
            placed(tile(np.ones(shapes[0], np.float32))), placed(tile(np.ones(shapes[1], np.float32))), **keywords
        )

    with pytest.raises(nkitools.KernelError) as caught:
        inside(body)
    assert caught.value.finding.rule == rule


def test_only_tiles_are_multiplied_and_transposed() -> None:
    """NK609 for everything else; NK302 for widths that do not go together; NK301 for integers."""
    f32, bf16, i8 = (tile(np.ones((8, 8), dtype.dtype)) for dtype in (nl.float32, nl.bfloat16, nl.int8))
    for rule, call in (
        ("NK609", lambda: nl.matmul(placed(f32), 1.0)),
        ("NK609", lambda: nl.transpose(np.ones((8, 8)))),
        ("NK302", lambda: nl.matmul(placed(f32), placed(bf16))),
        ("NK301", lambda: nl.matmul(placed(i8), placed(i8), True)),
    ):
        with pytest.raises(nkitools.KernelError) as caught:
            inside(call)
        assert caught.value.finding.rule == rule
