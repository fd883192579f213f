"""A tile that a line has made before is made again without a look at its arguments: nothing else may differ."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.language.repeated_tiles import tile_again

X = np.arange(32, dtype=np.float32).reshape(4, 8)


def made_by(shapes: Any, dtypes: Any, **arguments: Any) -> list[Any]:
    """Return the tiles that one line makes with these shapes and dtypes, one after the other."""
    made: list[Any] = []

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        for shape, dtype in zip(shapes, dtypes, strict=True):
            made.append(nl.ndarray(shape, dtype, **arguments))
        nisa.dma_copy(dst=out, src=x)
        return out

    nkitools.simulate(kernel, X)
    return made


def test_each_turn_of_a_line_has_memory_of_its_own() -> None:
    """Two turns share neither elements nor what was written of them."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((3, 4, 8), x.dtype, buffer=nl.shared_hbm)
        tiles = []
        for turn in range(3):
            tile = nl.ndarray((4, 8), x.dtype, buffer=nl.sbuf)
            nisa.memset(tile, float(turn))
            tiles.append(tile)
        for turn, tile in enumerate(tiles):
            nisa.dma_copy(dst=out[turn], src=tile)
        return out

    assert np.array_equal(nkitools.simulate(kernel, X).outputs[:, 0, 0], [0.0, 1.0, 2.0])


def test_what_is_never_written_is_unwritten_each_time() -> None:
    """The second turn does not begin with what the first one wrote."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        for turn in range(2):
            tile = nl.ndarray((4, 8), x.dtype, buffer=nl.sbuf)
            if turn == 0:
                nisa.memset(tile, 1.0)
            nisa.dma_copy(dst=out, src=tile)
        return out

    with pytest.raises(nkitools.KernelError) as raised:
        nkitools.simulate(kernel, X)
    assert raised.value.finding.rule.startswith("NK40")


def test_one_line_makes_tiles_of_each_shape_and_dtype() -> None:
    """What is kept belongs to the arguments as well as to the line."""
    shapes = [(4, 8), (4, 16), (4, 8), (4, 8), (4, 16)]
    dtypes = [nl.float32, nl.float32, nl.bfloat16, nl.float32, nl.float32]
    made = made_by(shapes, dtypes, buffer=nl.sbuf)
    assert [each.shape for each in made] == shapes
    assert [each.dtype for each in made] == dtypes
    assert len({each.storage.id for each in made}) == 5


@pytest.mark.parametrize("size", [True, 1.0])
def test_a_size_that_is_no_whole_number_is_refused_where_its_equal_was_taken(size: Any) -> None:
    """True and 1.0 are equal to 1, and are one key of a dictionary."""
    with pytest.raises(nkitools.KernelError) as alone:
        made_by([(4, size)], [nl.float32], buffer=nl.sbuf)
    with pytest.raises(nkitools.KernelError) as after:
        made_by([(4, 1), (4, 1), (4, size)], [nl.float32] * 3, buffer=nl.sbuf)
    assert str(after.value) == str(alone.value)


def test_a_repeated_tile_is_recorded_like_the_first() -> None:
    """Both have the storage facts that memory maps and rules read, and the line's site."""
    sites: list[int] = []

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        for _ in range(2):
            tile = nl.ndarray((4, 8), x.dtype, buffer=nl.sbuf)
            sites.append(tile.storage.site)
            nisa.dma_copy(dst=tile, src=x)
        nisa.dma_copy(dst=out, src=tile)
        return out

    run = nkitools.simulate(kernel, X)
    first, second = (each for each in run.record.storages.values() if each.site == sites[0])
    assert sites[0] == sites[1]
    assert first == second


def test_the_usual_way_makes_what_is_new() -> None:
    """The tests above can fail: only a line that made the tile before is answered at once."""
    from nkitools.chip.core import CORE

    answers: list[Any] = []

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        core: Any = CORE.get()
        answers.append(tile_again(core, sys._getframe(), (4, 8), nl.float32, nl.sbuf))
        nisa.dma_copy(dst=out, src=x)
        return out

    nkitools.simulate(kernel, X)
    assert answers == [None]


@pytest.mark.parametrize("module", ["modern", "legacy"])
def test_a_tile_that_a_helper_returns_is_named_by_each_caller(module: str) -> None:
    """Two lines call one helper in three turns: each gives its tile its own name, and only those are made again."""
    import neuronxcc.nki as legacy
    import neuronxcc.nki.language as legacy_nl

    language: Any = legacy_nl if module == "legacy" else nl

    def made(tile: Any) -> Any:
        return language.add(tile, 1.0)

    def pair(tile: Any) -> Any:
        return made(tile), made(tile)

    def kernel(x: Any) -> Any:
        out = language.ndarray(x.shape, x.dtype, buffer=language.shared_hbm)
        for _ in range(3):
            loaded = language.load(x)
            first = made(loaded)
            second = made(first)
            third, fourth = pair(second)
            language.store(out, third)
            language.store(out, fourth)
        return out

    run = nkitools.simulate(legacy.jit(kernel) if module == "legacy" else kernel, X)
    np.testing.assert_array_equal(run.outputs, X + 3)
    written = [each.operands[0].tensor for each in run.instructions if each.name == "tensor_scalar"]
    assert written == ["first", "second", "third", "fourth"] * 3
