"""``if tensor:`` asks whether a tensor was given, where nothing else can be meant: True, with NK621."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

import nkitools

X = np.random.default_rng(7).standard_normal((128, 64)).astype(np.float32)


def _rules(run: Any) -> list[str]:
    return [each.rule for each in run.findings if not each.rule.startswith("NK7")]


@pytest.mark.parametrize("version", ["0.6", "0.7"])
@pytest.mark.parametrize("part", ["whole", "made", "slice", "tile"])
def test_an_argument_that_was_given_is_true(part: str, version: str) -> None:
    """Under both versions, with NK621, also where the kernel made it; a slice of it and a tile are NK602."""

    @nki.jit
    def kernel(x: Any, part: str) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        asked = {"whole": x, "made": out, "slice": x[0:1, :], "tile": tile}[part]
        if asked:
            nisa.dma_copy(dst=out, src=tile)
        return out

    if part in ("whole", "made"):
        run = nkitools.simulate(kernel, X, part, nki_version=version)
        assert _rules(run) == ["NK621"]
        np.testing.assert_array_equal(run.outputs, X)
    else:
        with pytest.raises(nkitools.KernelError) as caught:
            nkitools.simulate(kernel, X, part, nki_version=version)
        assert caught.value.finding.rule == "NK602"


@pytest.mark.parametrize("version", ["0.6", "0.7"])
@pytest.mark.parametrize("memory", [nl.sbuf, nl.psum])
def test_a_tile_that_a_container_was_given_is_true(memory: Any, version: str) -> None:
    """With NK621 at the line: one of two fields is a tile on chip, the other None."""

    @nki.jit
    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=memory)
        nisa.tensor_scalar(dst=tile, data=nl.load(x), op0=nl.multiply, operand0=2.0)
        params = SimpleNamespace(index=tile, bias=None)
        if params and params.index and not params.bias:
            nisa.dma_copy(dst=out, src=nl.copy(params.index))
        return out

    run = nkitools.simulate(kernel, X, nki_version=version)
    assert _rules(run) == ["NK621"]
    assert "`tile`" in run.findings[0].message
    np.testing.assert_array_equal(run.outputs, X * 2)


def _by_name(tile: Any) -> int:
    return 1 if tile else 2


_REFUSED: dict[str, Callable[[Any], Any]] = {
    "a bare name": lambda p: _by_name(p.tile),
    "bool": lambda p: bool(p.tile),
    "elements": lambda p: 1 if p.tile[0:1, 0:1] else 2,
    "a comparison with a number": lambda p: 1 if p.tile > 0 else 2,
    "the result of a comparison": lambda p: 1 if p.same else 2,
    "an entry of a list": lambda p: 1 if p.tiles[0] else 2,
    "a slice in the container": lambda p: 1 if p.part else 2,
}


@pytest.mark.parametrize("form", _REFUSED)
def test_what_may_mean_the_elements_stays_refused(form: str) -> None:
    """NK602, though a container holds the tile."""

    @nki.jit
    def kernel(x: Any, ask: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        ask(SimpleNamespace(tile=tile, tiles=[tile], part=tile[0:64, :], same=nl.equal(tile, tile)))
        nisa.dma_copy(dst=out, src=tile)
        return out

    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(kernel, X, _REFUSED[form])
    assert caught.value.finding.rule == "NK602"
