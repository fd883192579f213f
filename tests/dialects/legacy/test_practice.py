"""Forms beyond the documents that public kernels use: computed, with NK621 where the documents exclude them."""

from __future__ import annotations

from typing import Any

import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
import pytest

from tests.dialects.legacy.running import outputs, random, refusal, run, stored


def hinted(function: Any, *arrays: Any, rule: str = "NK621", **options: Any) -> Any:
    """Return the results of ``function`` after a run whose findings are hints of one rule, at least one."""
    done = run(function, *arrays, **options)
    assert {(each.rule, each.severity) for each in done.findings} == {(rule, "hint")}
    assert all(each.remedy for each in done.findings)
    return done.outputs


# --- operands of the Vector Engine -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [nl.bfloat16, nl.float16])
@pytest.mark.parametrize("wide", [True, False])
def test_a_narrow_float_vector_is_cast_to_float32(dtype: Any, wide: bool) -> None:
    """tensor_scalar computes in float32; a vector of integers beside floats stays NK301."""
    tile, column = random(128, 7), random(128, 1, seed=1).astype(np.dtype(dtype))
    tile = tile if wide else tile.astype(np.dtype(dtype))
    by = stored(lambda a, b: nisa.tensor_scalar(a, nl.subtract, b, op1=nl.multiply, operand1=-3.0))
    expected = (tile.astype(np.float32) - column.astype(np.float32)) * np.float32(-3)
    np.testing.assert_array_equal(hinted(by, tile, column), expected.astype(tile.dtype))
    assert refusal(by, tile, np.ones((128, 1), np.int32)).rule == "NK301"


def test_a_column_is_broadcast_beside_a_tile_of_more_dimensions() -> None:
    """A bias (128, 1) is added to an image (128, 30, 14), on either side and under a mask."""
    image, bias = random(128, 6, 5), random(128, 1, seed=1)
    wide = bias[:, :, None]
    add = stored(lambda a, b: nisa.tensor_tensor(a, b, op=nl.add))
    np.testing.assert_array_equal(outputs(add, image, bias), image + wide)
    subtract = stored(lambda a, b: nisa.tensor_tensor(b, a, op=nl.subtract))
    np.testing.assert_array_equal(outputs(subtract, image, bias), wide - image)

    def masked(a: Any, b: Any) -> Any:
        tile = nl.load(a)
        rows = nl.arange(128)[:, None, None]
        tile[...] = nisa.tensor_tensor(nl.load(a), nl.load(b), op=nl.multiply, mask=rows < 100)
        result = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
        nl.store(result, tile)
        return result

    expected = image.copy()
    expected[:100] *= wide[:100]
    np.testing.assert_array_equal(hinted(masked, image, bias, rule="NK623"), expected)


def test_two_operands_in_psum() -> None:
    """nisa.tensor_tensor of two products computes their sum with a hint; nl.add, of which no page says it, without."""
    x, y = random(16, 8), random(16, 8, seed=1)

    def products(first: Any, second: Any) -> tuple[Any, Any]:
        return nisa.nc_matmul(first, second), nisa.nc_matmul(second, first)

    expected = x.T @ y + y.T @ x
    by_isa = hinted(stored(lambda a, b: nisa.tensor_tensor(*products(a, b), op=nl.add)), x, y)
    np.testing.assert_allclose(by_isa, expected, rtol=1e-5, atol=1e-5)
    by_nl = outputs(stored(lambda a, b: nl.add(*products(a, b))), x, y)
    np.testing.assert_allclose(by_nl, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize(
    ("shape", "axes"), [((8, 3, 2, 4, 2), (2, 4)), ((8, 2, 4, 2), (1, 3)), ((8, 3, 4), 1), ((8, 3, 2, 4), [1, 2])]
)
def test_reductions_over_free_axes_that_are_not_the_last(shape: tuple[int, ...], axes: Any, keepdims: bool) -> None:
    """Pooling reduces the inner axes of both directions; nl.max of AWS's own example does so without a hint."""
    x = random(*shape)
    numbers = tuple(axes) if isinstance(axes, (tuple, list)) else axes
    expected = x.max(axis=numbers, keepdims=keepdims)
    by_isa = hinted(stored(lambda t: nisa.tensor_reduce(nl.max, t, axis=axes, keepdims=keepdims)), x)
    np.testing.assert_array_equal(by_isa, expected)
    by_nl = outputs(stored(lambda t: nl.max(t, axis=axes, keepdims=keepdims)), x)
    np.testing.assert_array_equal(by_nl, expected)


def test_dimensions_of_size_one_are_no_part_of_an_access_pattern() -> None:
    """A tile of six dimensions, of which one or two have size 1, is reduced; of six that all vary it is NK110."""
    x = random(8, 56)
    for shape, axes in (((8, 2, 1, 2, 7, 2), (3, 5)), ((8, 2, 1, 1, 7, 4), (1, 5)), ((8, 1, 2, 1, 7, 4), (4, 5))):
        measured = run(stored(lambda t, s=shape, a=axes: nisa.tensor_reduce(nl.add, t.reshape(s), axis=a)), x).outputs
        np.testing.assert_allclose(measured, x.reshape(shape).sum(axis=axes), rtol=1e-5, atol=1e-6)
    mean = outputs(stored(lambda t: nl.mean(t.reshape((8, 2, 1, 2, 7, 2)), axis=(3, 5))), x)
    np.testing.assert_allclose(mean, x.reshape(8, 2, 1, 2, 7, 2).mean(axis=(3, 5)), rtol=1e-5, atol=1e-6)
    six = stored(lambda t: nisa.tensor_reduce(nl.add, t.reshape((8, 2, 2, 2, 2, 2)), axis=5))
    assert refusal(six, random(8, 32)).rule == "NK110"


# --- masks and indices -----------------------------------------------------------------------------------------------


def test_a_mask_may_be_about_the_columns_of_the_moving_tile() -> None:
    """A mask whose columns only sizes can assign masks those of the moving tile; its rows are those of both tiles."""
    x, y = random(16, 8), random(16, 12, seed=1)

    def kernel(a: Any, b: Any) -> Any:
        columns, rows = nl.arange(12)[None, :], nl.arange(16)[:, None]
        product = nisa.nc_matmul(nl.load(a), nl.load(b), mask=(columns < 5) & (rows < 10))
        result = nl.ndarray((8, 12), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(result, 0.0)
        nl.store(result[nl.arange(8)[:, None], columns], nl.copy(product, mask=columns < 5), mask=columns < 5)
        return result

    expected = np.zeros((8, 12), np.float32)
    expected[:, :5] = x[:10].T @ y[:10, :5]
    np.testing.assert_allclose(hinted(kernel, x, y), expected, rtol=1e-5, atol=1e-6)


def test_quotient_and_remainder_by_a_constant_address_a_regular_pattern() -> None:
    """``out[p, f // 3, f % 3]`` is a reshape, ``t[p, f // 2]`` repeats, ``2 - f % 3`` turns around."""
    x = random(8, 12)

    def scattered(last: Any) -> Any:
        def kernel(a: Any) -> Any:
            result = nl.ndarray((8, 4, 3), dtype=nl.float32, buffer=nl.shared_hbm)
            rows, columns = nl.arange(8)[:, None], nl.arange(12)[None, :]
            nl.store(result[rows, columns // 3, last(columns)], nl.load(a))
            return result

        return kernel

    cut = x.reshape(8, 4, 3)
    np.testing.assert_array_equal(hinted(scattered(lambda f: f % 3), x), cut)
    np.testing.assert_array_equal(hinted(scattered(lambda f: 2 - f % 3), x), cut[:, :, ::-1])

    def repeated(compute: Any) -> Any:
        rows, columns = nl.arange(8)[:, None], nl.arange(24)[None, :]
        return stored(lambda t: compute(t[rows, columns // 2]))

    twice = x.repeat(2, axis=1)
    np.testing.assert_array_equal(hinted(repeated(nl.copy), x), twice)
    np.testing.assert_array_equal(hinted(repeated(lambda t: t * 2.0), x), 2 * twice)
    np.testing.assert_allclose(hinted(repeated(lambda t: nl.sum(t, axis=1)), x), twice.sum(1, keepdims=True), rtol=1e-5)


def test_divided_indices_take_masks_and_have_bounds() -> None:
    """A box of the mask is stored; what leaves the tensor is NK402, and in a mask a quotient stays NK604."""
    x = random(8, 12)
    rows, columns = (lambda: nl.arange(8)[:, None]), (lambda: nl.arange(12)[None, :])

    def masked(a: Any) -> Any:
        result = nl.ndarray((8, 4, 3), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(result, 0.0)
        nl.store(result[rows(), columns() // 3, columns() % 3], nl.load(a), mask=columns() < 9)
        return result

    expected = np.where(np.arange(4)[:, None] < 3, x.reshape(8, 4, 3), 0)
    np.testing.assert_array_equal(hinted(masked, x), expected)

    beyond = stored(lambda t: nl.copy(t[rows(), columns() // 2 + 7]))
    with pytest.raises(IndexError, match=r"index range \[7, 12\] exceed dimension size of 12"):
        run(beyond, x)
    assert refusal(stored(lambda t: nl.exp(t, mask=columns() // 2 < 3)), x).rule == "NK604"


# --- tensors ---------------------------------------------------------------------------------------------------------


def test_zeros_in_hbm_are_there_before_the_first_program() -> None:
    """A grid writes into zeros that were made once: what no program writes is 0, what another one wrote stays."""
    x = random(16, 4)

    def kernel(a: Any) -> Any:
        result = nl.zeros((24, 4), dtype=nl.float32, buffer=nl.shared_hbm)
        rows = nl.program_id(0) * 8 + nl.arange(8)[:, None]
        nl.store(result[rows, nl.arange(4)[None, :]], nl.load(a[rows, nl.arange(4)[None, :]]))
        return result

    expected = np.concatenate([x, np.zeros((8, 4), np.float32)])
    np.testing.assert_array_equal(hinted(kernel, x, grid=(2,)), expected)


def test_a_tile_may_be_declared_with_one_dimension() -> None:
    """nl.ndarray((8,)) is a column; nl.zeros((8,)), which AWS lists as an error, stays NK110."""
    x = random(8)

    def kernel(a: Any) -> Any:
        tile = nl.ndarray((nl.par_dim(8),), dtype=nl.float32, buffer=nl.sbuf)
        assert tile.shape == (8, 1)
        tile[...] = nl.load(a)
        result = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
        nl.store(result, tile)
        return result

    np.testing.assert_array_equal(hinted(kernel, x), x[:, None])
    assert refusal(lambda a: nl.zeros((8,), dtype=nl.float32), x).rule == "NK110"


# --- grids -----------------------------------------------------------------------------------------------------------


def test_the_sizes_of_a_reshape_may_be_whole_floats() -> None:
    """``h / 2`` of an even height is taken, with a hint; of an odd one it is NK609."""
    x = random(8, 24)

    def pairs(t: Any, height: int) -> Any:
        return nl.max(t.reshape((8, height / 2, 2, 24 // height)), axis=[2])

    measured = hinted(stored(lambda t: pairs(t, 4)), x)
    np.testing.assert_array_equal(measured, x.reshape(8, 2, 2, 6).max(axis=2))
    finding = refusal(stored(lambda t: pairs(t, 3)), x)
    assert finding.rule == "NK609"
    assert "1.5" in finding.message


def test_programs_may_write_equal_values_to_the_same_elements() -> None:
    """NK508, a hint, as in the modern dialect; values that differ are NK502."""
    x = random(8, 4)

    done = run(stored(nl.exp), x, grid=(2,))
    assert [(each.rule, each.severity) for each in done.findings] == [("NK508", "hint")]
    np.testing.assert_allclose(done.outputs, np.exp(x), rtol=1e-6)

    assert refusal(stored(lambda t: nl.multiply(t, nl.program_id(0))), x, grid=(2,)).rule == "NK502"


# --- sequences of different lengths ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_predicate_of_one_element_a_partition_chooses_rows(kind: Any, reverse: bool) -> None:
    """Beside tiles of any number of dimensions, in both instructions, for a tile and for a number, and under a mask."""
    x, y = random(32, 4, 6), random(32, 4, 6, seed=1)
    take = (random(32, 1, seed=2) > 0).astype(kind) * 200
    i_p, _, i_f = nl.mgrid[0:32, 0:4, 0:6]

    def kernel(a: Any, b: Any, chosen: Any) -> tuple[Any, ...]:
        source, predicate = nl.load(a), nl.load(chosen)
        tiles = [nl.load(b) for _ in range(3)]
        nisa.tensor_copy_predicated(src=source, dst=tiles[0], predicate=predicate, reverse_pred=reverse)
        nisa.tensor_copy_predicated(src=7.0, dst=tiles[1], predicate=predicate, reverse_pred=reverse)
        nisa.tensor_copy_predicated(
            src=source, dst=tiles[2], predicate=predicate, reverse_pred=reverse, mask=(i_p < 20) & (i_f < 3)
        )
        results = [nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm) for _ in tiles]
        for result, tile in zip(results, tiles, strict=True):
            nl.store(result, tile)
        return tuple(results)

    chosen = (take == 0 if reverse else take != 0)[:, :, None]
    within = (np.arange(32) < 20)[:, None, None] & (np.arange(6) < 3)
    copied, number, masked = hinted(kernel, x, y, take)
    np.testing.assert_array_equal(copied, np.where(chosen, x, y))
    np.testing.assert_array_equal(number, np.where(chosen, np.float32(7), y))
    np.testing.assert_array_equal(masked, np.where(chosen & within, x, y))


def test_select_reduce_takes_a_predicate_of_one_element_a_partition() -> None:
    """The tile where it is not 0, else the number; and the maximum of both."""
    x, take = random(16, 8), (np.arange(16) % 3 == 0).astype(np.uint8)[:, None]

    def kernel(a: Any, chosen: Any) -> tuple[Any, Any]:
        selected, largest = nl.zeros((16, 8), dtype=a.dtype), nl.zeros((16, 1), dtype=a.dtype)
        nisa.select_reduce(
            dst=selected,
            predicate=nl.load(chosen),
            on_true=nl.load(a),
            on_false=-9.0,
            reduce_res=largest,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )
        results = [nl.ndarray(each.shape, dtype=a.dtype, buffer=nl.shared_hbm) for each in (selected, largest)]
        for result, tile in zip(results, (selected, largest), strict=True):
            nl.store(result, tile)
        return tuple(results)

    expected = np.where(take > 0, x, np.float32(-9))
    selected, largest = hinted(kernel, x, take)
    np.testing.assert_array_equal(selected, expected)
    np.testing.assert_array_equal(largest, expected.max(axis=1, keepdims=True))


@pytest.mark.parametrize("form", [(32, 4), (32, 4, 1), (32, 1, 6)])
def test_a_predicate_counts_for_all_of_the_dimensions_that_it_lacks(form: tuple[int, ...]) -> None:
    """One element for the last dimension, or for one in the middle."""
    x, y = random(32, 4, 6), random(32, 4, 6, seed=1)
    take = (random(*form, seed=2) > 0).astype(np.uint8)

    def kernel(a: Any, b: Any, chosen: Any) -> Any:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        tile = nl.load(b)
        nisa.tensor_copy_predicated(src=nl.load(a), dst=tile, predicate=nl.load(chosen))
        nl.store(out, tile)
        return out

    whole = take.reshape((32, 4, 1) if len(form) == 2 else form) != 0
    np.testing.assert_array_equal(hinted(kernel, x, y, take), np.where(whole, x, y))


def test_predicates_of_other_widths_stay_refused() -> None:
    """Two elements beside eight, and six of the last dimension alone: neither the letter nor a kernel has them."""

    def kernel(a: Any, chosen: Any) -> Any:
        tile = nl.load(a)
        nisa.tensor_copy_predicated(src=tile, dst=tile, predicate=nl.load(chosen))
        return tile

    assert refusal(kernel, random(16, 8), np.ones((16, 2), np.uint8)).rule == "NK109"
    assert refusal(kernel, random(16, 4, 6), np.ones((16, 6), np.uint8)).rule == "NK109"


def test_a_number_of_the_chip_indexes_beside_slices() -> None:
    """As a Python number would: with fewer indices than dimensions, between slices, behind `...`, read and written."""
    table, which = random(16, 5, 3, 4), np.array([[1, 3]], np.int32)

    def kernel(a: Any, numbers: Any) -> tuple[Any, ...]:
        at = nl.load(numbers)
        whole = nl.ndarray((5, 3, 4), dtype=a.dtype, buffer=nl.shared_hbm)
        between = nl.ndarray((16, 4), dtype=a.dtype, buffer=nl.shared_hbm)
        behind = nl.ndarray((16, 5, 3), dtype=a.dtype, buffer=nl.shared_hbm)
        cut = nl.ndarray((7, 5, 2), dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(whole, nl.load(a[at[0, 1]]))
        nl.store(between, nl.load(a[:, at[0, 1], 0, :]))
        nl.store(behind, nl.load(a[..., at[0, 0]]))
        for row in range(7):
            nl.store(cut[row], nl.load(a[row + 2, :, at[0, 0], nl.ds(1, 2)]))
        scattered = nl.zeros((4, 16, 12), dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(scattered[at[0, 1]], nl.load(a[:, at[0, 0]].reshape((16, 12))))
        return whole, between, behind, cut, scattered

    whole, between, behind, cut, scattered = hinted(kernel, table, which)
    np.testing.assert_array_equal(whole, table[3])
    np.testing.assert_array_equal(between, table[:, 3, 0])
    np.testing.assert_array_equal(behind, table[..., 1])
    np.testing.assert_array_equal(cut, table[2:9, :, 1, 1:3])
    np.testing.assert_array_equal(scattered[3], table[:, 1].reshape(16, 12))
    assert not scattered[:3].any()


def test_a_number_of_the_chip_beyond_the_table_is_refused() -> None:
    """As the Python number would be."""

    def kernel(a: Any, numbers: Any) -> Any:
        out = nl.ndarray((3, 4), dtype=a.dtype, buffer=nl.shared_hbm)
        at = nl.load(numbers)
        nl.store(out, nl.load(a[at[0, 0]]))
        return out

    assert refusal(kernel, random(7, 3, 4), np.array([[7]], np.int32)).rule == "NK402"
    assert refusal(kernel, random(7, 3, 4), np.array([[-1]], np.int32)).rule == "NK402"


def test_a_number_of_the_chip_moves_a_copy_on_chip_beside_slices() -> None:
    """In nisa.tensor_copy_dynamic_src; any other use of it stays NK603, as does a choice of the partition."""
    x, which = random(16, 12, 5), np.array([[7]], np.int32)

    def kernel(a: Any, numbers: Any) -> Any:
        out = nl.ndarray((16, 5), dtype=a.dtype, buffer=nl.shared_hbm)
        tile, at = nl.load(a), nl.load(numbers)
        nl.store(out, nisa.tensor_copy_dynamic_src(tile[:, at[0, 0], :]))
        return out

    np.testing.assert_array_equal(hinted(kernel, x, which), x[:, 7])
    for use in (lambda tile, at: nl.copy(tile[:, at]), lambda tile, at: nl.copy(tile[at])):
        assert refusal(stored(lambda a, b, use=use: use(a, b[0, 0])), x, which).rule == "NK603"
