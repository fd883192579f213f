"""nl.gather_flattened against NumPy's take_along_axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools.dialects.modern.language as nl
from tests.isa.issued import tile
from tests.isa.oracles import float64, held, sample, words
from tests.language.tiles import computed, issued, refused, values

sizes = st.lists(st.integers(1, 5), min_size=1, max_size=3)


def taken(data: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Each partition by itself, free dimensions flattened; the shape is that of the indices."""
    rows, places = (each.reshape(each.shape[0], -1) for each in (data, indices))
    return np.take_along_axis(rows, places.astype(np.int64), axis=1).reshape(indices.shape)


@given(st.integers(1, 128), sizes, sizes, st.integers(0, 99))
def test_it_takes_along_the_flattened_free_dimensions(
    partitions: int, data_shape: list[int], index_shape: list[int], seed: int
) -> None:
    """Of any number of dimensions on either side."""
    data = sample((partitions, *data_shape), seed=seed)
    count = int(np.prod(data_shape))
    indices = np.random.default_rng(seed).integers(0, count, (partitions, *index_shape), dtype=np.uint32)
    np.testing.assert_array_equal(values(nl.gather_flattened, data, indices), taken(data, indices))


def test_all_indices_in_order_give_the_tile() -> None:
    """And in reverse order its mirror image."""
    data = sample((16, 32))
    order = np.arange(32, dtype=np.uint32)[None].repeat(16, axis=0)
    np.testing.assert_array_equal(values(nl.gather_flattened, data, order), data)
    np.testing.assert_array_equal(values(nl.gather_flattened, data, order[:, ::-1].copy()), data[:, ::-1])


@pytest.mark.parametrize(("dtype", "asked"), [(nl.bfloat16, None), (nl.int32, None), (nl.float32, nl.bfloat16)])
def test_dtypes(dtype: Any, asked: Any) -> None:
    """Bits are kept, or converted once into the dtype asked for; then a copy follows the gather."""
    data = words((8, 12), dtype) if dtype is nl.int32 else sample((8, 12), dtype)
    indices = np.random.default_rng(1).integers(0, 12, (8, 5), dtype=np.uint32)
    result, kind = computed(nl.gather_flattened, data, indices, dtype=asked)
    assert kind == (asked or dtype)
    expected = taken(data, indices)
    np.testing.assert_array_equal(result, expected if asked is None else held(float64(expected), asked))
    names = [name for name, _ in issued(nl.gather_flattened, data, indices, dtype=asked)]
    assert names == ["nc_n_gather"] + ["tensor_copy"] * (asked is not None)


def test_what_it_refuses() -> None:
    """Signed indices, indices beyond the partition, other axes, other partitions, other memories."""
    data, indices = sample((8, 12)), np.zeros((8, 5), np.uint32)
    assert refused(nl.gather_flattened, data, indices.astype(np.int32)).rule == "NK301"
    assert refused(nl.gather_flattened, data, indices + 12).rule == "NK402"
    finding = refused(nl.gather_flattened, data, indices, axis=1)
    assert (finding.rule, "axis=1" in finding.message) == ("NK607", True)
    assert refused(nl.gather_flattened, data, indices[:4]).rule in ("NK102", "NK111")
    assert refused(nl.gather_flattened, tile(data, "psum"), indices).rule == "NK201"
    assert refused(nl.gather_flattened, data, tile(indices, "hbm")).rule == "NK201"
