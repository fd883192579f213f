"""Tensors of nl.int64 and nl.uint64: DMA moves them, no engine computes on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.chip.models import refused
from tests.isa.issued import inside, placed, tile
from tests.isa.loaded_scalars import one
from tests.nki_versions import SINCE_0_7

pytestmark = SINCE_0_7


def test_integers_of_64_bits_come_and_go() -> None:
    """From the host to HBM, by DMA to HBM and to one element in SBUF, and back: no bit is lost."""
    x = np.array([[2**62 + 1, -3], [2**40, 7]], np.int64)
    whole = np.array([[2**64 - 1, 5]], np.uint64)

    def kernel(numbers: Any, unsigned: Any) -> Any:
        out = nl.ndarray((2, 2), nl.int64, nl.shared_hbm)
        copy = nl.ndarray((1, 2), nl.uint64, nl.shared_hbm)
        element = nl.ndarray((1, 1), nl.int64, nl.sbuf)
        nisa.dma_copy(dst=out, src=numbers)
        nisa.dma_copy(dst=copy, src=unsigned)
        nisa.dma_copy(dst=element, src=numbers[0:1, 0:1])
        nisa.scalar_store(element, nisa.scalar_load(element) - 2**62)
        nisa.dma_copy(dst=out[0:1, 0:1], src=element)
        return out, copy

    numbers, unsigned = nkitools.simulate(kernel, x, whole).outputs
    np.testing.assert_array_equal(numbers, [[1, -3], [2**40, 7]])
    np.testing.assert_array_equal(unsigned, whole)
    assert (numbers.dtype, unsigned.dtype) == (np.int64, np.uint64)


NOT_THERE: dict[str, Callable[[], Any]] = {
    "a tile in SBUF": lambda: nl.ndarray((1, 2), nl.int64, nl.sbuf),
    "PSUM": lambda: nl.ndarray((1, 1), nl.int64, nl.psum),
    "unsigned in SBUF": lambda: nl.ndarray((1, 1), nl.uint64, nl.sbuf),
    "a view of SBUF": lambda: nl.ndarray((1, 4), nl.int32, nl.sbuf).view(nl.int64),
    "a copy that converts": lambda: nisa.dma_copy(dst=placed(one(1)), src=placed(one(1, nl.int64, "private_hbm"))),
    "a compute instruction": lambda: nisa.tensor_copy(dst=placed(one(1)), src=placed(one(1, nl.int64))),
    "a fill": lambda: nisa.memset(dst=placed(one(1, nl.int64)), value=0),
    "a register": lambda: nisa.register_load(nisa.register_alloc(), placed(one(1, nl.int64))),
    "nl.load": lambda: nl.load(placed(tile(np.ones((2, 2), np.int64), "private_hbm"))),
}


@pytest.mark.parametrize("case", NOT_THERE)
def test_no_engine_computes_on_64_bits(case: str) -> None:
    """NK301 for every tensor and instruction but HBM, one signed element in SBUF, and what moves them."""
    with refused("NK301", "64 bits"):
        inside(NOT_THERE[case])
