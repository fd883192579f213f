"""What grids refuse, in the words of tiles and blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import nki.language as public
import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.nki_versions import SINCE_0_7

pytestmark = SINCE_0_7


def refusal(use: Callable[[Any, Any, Any], Any], *, version: str = "0.7", shape: tuple[int, ...] = (300, 700)) -> Any:
    """Return the error of ``use``, which gets a tensor in HBM, its tiles, and tiles in SBUF like them."""

    def kernel(x: Any) -> None:
        source = nl.tiles(x, tile_shape=(128, 256))
        held = nl.empty_like(source, buffer=nl.sbuf)
        use(x, source, held)

    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(kernel, np.zeros(shape, np.float32), nki_version=version)
    return caught.value


@pytest.mark.parametrize(
    ("use", "rule", "kind", "said"),
    [
        (lambda x, g, t: g[3], "NK402", IndexError, "index 3 is out of bounds for coordinate 0 of tiles (0:3, 0:3)"),
        (lambda x, g, t: g[1, -4], "NK402", IndexError, "index -4 is out of bounds for coordinate 1"),
        (lambda x, g, t: g[1][3], "NK402", IndexError, "coordinate 0 of tiles (1, 0:3) of `x`, rows 128:256, columns"),
        (lambda x, g, t: g[0:4], "NK402", IndexError, "index 0:4 is out of bounds"),
        (lambda x, g, t: g[-5:], "NK402", IndexError, "index -5: is out of bounds"),
        (lambda x, g, t: g[2:1], "NK109", AssertionError, "slice 2:1 of coordinate 0"),
        (lambda x, g, t: g[::-1], "NK603", TypeError, "step -1 of a slice of tiles (0:3, 0:3) of `x`"),
        (lambda x, g, t: g[None], "NK603", TypeError, "None (NoneType) is no index of tiles (0:3, 0:3) of `x`"),
        (lambda x, g, t: g[True], "NK603", TypeError, "True (bool) is no index"),
        (lambda x, g, t: g[1.0], "NK603", TypeError, "1.0 (float) is no index"),
        (lambda x, g, t: g[..., ...], "NK603", TypeError, "more than one `...`"),
        (lambda x, g, t: g[0, 0, 0], "NK603", TypeError, "3 indices are given"),
        (lambda x, g, t: g[0, 0][0], "NK603", TypeError, "tile (0, 0) of `x`, rows 0:128, columns 0:256, which has 0"),
        (lambda x, g, t: len(g), "NK601", TypeError, "len() is asked of tiles (0:3, 0:3) of `x`"),
        (lambda x, g, t: list(g), "NK601", TypeError, "cannot be iterated over"),
        (lambda x, g, t: bool(g[0, 0]), "NK602", ValueError, "the truth value of tile (0, 0) of `x`"),
        (lambda x, g, t: g[0, 0] + 1, "NK601", TypeError, "operators do not work on tile (0, 0) of `x`"),
        (lambda x, g, t: g[::2].data, "NK109", AssertionError, "rows 0:128 and 256:300, columns 0:700 cannot be one"),
        (lambda x, g, t: t[0:2].data, "NK109", AssertionError, "tiles (0:2, 0:3) of `t`, rows 0:256, columns 0:700"),
        (lambda x, g, t: nl.blocks(g, block_shape=(1, 1))[::2].data, "NK109", AssertionError, "blocks (0:3:2, 0:3)"),
        (
            lambda x, g, t: nl.tiles(nl.blocks(x, tile_shape=(16, 16), block_shape=(2, 2))[::2]),
            "NK109",
            AssertionError,
            "nl.tiles: blocks (0:9:2, 0:22) of `x`, rows 0:32 and 64:96 … 256:288, columns",
        ),
        (
            lambda x, g, t: nisa.dma_copy(dst=t[0, 0], src=x),
            "NK609",
            TypeError,
            "`dst` must be a tensor, it is NkiTile",
        ),
    ],
)
def test_what_is_refused(use: Any, rule: str, kind: type, said: str) -> None:
    """The rule, the exception that AWS documents for its like, and the grid in the words of tiles."""
    error = refusal(use)
    assert error.finding.rule == rule
    assert isinstance(error, kind)
    assert said in error.finding.message


ALLOC = {"tile_shape": (4, 8), "element_shape": (16, 16), "buffer": nl.sbuf, "dtype": nl.float32}


@pytest.mark.parametrize(
    ("make", "kind", "said"),
    [
        (lambda x: nl.tiles(3, tile_shape=(4, 8)), TypeError, "nl.tiles: source must be a tensor or a grid, it is int"),
        (lambda x: nl.tiles(x), TypeError, "nl.tiles: tile_shape is needed for tensor `x` (HBM, float32 [300, 700])"),
        (lambda x: nl.tiles(x, tile_shape=[4, 8]), TypeError, "tile_shape must be a tuple of integers, it is [4, 8]"),
        (lambda x: nl.tiles(x, tile_shape=(4, True)), TypeError, "must be a tuple of integers"),
        (lambda x: nl.tiles(x, tile_shape=(np.int64(4), 8)), TypeError, "must be a tuple of integers"),
        (lambda x: nl.tiles(x, tile_shape=(4, 0)), ValueError, "every size of tile_shape must be at least 1"),
        (lambda x: nl.tiles(x, tile_shape=(4,)), ValueError, "a tile has at least two dimensions"),
        (lambda x: nl.tiles(x, tile_shape=(1, 4, 8)), ValueError, "has more dimensions than the shape (300, 700)"),
        (lambda x: nl.tiles(x, (4, 8)), TypeError, "nl.tiles() takes 1 positional argument"),
        (
            lambda x: nl.tiles(nl.tiles(x, tile_shape=(4, 8)), tile_shape=(1, 4, 8)),
            ValueError,
            "the 2 tiled dimensions",
        ),
        (lambda x: nl.blocks(x, tile_shape=(4, 8), block_shape=(2,)), ValueError, "block_shape=(2,) counts tiles"),
        (lambda x: nl.blocks(x, block_shape=(2, 2)), TypeError, "nl.blocks: tile_shape is needed"),
        (lambda x: nl.alloc_tiles(**ALLOC | {"buffer": "sbuf"}), TypeError, "buffer must be a memory such as nl.sbuf"),
        (lambda x: nl.alloc_tiles(**ALLOC | {"tile_shape": [4, 8]}), TypeError, "nl.alloc_tiles: tile_shape must be"),
        (lambda x: nl.alloc_tiles(**ALLOC | {"element_shape": (0, 8)}), ValueError, "every size of element_shape"),
        (lambda x: nl.alloc_tiles(**ALLOC | {"element_shape": (8,)}), ValueError, "tile_shape=(4, 8) has more"),
        (
            lambda x: nl.alloc_blocks(**ALLOC, block_shape=(2, 2, 2)),
            ValueError,
            "nl.alloc_blocks: block_shape=(2, 2, 2)",
        ),
        (lambda x: nl.alloc_blocks(**ALLOC, block_shape=(2, -1)), ValueError, "every size of block_shape"),
        (
            lambda x: nl.tiles(nl.ndarray((4, 2, 8), nl.float32), tile_shape=(2, 8)),
            TypeError,
            "the partition dimension",
        ),
        (lambda x: nl.empty_like(3), TypeError, "nl.empty_like: x must be a tensor, it is int"),
        (lambda x: nl.empty_like(x, buffer=nl.sbuf, transpose_axes=(0, 1)), ValueError, "transpose_axes=(0, 1) is not"),
        (
            lambda x: nl.empty_like(nl.tiles(x.reshape((3, 100, 700)), tile_shape=(4, 8)), transpose_axes=(1, 0)),
            ValueError,
            "transpose_axes is given for tiles (0:3, 0:25, 0:88) of `x`",
        ),
    ],
)
def test_wrong_arguments(make: Any, kind: type, said: str) -> None:
    """NK609, which is the exception that AWS documents: a TypeError or a ValueError."""
    error = refusal(lambda x, g, t: make(x))
    assert error.finding.rule == "NK609"
    assert isinstance(error, kind)
    assert said in error.finding.message


@pytest.mark.parametrize(
    ("make", "rule", "said"),
    [
        (lambda x: nl.empty_like(x, transpose_axes=(1, 0)), "NK201", "prepares a tensor in SBUF, its buffer is HBM"),
        (lambda x: nl.empty_like(x, buffer=nl.sbuf, transpose_axes=(1, 0)), "NK101", "has 700 elements along it"),
        (
            lambda x: nl.empty_like(nl.tiles(x, tile_shape=(4, 129)), None, nl.sbuf, transpose_axes=(1, 0)),
            "NK101",
            "the last dimension of tiles (0:75, 0:6) of `x`, rows 0:300, columns 0:700 becomes the partition dimension",
        ),
    ],
)
def test_what_cannot_be_transposed(make: Any, rule: str, said: str) -> None:
    """A destination of nisa.dma_transpose lies in SBUF, and has no more partitions than there are."""
    error = refusal(lambda x, g, t: make(x))
    assert error.finding.rule == rule
    assert said in error.finding.message


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (
            lambda x, g, t: nisa.tensor_copy(dst=t[0, 0].data, src=g[2, 1].data),
            "`src` must be in SBUF or PSUM, it is tile (2, 1) of `x`, rows 256:300, columns 256:512 (HBM, float32 [44,",
        ),
        (
            lambda x, g, t: nisa.dma_copy(dst=t[2, 2].data, src=g[1, 1].data),
            "`dst`, tile (2, 2) of `t`, rows 256:300, columns 512:700 (SBUF, float32 [44, 188])",
        ),
        (
            lambda x, g, t: nisa.tensor_copy(dst=t[1].data, src=nl.blocks(g, block_shape=(2, 2))[0, 1].data),
            "it is block (0, 1) of `x`, rows 0:256, columns 512:700 (HBM",
        ),
        (
            lambda x, g, t: nisa.tensor_copy(dst=t[1].data, src=nl.tiles(x[100:], tile_shape=(64, 256))[1, 1].data),
            "it is tile (1, 1) of a part of `x`, rows 64:128, columns 256:512 (HBM",
        ),
        (
            lambda x, g, t: nisa.tensor_copy(
                dst=t[1].data, src=nl.tiles(nl.blocks(g, block_shape=(2, 2))[1])[0, 1].data
            ),
            "it is tile (2, 1) of `x`, rows 256:300, columns 256:512 (HBM",
        ),
        (
            lambda x, g, t: nisa.tensor_copy(
                dst=t[1].data, src=nl.tiles(x.reshape((3, 100, 700)), tile_shape=(64, 64))[2, 1, 10].data
            ),
            "it is tile (2, 1, 10) of `x`, dimension 0 2, rows 64:100, columns 640:700 (HBM",
        ),
    ],
)
def test_a_refused_operand_is_named_by_its_tile(use: Any, said: str) -> None:
    """An instruction that refuses the data of a cell names the tile, the tensor and the elements."""
    assert said in refusal(use).finding.message


def test_a_result_is_a_tensor() -> None:
    """A grid that a kernel returns, in a container too, is refused rather than returned in part or whole (NK609)."""

    def kernel(x: Any) -> Any:
        return {"tile": [nl.tiles(x, tile_shape=(4, 5))[1, 0]]}

    with pytest.raises(nkitools.KernelError, match=r"the kernel returns tile \(1, 0\) of `x`, rows 4:8, columns 0:5"):
        nkitools.simulate(kernel, np.zeros((10, 20), np.float32))


def test_the_name_of_a_grid_is_that_of_its_tensor() -> None:
    """A tensor that only a grid holds is called by the grid's variable."""

    def kernel(x: Any) -> None:
        for turn in (nl.alloc_tiles(tile_shape=(4, 5), element_shape=(8, 5), buffer=nl.hbm, dtype=nl.float32),):
            nisa.tensor_copy(dst=nl.ndarray((4, 5), nl.float32), src=turn[1, 0].data)

    with pytest.raises(nkitools.KernelError, match=r"it is tile \(1, 0\) of `turn`, rows 4:8"):
        nkitools.simulate(kernel, np.zeros((4, 5), np.float32))


def test_a_tile_of_an_unnamed_tensor() -> None:
    """The words are a sentence without a name too."""

    def kernel() -> None:
        nisa.tensor_copy(
            dst=nl.ndarray((4, 8), nl.float32),
            src=nl.tiles([nl.ndarray((8, 8), nl.float32, nl.hbm)].pop(), tile_shape=(4, 8))[1, 0].data,
        )

    with pytest.raises(nkitools.KernelError, match=r"it is tile \(1, 0\), rows 4:8, columns 0:8 \(HBM, float32"):
        nkitools.simulate(kernel)


def test_a_grid_shows_itself() -> None:
    """The class, the coordinates that are left, and what they select."""
    shown: list[str] = []

    def kernel(x: Any) -> None:
        grid = nl.tiles(x, tile_shape=(4, 5))
        shown.extend((repr(grid[1:, 0]), repr(nl.blocks(grid, block_shape=(2, 2))[0, 1])))

    nkitools.simulate(kernel, np.zeros((10, 20), np.float32))
    assert shown == [
        "<NkiTileGrid of shape (2,): tiles (1:3, 0) of `x`, rows 4:10, columns 0:5>",
        "<NkiBlockGrid of shape (): block (0, 1) of `x`, rows 0:8, columns 10:20>",
    ]


NEW = ("tiles", "blocks", "alloc_tiles", "alloc_blocks", "NkiGrid", "NkiTileGrid", "NkiBlockGrid")


@pytest.mark.parametrize("name", NEW)
def test_0_6_has_no_grids(name: str) -> None:
    """Each name says since when there is one."""

    def kernel() -> None:
        getattr(public, name)

    with pytest.raises(nkitools.KernelError, match=f"nki.language.{name} is public since NKI 0.7; this is NKI 0.6"):
        nkitools.simulate(kernel, nki_version="0.6")


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda x: x.data, "nl.NkiTensor.data is public since NKI 0.7"),
        (lambda x: public.NkiTensor((4, 8), "float32", None, address=(0, 0)), "`address` is public since NKI 0.7"),
        (lambda x: public.empty_like(x, address=(0, 0)), "`address` is public since NKI 0.7"),
        (lambda x: public.empty_like(x, transpose_axes=(1, 0)), "`transpose_axes` is public since NKI 0.7"),
    ],
)
def test_0_6_has_no_members_of_0_7(use: Any, said: str) -> None:
    """A parameter or an attribute that 0.7 adds is refused under 0.6, with the version that has it."""

    def kernel(x: Any) -> None:
        use(x)

    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(kernel, np.zeros((4, 8), np.float32), nki_version="0.6")
    assert said in caught.value.finding.message
