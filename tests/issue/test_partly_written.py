"""What a partly written storage, or one at an address, costs: the fast path takes views whose elements were written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.issue import carry_out
from nkitools.issue.careful_call import CarefulCall
from nkitools.rules.finding import KernelError

X = np.arange(32, dtype=np.float32).reshape(4, 8)


@pytest.fixture
def careful(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The instructions that were issued carefully, by name."""
    names: list[str] = []
    check = carry_out.check

    def counted(call: CarefulCall) -> None:
        names.append(call.plan.name)
        check(call)

    monkeypatch.setattr(carry_out, "check", counted)
    return names


def carefully(careful: list[str], kernel: Callable[..., Any], *args: Any) -> tuple[Any, list[str]]:
    """Return the outputs of a warm run, and the names of the instructions that it issued carefully."""
    nkitools.simulate(kernel, *args)
    careful.clear()
    run = nkitools.simulate(kernel, *args)
    return run.outputs, list(careful)


@pytest.mark.usefixtures("fast")
def test_written_parts_of_a_tile_are_read_at_once(careful: list[str]) -> None:
    """A recurrence over the columns of a tile looks at no element again that it has just written."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((4, 8), nl.float32, buffer=nl.shared_hbm)
        tile = nl.ndarray((4, 8), nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile[:, 0:1], src=x[:, 0:1])
        for k in range(1, 8):
            nisa.tensor_scalar(dst=tile[:, k : k + 1], data=tile[:, k - 1 : k], op0=nl.add, operand0=1.0)
        nisa.dma_copy(dst=out, src=tile)
        return out

    outputs, slow = carefully(careful, kernel, X)
    np.testing.assert_array_equal(outputs, X[:, :1] + np.arange(8, dtype=np.float32))
    assert slow == []


@pytest.mark.usefixtures("fast")
def test_matmuls_into_parts_of_a_bank_are_issued_at_once(careful: list[str]) -> None:
    """The first product of a part overwrites, the second adds to it, whatever the rest of the tile holds."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((8, 16), nl.float32, buffer=nl.shared_hbm)
        tile, sums = nl.load(x), nl.ndarray((8, 16), nl.float32, buffer=nl.psum)
        copied = nl.ndarray((8, 16), nl.float32, buffer=nl.sbuf)
        for half in (slice(0, 8), slice(8, 16)):
            for _ in range(2):
                nisa.nc_matmul(dst=sums[:, half], stationary=tile, moving=tile)
            nisa.tensor_copy(dst=copied[:, half], src=sums[:, half])
        nisa.dma_copy(dst=out, src=copied)
        return out

    outputs, slow = carefully(careful, kernel, X)
    np.testing.assert_array_equal(outputs, np.tile(2 * X.T @ X, 2))
    assert slow == []


def test_a_view_that_lacks_an_element_is_issued_carefully(careful: list[str]) -> None:
    """The one element that was never written is found, though all others of the view were."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((4, 1), nl.float32, buffer=nl.shared_hbm)
        tile = nl.ndarray((4, 8), nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile[:, 0:7], src=x[:, 0:7])
        nisa.dma_copy(dst=tile[0:3, 7:8], src=x[0:3, 7:8])
        for _ in range(2):
            total = nl.ndarray((4, 1), nl.float32, buffer=nl.sbuf)
            nisa.tensor_reduce(dst=total, op=nl.add, data=tile[:, 0 : 7 + 1], axis=1)
        nisa.dma_copy(dst=out, src=total)
        return out

    with pytest.raises(KernelError) as caught:
        nkitools.simulate(kernel, X)
    assert caught.value.finding.rule == "NK401"
    assert "1 of 32 elements" in caught.value.finding.message
    assert careful[-3:] == ["tensor_reduce", "tensor_reduce", "dma_copy"]


def test_what_was_written_and_taken_is_not_written() -> None:
    """A view that was written whole is looked at again once a tensor at its address has taken bytes of it."""

    def kernel(x: Any) -> Any:
        tile = nl.ndarray((4, 8), nl.float32, buffer=nl.sbuf, address=(0, 0))
        nisa.dma_copy(dst=tile[:, 0:4], src=x[:, 0:4])
        other = nl.ndarray((4, 2), nl.float32, buffer=nl.sbuf, address=(0, 8))
        copied = nl.ndarray((4, 4), nl.float32, buffer=nl.sbuf)
        for number in range(3):
            nisa.tensor_copy(dst=copied, src=tile[:, 0:4])
            if number == 1:
                nisa.dma_copy(dst=other, src=x[:, 0:2])
        return x

    with pytest.raises(KernelError) as caught:
        nkitools.simulate(kernel, X)
    assert caught.value.finding.rule == "NK204"


@pytest.mark.usefixtures("fast")
def test_tiles_at_one_address_are_issued_at_once(careful: list[str]) -> None:
    """Each new tile takes all bytes of the one before; the values are those that were put there last."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((4, 8), nl.float32, buffer=nl.shared_hbm)
        for _ in range(3):
            tile = nl.ndarray((4, 8), nl.float32, buffer=nl.sbuf, address=(0, 16))
            nisa.dma_copy(dst=tile, src=x)
            nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(dst=out, src=tile)
        return out

    outputs, slow = carefully(careful, kernel, X)
    np.testing.assert_array_equal(outputs, 2 * X)
    assert slow == []
