"""Grids of tiles and of blocks, compared with lists of indices and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.cases import cases
from tests.isa.issued import inside
from tests.language.grid_models import Case, Model, cases_of, made
from tests.nki_versions import SINCE_0_7

pytestmark = SINCE_0_7


def in_hbm(extents: tuple[int, ...]) -> tuple[Any, np.ndarray]:
    """Return a tensor in HBM whose elements are their own numbers, and the same as an array."""
    tensor = nl.ndarray(extents, nl.int32, nl.private_hbm)
    values = np.arange(np.prod(extents), dtype=np.int32).reshape(extents)
    tensor.array[...] = values
    return tensor, values


def check_members(grid: Any, case: Case) -> None:
    """Assert that a grid has the members that its model has."""
    model = case.model
    assert (grid.shape, grid.element_shape) == (model.shape, model.element_shape)
    assert (grid.tile_shape, grid.is_remainder) == (case.tile_shape, model.is_remainder)
    for ours, theirs in zip(grid.index_step_elements, model.steps(), strict=True):
        assert theirs is None or ours == theirs
    assert type(grid) is (nl.NkiBlockGrid if case.block_shape and case.inner is None else nl.NkiTileGrid)
    if isinstance(grid, nl.NkiBlockGrid):
        assert grid.block_shape == case.block_shape


@settings(max_examples=cases(2000), deadline=None)
@given(cases_of())
def test_a_grid_over_hbm_selects_what_slices_of_an_array_do(case: Case) -> None:
    """Members and elements of tiles, blocks, selections with steps, remainders and untiled dimensions."""

    def body() -> None:
        tensor, values = in_hbm(case.extents)
        grid = made(case, nl.tiles(tensor, tile_shape=case.tile_shape), nl)
        check_members(grid, case)
        assert (grid.dtype, grid.buffer) == (nl.int32, nl.private_hbm)
        assert grid.is_data_representable == case.model.has_one_step()
        if grid.is_data_representable:
            assert grid.data.storage is tensor.storage
            np.testing.assert_array_equal(grid.data.array, case.model.of_array(values))
        else:
            with pytest.raises(nkitools.KernelError) as caught:
                grid.data  # noqa: B018 - reading it is what is refused
            assert caught.value.finding.rule == "NK109"

    inside(body)


def addresses(grid: Any, model: Model) -> np.ndarray:
    """Return partition and column of each element of a whole grid on chip, as the cells' data have them."""
    found = np.full((*model.extents, 2), -1)
    for index in np.ndindex(*model.shape):
        cell, elements = grid[index], model[index]
        data = cell.data
        partition, column = np.divmod(data.byte_offset, data.storage.partition_bytes)
        place = np.zeros((*data.shape, 2), np.int64) + np.array((partition, column // 4))
        steps = [data.array.strides[0] // data.storage.partition_bytes, *(each // 4 for each in data.array.strides[1:])]
        for dim, step in enumerate(steps):
            along = np.arange(data.shape[dim]).reshape(-1, *[1] * (len(steps) - dim - 1)) * step
            place[..., 0 if dim == 0 else 1] += along
        found[np.ix_(*(each.elements for each in elements.dimensions))] = place.reshape(
            *(len(each.elements) for each in elements.dimensions), 2
        )
    return found


def is_one_pattern(places: np.ndarray, model: Model) -> bool:
    """Return whether elements lie as a tensor on chip has them: neighbouring partitions, one step a dimension."""
    if any(not each.tiled and not each.taken for each in model.dimensions):
        return False
    at = model.of_array(places[..., 0] * 10**6), model.of_array(places[..., 1])
    partitions, columns = at[0] // 10**6, at[1]
    expected = np.full(columns.shape, columns.flat[0])
    for dim, size in enumerate(columns.shape):
        index = [0] * columns.ndim
        index[dim] = min(1, size - 1)
        step = 0 if dim == 0 else columns[tuple(index)] - columns.flat[0]
        expected = expected + np.arange(size).reshape(-1, *[1] * (columns.ndim - dim - 1)) * step
    rows = partitions.flat[0] + np.arange(columns.shape[0]).reshape(-1, *[1] * (columns.ndim - 1))
    return bool((columns == expected).all() and (partitions == rows).all())


@settings(max_examples=cases(2000), deadline=None)
@given(cases_of())
def test_a_grid_on_chip_lies_tile_beside_tile(case: Case) -> None:
    """Tile after tile by columns; a selection is one operand exactly where its elements are evenly spaced there."""
    whole = Model.of(case.extents, case.tile_shape)

    def body() -> None:
        tiles = nl.alloc_tiles(
            tile_shape=case.tile_shape, element_shape=case.extents, buffer=nl.sbuf, dtype=nl.float32, name="t"
        )
        places = addresses(tiles, whole)
        width = int(np.prod(case.tile_shape[1:]))
        for number, index in enumerate(np.ndindex(*whole.shape)):
            mine = places[np.ix_(*(each.elements for each in whole[index].dimensions))].reshape(-1, 2)
            assert mine[0].tolist() == [0, number * width]
            assert mine[:, 0].max() < case.tile_shape[0]
            assert mine[:, 1].max() < (number + 1) * width
        assert len({tuple(each) for each in places.reshape(-1, 2).tolist()}) == int(np.prod(case.extents))
        grid = made(case, tiles, nl)
        check_members(grid, case)
        assert grid.is_data_representable == is_one_pattern(places, case.model)
        if grid.is_data_representable:
            data = grid.data
            assert data.storage.shape == (case.tile_shape[0], int(np.prod(whole.shape)) * width)
            data.array[...] = np.arange(data.size).reshape(data.shape)
            expected = case.model.of_array(places[..., 0]), case.model.of_array(places[..., 1])
            np.testing.assert_array_equal(data.storage.array[expected], data.array)

    inside(body)


@settings(max_examples=cases(1000), deadline=None)
@given(cases_of())
def test_a_grid_like_another_has_its_coordinates_and_extents(case: Case) -> None:
    """Packed without gaps, in HBM exactly as large as the selection; each cell has the extent of its model."""

    def body() -> None:
        tensor, _ = in_hbm(case.extents)
        grid = made(case, nl.tiles(tensor, tile_shape=case.tile_shape), nl)
        for buffer in (None, nl.sbuf):
            like = nl.empty_like(grid, nl.float32, buffer)
            assert type(like) is type(grid)
            assert (like.dtype, like.buffer) == (nl.float32, buffer or nl.private_hbm)
            assert (like.shape, like.tile_shape) == (grid.shape, grid.tile_shape)
            assert (like.element_shape, like.is_remainder) == (grid.element_shape, grid.is_remainder)
            for index in np.ndindex(*grid.shape):
                assert like[index].element_shape == grid[index].element_shape
        if case.model.element_shape:
            assert nl.empty_like(grid).data.storage.shape == case.model.element_shape

    inside(body)


@settings(max_examples=cases(1000), deadline=None)
@given(cases_of(front=0))
def test_a_transposed_grid_has_everything_the_other_way_round(case: Case) -> None:
    """Coordinates, tiles, blocks and extents, in the order that nisa.dma_transpose gives the dimensions."""
    order = {2: (1, 0), 3: (2, 1, 0)}[len(case.tile_shape)]

    def body() -> None:
        tensor, _ = in_hbm(case.extents)
        grid = made(case, nl.tiles(tensor, tile_shape=case.tile_shape), nl)
        turned = nl.empty_like(grid, buffer=nl.sbuf, transpose_axes=order)
        assert turned.tile_shape == tuple(grid.tile_shape[dim] for dim in order)
        assert turned.element_shape == tuple(grid.element_shape[dim] for dim in order)
        if len(grid.shape) == len(order):
            assert turned.shape == tuple(grid.shape[dim] for dim in order)
        if isinstance(grid, nl.NkiBlockGrid):
            assert turned.block_shape == tuple(grid.block_shape[dim] for dim in order)

    inside(body)


def test_the_example_of_the_documents() -> None:
    """Tiles of 128 x 256 over 512 x 1024 are a grid of 4 x 4, blocks of 2 x 2 tiles one of 2 x 2."""

    def body() -> None:
        x = nl.ndarray((512, 1024), nl.float32, nl.shared_hbm)
        tiles = nl.tiles(x, tile_shape=(128, 256))
        assert (tiles.shape, tiles.index_step_elements) == ((4, 4), (128, 256))
        assert (tiles[1, :].shape, tiles[:, 1].shape, tiles[1, 2].shape) == ((4,), (4,), ())
        assert tiles[1, 2].data.shape == tiles[1, 2].element_shape == (128, 256)
        assert tiles[1, 2].data.offset == 128 * 1024 + 512
        blocks = nl.blocks(tiles, block_shape=(2, 2))
        assert (blocks.shape, blocks.block_shape, blocks.index_step_elements) == ((2, 2), (2, 2), (256, 512))
        assert blocks[1, 0].data.shape == (256, 512)
        opened = nl.tiles(blocks[1, 0])
        assert (opened.shape, opened.tile_shape) == ((2, 2), (128, 256))
        assert opened[1, 1].data.offset == 384 * 1024 + 256
        direct = nl.blocks(x, tile_shape=(128, 256), block_shape=(2, 2))
        assert (direct.shape, direct[1, 0].element_shape) == ((2, 2), (256, 512))

    inside(body)


def test_tiles_of_another_size_over_a_selection() -> None:
    """They begin where the selection begins, and end where it ends."""

    def body() -> None:
        x, values = in_hbm((10, 20))
        part = nl.tiles(x, tile_shape=(4, 5))[1:, 1:3]
        again = nl.tiles(part, tile_shape=(3, 4))
        assert (again.shape, again.element_shape) == ((2, 3), (6, 10))
        np.testing.assert_array_equal(again[1, 2].data.array, values[7:10, 13:15])
        chip = nl.alloc_tiles(tile_shape=(4, 5), element_shape=(10, 20), buffer=nl.sbuf, dtype=nl.int32)
        assert nl.tiles(chip[:1], tile_shape=(2, 8))[1, 1].data.shape == (2, 8)
        assert not nl.tiles(chip, tile_shape=(3, 5))[1, 0].is_data_representable

    inside(body)


def test_more_rows_than_partitions_lie_side_by_side() -> None:
    """300 rows of 700 columns in tiles of 128 x 256 are 9 tiles in 128 partitions, whatever the blocks."""

    def body() -> None:
        shapes = {"tile_shape": (128, 256), "element_shape": (300, 700)}
        for grid in (
            nl.alloc_tiles(**shapes, buffer=nl.sbuf, dtype=nl.bfloat16),
            nl.tiles(nl.alloc_blocks(**shapes, block_shape=(2, 2), buffer=nl.sbuf, dtype=nl.bfloat16)),
        ):
            assert grid.shape == (3, 3)
            assert grid[2, 1].data.shape == (44, 256)
            assert grid[2, 1].data.address == (0, 2 * 256 * 7)
            assert grid[1].data.shape == (128, 700)
            assert grid[1].data.storage.shape == (128, 9 * 256)
            assert not grid[0:2].is_data_representable
        placed = nl.alloc_tiles(**shapes, buffer=nl.sbuf, dtype=nl.bfloat16, address=(0, 1024))
        assert placed[0, 1].data.address == (0, 1024 + 512)
        compact = nl.alloc_tiles(**shapes, buffer=nl.shared_hbm, dtype=nl.bfloat16)
        assert compact.data.shape == compact.data.storage.shape == (300, 700)

    inside(body)


def test_a_tensor_is_its_own_data() -> None:
    """So that code takes .data of grids and of tensors alike."""

    def body() -> None:
        tensor = nl.ndarray((4, 8), nl.float32)
        assert tensor.data is tensor

    inside(body)


def test_a_grid_is_a_view_only() -> None:
    """Making, slicing, regrouping and reading grids issues nothing and allocates nothing."""

    def kernel(x: Any) -> None:
        grid = nl.blocks(nl.tiles(x, tile_shape=(2, 3)), block_shape=(2, 1))
        for index in np.ndindex(*grid.shape):
            nl.tiles(grid[index])[0].data  # noqa: B018 - reading it is what is tested

    run = nkitools.simulate(kernel, np.zeros((7, 8), np.float32))
    assert len(run.instructions) == 0
    assert len(run.all_records[0].storages) == 1

    def allocates(x: Any) -> None:
        nl.alloc_blocks(
            tile_shape=(2, 3), block_shape=(2, 2), element_shape=(7, 8), buffer=nl.sbuf, dtype=nl.float32, name="t"
        )

    storages = nkitools.simulate(allocates, np.zeros((7, 8), np.float32)).all_records[0].storages
    assert [each.name for each in storages.values()] == ["x", "t"]


def copies(x: Any) -> Any:
    """Copy a tensor through tiles in SBUF that are a grid as well, a row of tiles at a time where it is whole."""
    source = nl.tiles(x, tile_shape=(32, 48))
    held = nl.empty_like(source, buffer=nl.sbuf)
    result = nl.empty_like(source, buffer=nl.shared_hbm)
    for i in range(source.shape[0]):
        nisa.dma_copy(dst=held[i].data, src=source[i].data)
        for j in range(source.shape[1]):
            nisa.dma_copy(dst=result[i, j].data, src=held[i, j].data)
    return result.data


def multiplies(lhs_transposed: Any, rhs: Any) -> Any:
    """Multiply matrices by tiles, the sums in a grid in PSUM and the operands in grids in SBUF."""
    left, right = nl.tiles(lhs_transposed, tile_shape=(128, 64)), nl.tiles(rhs, tile_shape=(128, 96))
    stationary, moving = nl.empty_like(left, buffer=nl.sbuf), nl.empty_like(right, buffer=nl.sbuf)
    for grid, source in ((stationary, left), (moving, right)):
        for k in range(source.shape[0]):
            nisa.dma_copy(dst=grid[k].data, src=source[k].data)
    extent = (lhs_transposed.shape[1], rhs.shape[1])
    sums = nl.alloc_tiles(tile_shape=(64, 96), element_shape=extent, buffer=nl.psum, dtype=nl.float32)
    result = nl.alloc_tiles(tile_shape=(64, 96), element_shape=extent, buffer=nl.shared_hbm, dtype=nl.float32)
    for m in range(sums.shape[0]):
        for n in range(sums.shape[1]):
            for k in range(left.shape[0]):
                nisa.nc_matmul(dst=sums[m, n].data, stationary=stationary[k, m].data, moving=moving[k, n].data)
            nisa.dma_copy(dst=result[m, n].data, src=nl.copy(sums[m, n].data))
    return result.data


def transposes(x: Any) -> Any:
    """Transpose a matrix tile by tile."""
    source = nl.tiles(x, tile_shape=(64, 32))
    turned = nl.empty_like(source, buffer=nl.sbuf, transpose_axes=(1, 0))
    result = nl.empty_like(turned, buffer=nl.shared_hbm)
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            nisa.dma_transpose(dst=turned[j, i].data, src=source[i, j].data)
            nisa.dma_copy(dst=result[j, i].data, src=turned[j, i].data)
    return result.data


@pytest.mark.parametrize("shape", [(70, 100), (32, 48), (33, 1)])
def test_a_kernel_copies_through_grids(shape: tuple[int, int]) -> None:
    """With remainders in both dimensions."""
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    np.testing.assert_array_equal(nkitools.simulate(copies, x).outputs, x)


@pytest.mark.parametrize(("k", "m", "n"), [(300, 100, 200), (128, 64, 96)])
def test_a_kernel_multiplies_through_grids(k: int, m: int, n: int) -> None:
    """More rows than partitions, side by side in SBUF and PSUM."""
    random = np.random.default_rng(0)
    left, right = (random.normal(size=(k, size)).astype(np.float32) for size in (m, n))
    found = nkitools.simulate(multiplies, left, right).outputs
    np.testing.assert_allclose(found, left.T @ right, rtol=1e-4, atol=1e-4)


def test_a_kernel_transposes_through_grids() -> None:
    """What empty_like prepares is what nisa.dma_transpose fills."""
    x = np.random.default_rng(0).normal(size=(128, 96)).astype(np.float16)
    np.testing.assert_array_equal(nkitools.simulate(transposes, x).outputs, x.T)


@pytest.mark.parametrize("kind", ["NkiGrid", "NkiTileGrid", "NkiBlockGrid"])
def test_a_grid_is_not_constructed(kind: str) -> None:
    """The factories make grids (NK609)."""

    def body() -> None:
        getattr(nl, kind)(shape=(1, 1))

    assert refusal_of(body).rule == "NK609"


def refusal_of(body: Callable[[], Any]) -> Any:
    """Return the finding of what is refused, an error of the same class under both levels."""
    with pytest.raises(nkitools.KernelError) as caught:
        inside(body)
    return caught.value.finding
