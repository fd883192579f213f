"""Objects of NKI that are used as something else: a rule, the author's line, and what to write."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import nkitools

nkitools.install_stand_in()
nl, legacy_nl = import_module("nki.language"), import_module("neuronxcc.nki.language")
legacy_nki = import_module("neuronxcc.nki")


def _entered(module: Any) -> None:
    with module.affine_range(2) as i:
        print(i)


CASES: list[tuple[Callable[[Any, Any], Any], str, str]] = [
    (lambda nl, t: nl.sbuf((4, 4), nl.float32), "NK609",
     "Write `nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.sbuf)`."),
    (lambda nl, t: nl.psum((4, 4), dtype=nl.int32), "NK609",
     "Write `nl.ndarray((4, 4), dtype=nl.int32, buffer=nl.psum)`."),
    (lambda nl, t: _entered(nl), "NK609", "Write `for i in module.affine_range(2):`."),
    (lambda nl, t: nl.tile_size(128), "NK609", "Write `nl.tile_size.pmax`, the partitions of a tile."),
    (lambda nl, t: range(nl.tile_size), "NK609", "Write `nl.tile_size.pmax`, the partitions of a tile."),
    (lambda nl, t: nl.tile_size.psum_fmax_bytes, "NK607", "Did you mean psum_bank_fmax_bytes? It has pmax,"),
    (lambda nl, t: nl.tile_size.lanes, "NK607", "It has pmax,"),
    (lambda nl, t: nl.sbuf.alloc((4, 4)), "NK607", "Write `nl.ndarray(shape, dtype=nl.float32, buffer=nl.sbuf)`."),
    (lambda nl, t: nl.ndarray(128, 64, dtype=nl.float32), "NK609", "Write the shape as one tuple, (128, 64)."),
    (lambda nl, t: nl.ndarray(128, 64), "NK609", "Write the shape as one tuple, (128, 64)."),
    (lambda nl, t: nl.zeros(128, 4, 16, dtype=nl.float32), "NK609", "Write the shape as one tuple, (128, 4, 16)."),
    (lambda nl, t: nl.full(128, 64, 0.0, dtype=nl.float32), "NK609", "Write the shape as one tuple, (128, 64)."),
]  # fmt: skip
MODERN: list[tuple[Callable[[Any, Any], Any], str, str]] = [
    (lambda nl, t: nl.float32(0.5), "NK609", "Write the number itself, `0.5`."),
    (lambda nl, t: nl.bfloat16(t), "NK609", "Write `nl.copy(t, dtype=nl.bfloat16)`."),
    (lambda nl, t: t.tile, "NK601", "A tensor is the tile itself"),
    (lambda nl, t: t.exp(), "NK601", "Call nl.exp(x)."),
    (lambda nl, t: t.shap, "NK601", "Did you mean shape?"),
]


def _finding(kernel: Any) -> Any:
    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(kernel, np.ones((128, 64), np.float32))
    return caught.value.finding


@pytest.mark.parametrize(("use", "rule", "remedy"), [*CASES, *MODERN])
def test_the_modern_dialect_says_what_to_write(use: Callable[[Any, Any], Any], rule: str, remedy: str) -> None:
    """At the line of the use, and not as an error of Python's."""

    def kernel(x: Any) -> Any:
        use(nl, nl.load(x))
        return x

    found = _finding(kernel)
    assert (found.rule, found.remedy[: len(remedy)]) == (rule, remedy)
    assert found.file == __file__


@pytest.mark.parametrize(("use", "rule", "remedy"), CASES)
def test_the_legacy_dialect_says_the_same(use: Callable[[Any, Any], Any], rule: str, remedy: str) -> None:
    """The objects are the same."""

    def kernel(x: Any) -> Any:
        use(legacy_nl, legacy_nl.load(x))
        return x

    found = _finding(legacy_nki.jit(kernel))
    assert (found.rule, found.remedy[: len(remedy)]) == (rule, remedy)


def test_an_error_of_the_authors_own_stays_it() -> None:
    """A TypeError that has nothing to do with NKI's objects is no finding."""

    def kernel(x: Any) -> Any:
        return x, len(5)  # type: ignore[arg-type]

    with pytest.raises(TypeError, match="has no len"):
        nkitools.simulate(kernel, np.ones((128, 64), np.float32))
