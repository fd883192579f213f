"""Broadcasting over partitions."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

import nkitools
from nkitools.language.broadcast import spread_partitions


def spread_of(x: Any, count: int, buffer: Any = nl.sbuf) -> Any:
    """What a kernel gets that broadcasts its input of one partition."""

    @nki.jit
    def kernel(x: Any) -> Any:
        tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=buffer)
        nisa.tensor_copy(dst=tile, src=nl.load(x))
        spread = spread_partitions(tile, count)
        result = nl.ndarray(spread.shape, dtype=spread.dtype, buffer=nl.shared_hbm)
        nl.store(result, spread)
        return result

    return nkitools.simulate(kernel, x)


@pytest.mark.parametrize("count", [1, 2, 3, 64, 100, 128])
def test_every_partition_is_like_the_first(count: int) -> None:
    """Any number of partitions is filled, by as many copies as doubling takes."""
    x = np.arange(24, dtype=np.float32).reshape(1, 2, 12)
    run = spread_of(x, count)
    np.testing.assert_array_equal(run.outputs, np.broadcast_to(x, (count, 2, 12)))
    assert [each.name for each in run.instructions].count("dma_copy") == 3 + (count - 1).bit_length()


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, ml_dtypes.bfloat16])
def test_the_bits_are_kept(dtype: Any) -> None:
    """No dtype is rounded on the way."""
    x = np.array([[2**30 + 1, 7, 255]]).astype(dtype)
    np.testing.assert_array_equal(spread_of(x, 5).outputs, np.broadcast_to(x, (5, 3)))


def test_psum_is_read_too() -> None:
    """DMA does not reach PSUM: a tile there is evicted first."""
    x = np.arange(6, dtype=np.float32).reshape(1, 6)
    np.testing.assert_array_equal(spread_of(x, 7, nl.psum).outputs, np.broadcast_to(x, (7, 6)))


@pytest.mark.parametrize(
    ("shape", "wide"), [((1, 6), (128, 6)), ((5, 1), (5, 7)), ((1, 1, 3), (4, 2, 3)), ((4, 6), (4, 6))]
)
@pytest.mark.parametrize("dtype", [None, nl.bfloat16])
def test_broadcast_to_follows_numpy(shape: tuple[int, ...], wide: tuple[int, ...], dtype: Any) -> None:
    """Every dimension of size 1 is repeated, partitions too, and the dtype is changed on the way."""
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)

    def kernel(source: Any) -> Any:
        out = nl.ndarray(wide, dtype or nl.float32, buffer=nl.shared_hbm)
        nl.store(out, nl.broadcast_to(nl.load(source), wide, dtype=dtype))
        return out

    run = nkitools.simulate(kernel, x)
    assert not run.findings
    np.testing.assert_array_equal(run.outputs.astype(np.float32), np.broadcast_to(x, wide))


def test_broadcast_to_refuses_another_rank() -> None:
    """The target must have as many dimensions (NK109)."""

    def kernel(source: Any) -> Any:
        nl.broadcast_to(nl.load(source), (4, 2, 6))

    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(kernel, np.zeros((2, 6), np.float32))
    assert caught.value.finding.rule == "NK109"
