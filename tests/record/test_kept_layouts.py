"""Layouts that nothing names any more are forgotten, between runs alone."""

from __future__ import annotations

import gc
from contextvars import Context
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.chip.dtypes import float32
from nkitools.chip.layout import LAYOUTS, forget_unused, layout_of
from nkitools.chip.memory import Storage
from nkitools.chip.memory_region import MemoryRegion
from nkitools.chip.tensor import NkiTensor
from nkitools.record import kept_layouts, source_sites
from nkitools.record.kept_layouts import layouts_in_use
from tests.cases import cases

nkitools.install_stand_in(prefer="builtin")

import nki  # noqa: E402
import nki.isa as nisa  # noqa: E402
import nki.language as nl  # noqa: E402

from kernels.nki.gather_scatter import gather_rows  # noqa: E402
from nkitools.launch import prepared  # noqa: E402


@nki.jit
def doubled(x: Any) -> Any:
    tile = nl.load(x)
    nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, tile)
    return out


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few layouts and plans are kept, and nothing of earlier tests."""
    monkeypatch.setattr(kept_layouts, "LEAST", 30)
    monkeypatch.setattr(kept_layouts._kept, "most", 0)
    monkeypatch.setattr(prepared, "_MAX_PLANS", 8)
    monkeypatch.setattr(prepared, "_plans", {})
    monkeypatch.setattr(source_sites, "_MOST_LINES", 8)  # else a kernel's lines keep their plans for its later runs


def other_shapes(count: int, first: int = 2000) -> None:
    """Run a kernel on so many shapes, away from the plugin, which keeps the runs of a test."""

    def run() -> None:
        for width in range(first, first + count):
            nkitools.simulate(doubled, np.ones((2, width), np.float32))

    Context().run(run)


def forget_before_the_next_run() -> None:
    """Look for layouts of no use, however many the other tests of the process hold."""
    kept_layouts._kept.most = 0
    other_shapes(1)


def test_the_layouts_of_many_shapes_are_bounded(few: None) -> None:
    other_shapes(30)
    before, known = len(LAYOUTS), set(LAYOUTS)
    for first in (3000, 3100, 3200):
        other_shapes(40, first)
        assert len(LAYOUTS) <= 2 * before + 30
    forget_before_the_next_run()
    assert known - set(LAYOUTS)


def test_a_run_that_is_kept_can_be_read(few: None) -> None:
    """Its instructions, what they depend on, and the index of a gather, whose layout only stands beside its rows."""
    indices = np.array([[3], [0], [2]], np.int32).reshape(3)
    run = nkitools.simulate(gather_rows, np.ones((4, 24), np.float32), indices)
    again = nkitools.simulate(gather_rows, np.ones((4, 24), np.float32), indices)
    expected, flow = again.instructions[:], again.dependences.flow
    del again
    count = len(LAYOUTS)
    other_shapes(80)
    forget_before_the_next_run()
    assert len(LAYOUTS) < count + 120
    assert run.instructions[:] == expected
    np.testing.assert_array_equal(run.dependences.flow.sources, flow.sources)


def test_a_layout_that_is_held_stays_the_one_of_its_properties() -> None:
    properties: Any = ((3, 77), (308, 4), float32, MemoryRegion.sbuf, 0, 0, 1)
    held, number = layout_of(*properties), layout_of((3, 78), *properties[1:]).id
    named = layout_of((3, 79), *properties[1:]).id
    forget_unused({named} | set(LAYOUTS) - {held.id, number})
    assert layout_of(*properties) is held is LAYOUTS[held.id]
    assert number not in LAYOUTS
    assert layout_of((3, 78), *properties[1:]).id > number
    assert layout_of((3, 79), *properties[1:]).id == named


def test_a_part_of_a_layout_that_is_held_is_forgotten() -> None:
    """The whole's layout finds those of its parts again, and keeps none of them; nor does an earlier look."""
    forget_unused(set(LAYOUTS))
    whole = NkiTensor.whole(Storage((3, 77), float32, MemoryRegion.sbuf))
    assert whole.layout.id in LAYOUTS
    numbers = [view.layout.id for view in (whole[0:1, 5:7], whole[0:1, 8:10], whole[0, 9:11])]
    number = numbers[0]
    assert numbers == [number] * 3
    forget_unused(set(LAYOUTS) - {number})
    assert number not in LAYOUTS
    assert LAYOUTS[whole[0:1, 5:7].layout.id] is whole[0:1, 6:8].layout


def test_nothing_is_forgotten_while_a_run_goes_on(few: None) -> None:
    with layouts_in_use():
        number = layout_of((5, 91), (364, 4), float32, MemoryRegion.sbuf, 0, 0, 1).id
        other_shapes(30)
        assert number in LAYOUTS
    kept_layouts._kept.most = 0
    with layouts_in_use():
        assert number not in LAYOUTS


@pytest.mark.soak
def test_a_thousand_shapes_take_little_memory() -> None:
    """With the garbage collector off, at most 5 MiB more of the process; and a thousand more no more than these."""
    other_shapes(20, 9000)
    gc.collect()
    gc.disable()
    try:
        for first in (1, 1001, 2001):
            before = _resident()
            other_shapes(cases(1000), first)
            assert _resident() - before <= 5 << 20
    finally:
        gc.enable()


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096
