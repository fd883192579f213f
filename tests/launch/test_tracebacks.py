"""Tracebacks show the author's frames, and nkitools' own only where they may be to blame."""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.chip.tensor import NkiTensor
from nkitools.dialects import modern as nki
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl

X = np.ones((8, 4), np.float32)


def helper() -> Any:
    return 1 / 0


@nki.jit
def inner(x: Any) -> Any:
    return helper()


@nki.jit
def outer(x: Any) -> Any:
    for _ in nl.affine_range(2):
        inner(x)


@nki.jit
def wrong(x: Any) -> Any:
    nisa.memset(nl.ndarray((8, 4), dtype=nl.float32), "a")


def frames(error: BaseException) -> list[str]:
    """The functions of a traceback, outermost first."""
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


WAYS_IN = {
    "simulate": lambda kernel: nkitools.simulate(kernel, X),
    "call": lambda kernel: kernel(X),
    "grid": lambda kernel: kernel[2](X),
    "nki.simulate": lambda kernel: nki.simulate(kernel)(X),
}


@pytest.mark.parametrize("way_in", WAYS_IN.values(), ids=WAYS_IN)
def test_the_frames_are_the_authors(way_in: Any) -> None:
    """By every way in, from the call through each of their functions to the line that failed."""
    with pytest.raises(ZeroDivisionError) as raised:
        way_in(outer)
    assert frames(raised.value)[1:] == ["<lambda>", "outer", "inner", "helper"]


@pytest.mark.parametrize("way_in", WAYS_IN.values(), ids=WAYS_IN)
def test_a_finding_ends_at_the_authors_line(way_in: Any) -> None:
    """Where nkitools found it is of no use to them."""
    with pytest.raises(nkitools.KernelError) as raised:
        way_in(wrong)
    assert frames(raised.value)[1:] == ["<lambda>", "wrong"]


@pytest.mark.parametrize(
    "refused",
    [lambda: nki.jit(3), lambda: nki.jit(unknown=1), lambda: outer[5], lambda: outer(X, X), lambda: nki.simulate(3)],
)
def test_refusals_of_launches_end_at_the_call(refused: Any) -> None:
    """They are about the call."""
    with pytest.raises(nkitools.KernelError) as raised:
        refused()
    assert frames(raised.value)[1:] == ["<lambda>"]


def test_an_interrupt_shows_where_it_met_the_kernel() -> None:
    """Ctrl-C in a long kernel."""

    def kernel(x: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as raised:
        nkitools.simulate(kernel, X)
    assert frames(raised.value)[1:] == ["kernel"]


def test_what_comes_out_of_numpy_in_the_kernel_keeps_its_frames() -> None:
    """The author sees how they got there."""
    with pytest.raises(np.linalg.LinAlgError) as raised:
        nkitools.simulate(lambda x: np.linalg.inv(np.zeros((2, 2))), X)
    names = frames(raised.value)
    assert names[1] == "<lambda>"
    assert "inv" in names


def test_a_fault_of_ours_keeps_our_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reports it needs them; those around the kernel are left out all the same."""

    def broken(self: Any) -> Any:
        raise RuntimeError("a fault of nkitools")

    monkeypatch.setattr(NkiTensor, "on_chip", property(broken))
    with pytest.raises(RuntimeError) as raised:
        nkitools.simulate(lambda x: nl.load(x).reshape((4, 8)), X)
    names = frames(raised.value)
    assert names[1] == "<lambda>"
    assert names[-1] == "broken"
    assert len(names) > 3


def test_a_fault_of_ours_before_the_kernel_keeps_our_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no kernel to hide them behind."""

    def broken(*args: Any) -> Any:
        raise RuntimeError("a fault of nkitools")

    monkeypatch.setattr(NkiTensor, "whole", broken)
    with pytest.raises(RuntimeError) as raised:
        nkitools.simulate(outer, X)
    assert "simulate" in frames(raised.value)
