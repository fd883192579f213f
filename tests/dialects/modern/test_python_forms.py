"""Functions of Python that tiles of the modern dialect do not have: refused by rule, with a remedy."""

from __future__ import annotations

import math
from typing import Any

import nki
import nki.language as nl
import numpy as np
import pytest

import nkitools

X = np.ones((8, 4), np.float32)


def deleted(tile: Any) -> None:
    del tile[0]


@pytest.mark.parametrize(
    ("use", "rule"),
    [
        (len, "NK601"),
        (reversed, "NK601"),
        (round, "NK601"),
        (math.floor, "NK601"),
        (math.ceil, "NK601"),
        (math.trunc, "NK601"),
        (lambda t: divmod(t, 2), "NK601"),
        (lambda t: divmod(2, t), "NK601"),
        (lambda t: t // 2, "NK601"),
        (lambda t: t @ t, "NK601"),
        (lambda t: np.maximum(t, 0), "NK601"),
        (lambda t: float(t[0:1, 0:1]), "NK602"),
        (lambda t: list(range(t)), "NK602"),
        (lambda t: f"{t:.2f}", "NK602"),
        (lambda t: t[np.ones((8, 4), np.bool_)], "NK603"),
        (lambda t: t(), "NK601"),
        (next, "NK601"),
        (deleted, "NK601"),
        (lambda t: t.T, "NK601"),
        (lambda t: t.sum(), "NK601"),
        (lambda t: t.astype(nl.bfloat16), "NK601"),
        (lambda t: t.clip(0, 1), "NK601"),
    ],
)
def test_what_tiles_do_not_have_is_refused_with_a_remedy(use: Any, rule: str) -> None:
    """At the author's line, by name of the tile; no bare TypeError."""

    @nki.jit
    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        use(tile)
        nl.store(out, tile)
        return out

    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(kernel, X)
    finding = caught.value.finding
    assert finding.rule == rule
    assert "tensor `t" in finding.message
    assert finding.remedy
    assert finding.file == __file__


def test_a_tile_in_text_is_its_description() -> None:
    """Without a form for numbers, ``f"{tile}"`` is what ``str`` gives."""

    @nki.jit
    def kernel(x: Any) -> Any:
        tile = nl.load(x)
        assert f"{tile}" == str(tile)
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, tile)
        return out

    np.testing.assert_array_equal(nkitools.simulate(kernel, X).outputs, X)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("T", "nisa.nc_transpose"), ("sum", "nl.sum(x"), ("item", "nl.device_print"), ("clip", "nl.maximum(x")],
)
def test_attributes_of_numpys_arrays_have_a_remedy_of_their_own(name: str, remedy: str) -> None:
    """What to call in place of the attribute, or what a tensor has; ``getattr`` with a default and hasattr go on."""

    @nki.jit
    def kernel(x: Any) -> Any:
        tile = nl.load(x)
        assert not hasattr(tile, name)
        assert getattr(tile, name, 3) == 3
        return getattr(tile, name)

    with pytest.raises(nkitools.KernelError, match=f"has no attribute `{name}`") as caught:
        nkitools.simulate(kernel, X)
    assert remedy in caught.value.finding.remedy
    assert caught.value.finding.file == __file__
