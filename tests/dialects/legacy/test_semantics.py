"""What AWS's documents say of the dialect as a whole, each against NumPy."""

from __future__ import annotations

from typing import Any

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
from tests.dialects.legacy.errors import run
from tests.dialects.legacy.running import outputs, random, refusal

X = random(128, 64)


# --- indices and masks -----------------------------------------------------------------------------------------------


@given(st.data())
def test_affine_indices_up_to_five_dimensions(data: st.DataObject) -> None:
    """Free axes of a tile may be spread over the free dimensions of a tensor, with factors and offsets, as in NumPy."""
    ndim = data.draw(st.integers(2, 5))
    sizes = [data.draw(st.integers(1, 6))] + [data.draw(st.integers(1, 3)) for _ in range(ndim - 1)]
    grid = np.mgrid[tuple(slice(size) for size in sizes)]
    factors = [data.draw(st.integers(1, 3)) for _ in range(ndim - 1)]
    start = data.draw(st.integers(0, 4))
    columns = start + sum(factor * axis for factor, axis in zip(factors, grid[1:], strict=True))
    x = random(8, int(columns.max()) + 1)

    def kernel(x: Any) -> Any:
        out = nl.ndarray(tuple(sizes), dtype=x.dtype, buffer=nl.shared_hbm)
        i_p, *free = nl.mgrid[tuple(slice(0, size) for size in sizes)]
        index = start + sum((factor * axis for factor, axis in zip(factors, free, strict=True)), 0)
        tile = nl.load(x)
        nl.store(out, nl.copy(tile[i_p, index]))
        return out

    np.testing.assert_array_equal(outputs(kernel, x), x[grid[0], columns])


@given(st.integers(1, 200), st.integers(1, 100), st.integers(1, 4))
def test_masks_cut_the_last_tiles(rows: int, columns: int, factor: int) -> None:
    """Tiles of 64 x 32 over a tensor of any size, computed without a mask in between, as AWS's examples do."""
    x = random(rows, columns)

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        for i in nl.affine_range(-(-rows // 64)):
            for j in nl.affine_range(-(-columns // 32)):
                i_p, i_f = nl.mgrid[0:64, 0:32]
                inside = (i * 64 + i_p < rows) & (j * 32 + i_f < columns)
                tile = nl.load(x[i * 64 + i_p, j * 32 + i_f], mask=inside)
                nl.store(out[i * 64 + i_p, j * 32 + i_f], value=nl.multiply(tile, float(factor)), mask=inside)
        return out

    np.testing.assert_array_equal(outputs(kernel, x), x * np.float32(factor))


def test_undefined_lanes_travel_until_they_are_used() -> None:
    """They may be computed with; storing, reducing or contracting them is NK405, at that line."""

    def stored(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.mgrid[0:128, 0:64]
        tile = nl.exp(nl.load(x[i_p, i_f], mask=i_f < 40))
        nl.store(out, tile)
        return out

    def reduced(x: Any) -> Any:
        out = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.mgrid[0:128, 0:64]
        tile = nl.exp(nl.load(x[i_p, i_f], mask=i_f < 40))
        nl.store(out, nl.sum(tile, axis=1))
        return out

    def contracted(x: Any) -> Any:
        out = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.mgrid[0:128, 0:64]
        tile = nl.load(x[i_p, i_f], mask=i_p < 40)
        nl.store(out, nl.matmul(tile, tile, transpose_x=True))
        return out

    for kernel in (stored, reduced, contracted):
        found = refusal(kernel, X)
        assert (found.rule, found.line) == ("NK405", kernel.__code__.co_firstlineno + 4)

    def kept_apart(x: Any) -> Any:
        out = nl.ndarray((40, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.mgrid[0:128, 0:64]
        tile = nl.load(x[i_p, i_f], mask=i_f < 40)
        product = nl.matmul(tile, nl.load(x), transpose_x=True)
        nl.store(out, nl.copy(product)[0:40, :])
        return out

    np.testing.assert_allclose(outputs(kept_apart, X), X[:, :40].T @ X, rtol=1e-5, atol=1e-4)


def test_undefined_columns_of_a_product_may_be_added_up() -> None:
    """AWS's fused RMSNorm kernel loads 384 of 512 columns of its weights and multiplies all of them."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((64, 40), dtype=x.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.mgrid[0:128, 0:64]
        tile = nl.load(x)
        part = nl.load(x[i_p, i_f], mask=i_f < 40)
        total = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.psum)
        for _ in nl.affine_range(3):
            total += nisa.nc_matmul(tile, part)
        i_p, i_f = nl.mgrid[0:64, 0:64]
        nl.store(out[i_p, i_f], nl.copy(total), mask=i_f < 40)
        return out

    np.testing.assert_allclose(outputs(kernel, X), 3 * (X.T @ X[:, :40]), rtol=1e-5, atol=1e-4)


def test_updates_under_a_mask_leave_the_other_lanes() -> None:
    """`+=` of a masked call adds where the mask is true; a call that was skipped adds nothing."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.mgrid[0:128, 0:64]
        tile = nl.load(x)
        tile += nl.multiply(tile, 2.0, mask=i_f < 16)
        tile += nl.multiply(tile, 2.0, mask=i_p + i_f < 10)
        tile *= nl.add(tile, 5.0, mask=i_p + 1000 < 10)
        nl.store(out, tile)
        return out

    expected = X.copy()
    expected[:, :16] *= 3
    expected = np.where(np.add.outer(np.arange(128), np.arange(64)) < 10, 3 * expected, expected)
    np.testing.assert_allclose(outputs(kernel, X), expected, rtol=1e-6)


# --- shapes ----------------------------------------------------------------------------------------------------------


def test_one_dimension_in_hbm_is_a_column_on_chip() -> None:
    """A load, a DMA and a store each take (n,) for (n, 1); on chip a tile has two dimensions."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray((64, 1), dtype=x.dtype)
        tile[...] = nl.load(x[0:64])
        nl.store(out[0:64], tile)
        column = nl.ndarray((64, 1), dtype=x.dtype)
        nisa.dma_copy(dst=column, src=x[64:128])
        nl.store(out[64:128], column * 2.0)
        return out

    x = random(128)
    np.testing.assert_array_equal(outputs(kernel, x), np.concatenate([x[:64], 2 * x[64:]]))
    assert refusal(lambda x: nl.zeros((128,), dtype=nl.float32), x).rule == "NK110"


def test_block_dimensions_warn_and_in_strict_runs_end_them() -> None:
    """Deprecated since SDK 2.23 (a warning), "not supported" on the error page (an error)."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((2, 64, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        tiles = nl.ndarray((2, nl.par_dim(64), 64), dtype=x.dtype)
        for i in nl.affine_range(2):
            tiles[i] = nl.load(x[nl.ds(64 * i, 64), :])
            tiles[i] = nl.exp(tiles[i])
            nl.store(out[i], value=tiles[i])
        return out

    done = run(kernel, (X,))
    assert [each.rule for each in done.findings] == ["NK612"]
    np.testing.assert_allclose(done.outputs.reshape(128, 64), np.exp(X), rtol=1e-5)
    with pytest.raises(nkitools.KernelError, match="NK612"):
        run(kernel, (X,), "strict")


def test_operators_do_not_broadcast_partitions_and_functions_do() -> None:
    """nl.add takes a row for all partitions, `+` does not (known issues)."""

    def added(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.add(nl.load(x), nl.load(x[0:1, :])))
        return out

    np.testing.assert_array_equal(outputs(added, X), X + X[:1])
    assert refusal(lambda x: nl.load(x) + nl.load(x[0:1, :]), X).rule == "NK111"


# --- numbers ---------------------------------------------------------------------------------------------------------

PROMOTIONS = [
    (nl.float16, nl.bfloat16, nl.float32),
    (nl.float8_e4m3, nl.float8_e5m2, nl.bfloat16),
    (nl.int32, nl.float16, nl.float16),
    (nl.int8, nl.uint8, nl.int16),
    (nl.int32, nl.uint32, nl.float32),
    (nl.bfloat16, nl.bfloat16, nl.bfloat16),
]


@pytest.mark.parametrize(("first", "second", "result"), PROMOTIONS)
def test_two_dtypes_make_the_one_that_the_table_says(first: Any, second: Any, result: Any) -> None:
    """In either order (NKI API Common Fields, Data Type Promotion)."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
        a, b = nl.zeros((128, 64), dtype=first), nl.zeros((128, 64), dtype=second)
        assert nl.add(a, b).dtype == nl.add(b, a).dtype == result
        nl.store(out, nl.load(x))
        return out

    np.testing.assert_array_equal(outputs(kernel, X), X)


@pytest.mark.parametrize(
    ("dtype", "number", "result"),
    [
        (nl.float16, 1.2, nl.float32),
        (nl.int8, 2, nl.int32),
        (nl.uint8, True, nl.uint8),
        (nl.bfloat16, 2, nl.bfloat16),
        (nl.float32, 2, nl.float32),
    ],
)
def test_python_numbers_have_dtypes_of_their_own(dtype: Any, number: Any, result: Any) -> None:
    """bool is uint8, int is int32 and float is float32, then the table decides."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
        tile = nl.zeros((128, 64), dtype=dtype)
        assert nl.add(tile, number).dtype == result
        nl.store(out, nl.load(x))
        return out

    np.testing.assert_array_equal(outputs(kernel, X), X)


# --- places, programs and results ------------------------------------------------------------------------------------


def test_where_results_lie() -> None:
    """Loads and element-wise results in SBUF, products in PSUM as float32; PSUM can be stored since SDK 2.26."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.shared_hbm)
        tile = nl.load(x)
        product = nisa.nc_matmul(tile, tile)
        places = (
            tile,
            nl.exp(tile),
            product,
            nl.copy(product),
            nisa.tensor_copy(product),
            nl.matmul(tile, tile[...], transpose_x=True),
        )
        assert [str(each.buffer.value) for each in places] == ["sbuf", "sbuf", "psum", "sbuf", "sbuf", "psum"]
        assert product.dtype == nl.float32
        nl.store(out, product)
        return out

    x = random(128, 64, dtype=np.float16)
    expected = x.astype(np.float32).T @ x.astype(np.float32)
    np.testing.assert_allclose(outputs(kernel, x), expected, rtol=1e-5, atol=1e-4)


def test_assigning_writes_where_the_tile_is_and_a_name_is_only_a_name() -> None:
    """`x[...] =` changes the tile that others hold; `x =` does not."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((2, *x.shape), dtype=x.dtype, buffer=nl.shared_hbm)
        first = nl.load(x)
        same = first
        first[...] = first + 1.0
        first = first + 1.0
        nl.store(out[0], first)
        nl.store(out[1], same)
        return out

    np.testing.assert_allclose(outputs(kernel, X), np.stack([X + 2, X + 1]), rtol=1e-6)


@pytest.mark.parametrize(
    ("grid", "sizes"),
    [
        ((4,), (4,)),
        ((2, 3, 2), (2, 3, 2)),
        ((nl.spmd_dim(nl.nc(2), 2), 2), (4, 2)),
        ((2 * nl.nc(2), 1), (4, 1)),
        ((nl.nc(2) * 2,), (4,)),
    ],
)
def test_grids_of_any_rank(grid: Any, sizes: Any) -> None:
    """Every program runs once, and knows its place, and the sizes of the grid."""

    @nki.jit
    def kernel(x: Any) -> Any:
        out = nl.ndarray((int(np.prod(sizes)), 8, 8), dtype=x.dtype, buffer=nl.shared_hbm)
        assert nl.program_ndim() == len(sizes)
        assert nl.num_programs() == np.prod(sizes)
        assert tuple(nl.num_programs(axis) for axis in range(len(sizes))) == tuple(sizes)
        number = 0
        for axis, size in enumerate(sizes):
            number = number * size + nl.program_id(axis)
        nl.store(out[number], nl.load(x) * float(number))
        return out

    done = run(kernel[grid], (random(8, 8),))
    assert done.findings == []
    expected = np.arange(np.prod(sizes), dtype=np.float32)[:, None, None] * random(8, 8)
    np.testing.assert_allclose(done.outputs, expected, rtol=1e-6)


def test_results_are_returned_in_their_form() -> None:
    """Several results are a tuple, and a reshaped result has its new shape."""

    def kernel(x: Any, y: nt.mutable_tensor) -> Any:
        column = nl.ndarray((128,), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(column, nl.max(nl.load(x), axis=1))
        nl.store(y, nl.load(y) + 1.0)
        return column.reshape((128, 1)), y

    y = random(16, 4, seed=1)
    before = y.copy()
    column, returned = nkitools.simulate(nki.jit(kernel), X, y).outputs
    np.testing.assert_array_equal(column, X.max(axis=1, keepdims=True))
    np.testing.assert_array_equal(returned, before + 1)
    assert returned is y


def test_constants_lie_in_hbm_and_are_loaded() -> None:
    """shared_constant and shared_identity_matrix."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((64, 128), dtype=x.dtype, buffer=nl.shared_hbm)
        identity = nl.shared_identity_matrix(128, dtype=x.dtype)
        numbers = nl.shared_constant(np.arange(64, dtype=np.int32).reshape(64, 1), dtype=x.dtype)
        assert identity.buffer is numbers.buffer is nl.private_hbm
        swapped = nisa.nc_matmul(nl.load(x), nl.load(identity))
        nl.store(out, nl.copy(swapped) + nl.load(numbers))
        return out

    np.testing.assert_allclose(outputs(kernel, X), X.T + np.arange(64)[:, None], rtol=1e-5, atol=1e-5)


def test_two_scatters_leave_what_the_data_leaves() -> None:
    """Of an output that an indirect store writes, the rows that are not named are not judged (AWS's own examples)."""

    def kernel(x: Any, rows: Any) -> Any:
        out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        i_f = nl.arange(64)[None, :]
        nl.store(out[nl.load(rows), i_f], value=nl.load(x[0:64, :]))
        return out

    rows = np.arange(0, 128, 2, dtype=np.int32).reshape(64, 1)
    done = run(kernel, (X, rows))
    assert done.findings == []
    np.testing.assert_array_equal(done.outputs[::2], X[:64])


def test_what_a_call_left_in_psum_is_multiplied_all_the_same() -> None:
    """The compiler copies the result of nisa.nc_transpose to SBUF; a tile declared in PSUM is refused (NK201)."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.shared_hbm)
        swapped = nisa.nc_transpose(nl.load(x))
        nl.store(out, nisa.nc_matmul(swapped, swapped))
        return out

    np.testing.assert_allclose(outputs(kernel, X), X @ X.T, rtol=1e-5, atol=1e-4)

    def declared(x: Any) -> Any:
        swapped = nl.ndarray((64, 128), dtype=x.dtype, buffer=nl.psum)
        swapped[...] = nisa.nc_transpose(nl.load(x))
        nisa.nc_matmul(swapped, swapped)

    assert refusal(declared, X).rule == "NK201"
