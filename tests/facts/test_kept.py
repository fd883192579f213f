"""What a process keeps is limited, named, and forgotten when that is asked for; no answer depends on it."""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Iterator
from contextvars import Context
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pytest

import nkitools
from nkitools.chip.layout import LAYOUTS
from nkitools.facts.kept import Kept, all_kept, forget, on_forget
from nkitools.launch import prepared
from nkitools.record import kept_layouts

nkitools.install_stand_in(prefer="builtin")

import neuronxcc.nki as legacy  # noqa: E402
import neuronxcc.nki.language as old  # noqa: E402
import nki  # noqa: E402
import nki.isa as nisa  # noqa: E402
import nki.language as nl  # noqa: E402


def modern_kernel(width: int) -> Any:
    """A kernel of its own: other code, and a number that no other one has."""
    source = (
        "def kernel(x):\n"
        "    tile = nl.load(x)\n"
        f"    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0={width}.5)\n"
        "    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
        "    nl.store(out, tile)\n"
        "    return out\n"
    )
    names: dict[str, Any] = {"nl": nl, "nisa": nisa}
    exec(compile(source, f"<kernel {width}>", "exec"), names)
    return nki.jit(names["kernel"])


def legacy_kernel(width: int) -> Any:
    """The same in the legacy dialect, with indices and a mask."""

    @legacy.jit
    def kernel(x):  # type: ignore[no-untyped-def]
        out = old.ndarray(x.shape, dtype=x.dtype, buffer=old.shared_hbm)
        rows, columns = old.arange(4)[:, None], old.arange(width)[None, :]
        tile = old.load(x[rows, columns], mask=columns < width)
        old.store(out[rows, columns], old.multiply(tile, width + 0.5), mask=columns < width)
        return out

    return kernel


def meet(first: int, count: int) -> None:
    """Run new kernels on shapes that no other run has, away from the plugin, which keeps the runs of a test."""

    def run() -> None:
        for width in range(first, first + count):
            x = np.full((4, width), 2.0, np.float32)
            for made in (modern_kernel, legacy_kernel):
                run = nkitools.simulate(made(width), x, rules="report")
                np.testing.assert_array_equal(run.outputs, x * np.float32(width + 0.5))
                assert [each.rule for each in run.findings if each.severity == "error"] == []

    Context().run(run)
    gc.collect()


def sizes() -> dict[str, int]:
    """The lengths of all containers and memos that modules of nkitools have."""
    return {f"{module}.{name}": size for module, name, size in _sizes()}


def _sizes() -> Iterator[tuple[str, str, int]]:
    for module in [name for name in sys.modules if name.partition(".")[0] == "nkitools"]:
        for name, value in list(vars(sys.modules[module]).items()):
            if isinstance(value, (dict, list, set, WeakKeyDictionary)) and not name.startswith("__"):
                yield module, name, len(value)
            elif isinstance(value, functools._lru_cache_wrapper):
                yield module, name, value.cache_info().currsize


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memos of a few entries, and nothing of earlier tests."""
    monkeypatch.setattr(prepared, "_MAX_PLANS", 4)
    monkeypatch.setattr(prepared, "_plans", {})
    monkeypatch.setattr(kept_layouts, "LEAST", 30)
    for kept in all_kept():
        monkeypatch.setattr(kept, "most", 4)
    forget()


def test_the_older_half_is_forgotten_where_one_more_comes() -> None:
    """What is written again is no more; a look-up is a dict's own."""
    kept = Kept[int, str]("squares", 4, "a test")
    for number in range(4):
        kept[number] = str(number**2)
    kept[3] = "nine"
    assert kept == {0: "0", 1: "1", 2: "4", 3: "nine"}
    kept[4] = "16"
    assert kept == {2: "4", 3: "nine", 4: "16"}
    assert Kept.get is dict.get
    assert Kept.__getitem__ is dict.__getitem__


def test_a_memo_of_one_keeps_the_last() -> None:
    """The smallest limit there is."""
    kept = Kept[int, int]("the last", 1, "a test")
    for number in range(3):
        kept[number] = number
    assert kept == {2: 2}


def test_each_says_what_it_keeps_and_why_so_many() -> None:
    """In words; and the memos of the simulator are among them."""
    nkitools.simulate(modern_kernel(3), np.ones((4, 3), np.float32), rules="report")
    assert len(all_kept()) >= 12
    for kept in all_kept():
        assert (len(kept.what) > 8, len(kept.why) > 5, kept.most > 0) == (True, True, True), kept.what


@pytest.mark.usefixtures("few")
def test_a_process_that_meets_ever_new_kernels_does_not_grow() -> None:
    """Nothing that a module holds is longer after forty more kernels and shapes of both dialects."""
    forget()
    held = len(LAYOUTS)  # by what other tests of this process have left
    meet(100, 40)
    before = sizes()
    meet(200, 40)
    after = sizes()
    grown = {name: (before.get(name, 0), size) for name, size in after.items() if size > max(before.get(name, 0), 4)}
    # Those with a greater limit, by numbers of a function's cache, and layouts, which are looked through now and then.
    assert {name for name in grown if not _is_limited(name)} == set()
    assert all(len(kept) <= kept.most for kept in all_kept())
    assert len(LAYOUTS) < 400 + 2 * held


def _is_limited(name: str) -> bool:
    module, _, attribute = name.rpartition(".")
    value = vars(sys.modules[module])[attribute]
    return attribute in ("LAYOUTS", "_layouts") or (
        hasattr(value, "cache_parameters") and value.cache_parameters()["maxsize"] is not None
    )


@pytest.mark.usefixtures("few")
def test_forget_empties_all_and_changes_no_answer() -> None:
    """Memos, limited caches of functions and unused layouts; the next run is as the first one."""
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    kernel = legacy_kernel(6)
    first = nkitools.simulate(kernel, x, rules="report")
    meet(300, 5)
    assert sum(map(len, all_kept())) > 10
    forget()
    assert [kept.what for kept in all_kept() if kept] == []
    limited = {name: size for name, size in sizes().items() if "LAYOUTS" not in name and _is_limited(name)}
    assert len(limited) > 15
    assert {name for name, size in limited.items() if size and not name.endswith("_layouts")} == set()
    again = nkitools.simulate(kernel, x, rules="report")
    np.testing.assert_array_equal(again.outputs, first.outputs)
    assert [each.message for each in again.findings] == [each.message for each in first.findings]
    assert list(again.instructions) == list(first.instructions)


@pytest.mark.usefixtures("few")
def test_a_slice_needs_no_layout_of_earlier_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first layouts of the process are gone, and a new run says why an element is what it is."""
    forget()
    monkeypatch.delitem(LAYOUTS, 0, raising=False)
    run = nkitools.simulate(modern_kernel(5), np.ones((4, 5), np.float32), rules="report")
    assert [each.position for each in run.why(0, (1, 2)).steps] == [2, 1, 0]


def test_tables_that_are_no_memos_are_asked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the table of layouts, which forgets those that nothing names."""
    called: list[str] = []
    monkeypatch.setattr("nkitools.facts.kept._others", [])
    on_forget(lambda: called.append("layouts"))
    forget()
    assert called == ["layouts"]
