"""Tensors with block dimensions."""

from __future__ import annotations

from typing import Any

import neuronxcc.nki.language as nl
import numpy as np
import pytest

from tests.dialects.legacy.running import random, refusal, run


def kernel(x: Any) -> Any:
    blocks, partitions, free = x.shape
    loaded = nl.ndarray((blocks, nl.par_dim(partitions), free), dtype=x.dtype, buffer=nl.sbuf)
    result = nl.ndarray((blocks, nl.par_dim(partitions), free), dtype=x.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.mgrid[0:partitions, 0:free]
    for b in nl.affine_range(blocks):
        loaded[b] = nl.load(x[b])
        loaded[b, i_p, i_f] = nl.exp(loaded[b, i_p, i_f])
        loaded[b, :, 0:1] += 1.0
        nl.store(result[b], loaded[b])
    return result


def test_blocks_are_tiles_of_their_own() -> None:
    """Each block is read, written and updated like a tile; that the form is deprecated is a warning (NK612)."""
    x = random(4, 16, 8)
    done = run(kernel, x)
    expected = np.exp(x)
    expected[:, :, 0:1] += 1
    np.testing.assert_allclose(done.outputs, expected, rtol=1e-6)
    assert [(each.rule, each.severity) for each in done.findings] == [("NK612", "warning")]
    assert "err_leading_dimension_of_tensor_must_be_partition" in done.findings[0].message


def test_blocks_have_storages_of_their_own() -> None:
    """Blocks need not live at the same time: each starts at byte 0 of a storage, under the author's name."""
    done = run(kernel, random(3, 16, 8))
    loads = [each for each in done.instructions if each.name == "dma_copy"][::2]
    assert [(each.operands[0].tensor, each.operands[0].byte_offset) for each in loads] == [("loaded", 0)] * 3


def test_several_block_dimensions() -> None:
    """Integer indices pick a tile, one after the other or together; shape is that of all dimensions."""

    def nested(x: Any) -> Any:
        tiles = nl.zeros((2, 3, nl.par_dim(8), 4), dtype=x.dtype)
        assert tiles.shape == (2, 3, 8, 4)
        assert tiles[1].shape == (3, 8, 4)
        result = nl.ndarray((8, 4), dtype=x.dtype, buffer=nl.shared_hbm)
        tiles[1, 2] = nl.load(x)
        tiles[1][2][:, 0:1] = 3
        tiles[0, 0, :, :] = tiles[1, 2, :, :]
        nl.store(result, tiles[-2, 0])
        return result

    x = random(8, 4)
    expected = x.copy()
    expected[:, 0] = 3
    np.testing.assert_array_equal(run(nested, x).outputs, expected)


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda t: nl.add(t, 32), "err_failed_to_infer_tile_from_local_tensor"),
        (lambda t: t + 1, "err_failed_to_infer_tile_from_local_tensor"),
        (lambda t: t[0:2], "err_failed_to_infer_tile_from_local_tensor"),
        (lambda t: t.__setitem__(..., 0), "err_failed_to_infer_tile_from_local_tensor"),
    ],
)
def test_a_tensor_with_blocks_is_no_tile(use: Any, said: str) -> None:
    """Whole or sliced, a block tensor is no operand."""

    def wrong(x: Any) -> Any:
        return use(nl.zeros((4, nl.par_dim(8), 8), dtype=x.dtype))

    finding = refusal(wrong, random(8, 8))
    assert finding.rule == "NK612"
    assert said in finding.message


def test_a_block_that_does_not_exist() -> None:
    """A block index out of range is NK402."""

    def wrong(x: Any) -> Any:
        return nl.zeros((4, nl.par_dim(8), 8), dtype=x.dtype)[4]

    finding = refusal(wrong, random(8, 8))
    assert finding.rule == "NK402"
    assert "index range [4, 4] exceed dimension size of 4" in finding.message


def test_the_first_dimension_marked_is_no_block() -> None:
    """par_dim at dimension 0 changes nothing; two of them are refused (NK609)."""

    def plain(x: Any) -> Any:
        tile = nl.ndarray((nl.par_dim(8), 4), dtype=x.dtype)
        tile[...] = nl.load(x)
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(result, tile)
        return result

    x = random(8, 4)
    done = run(plain, x)
    np.testing.assert_array_equal(done.outputs, x)
    assert done.findings == []
    twice = refusal(lambda x: nl.ndarray((nl.par_dim(2), nl.par_dim(8), 4), dtype=x.dtype), x)
    assert twice.rule == "NK609"


@pytest.mark.parametrize("kind", ["affine_range", "sequential_range", "static_range"])
def test_par_dim_is_no_number_of_iterations(kind: str) -> None:
    """It marks a dimension of a shape; NK609 says so, and the loop runs as often as the number says."""

    def looped(x: Any) -> Any:
        out = nl.ndarray((2, 4, 8), dtype=x.dtype, buffer=nl.shared_hbm)
        for i in getattr(nl, kind)(nl.par_dim(2)):
            nl.store(out[i], nl.load(x[i]))
        return out

    x = random(2, 4, 8)
    done = run(looped, x, rules="report")
    assert [finding.rule for finding in done.findings] == ["NK609"]
    np.testing.assert_array_equal(done.outputs, x)
