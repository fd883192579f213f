"""Loops over Python's range in a kernel have their counters in the record, and range stays Python's own."""

from __future__ import annotations

import sys
import threading
import types
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

import nkitools
from tests.launch import plain_range_helper

X = np.arange(384 * 4, dtype=np.float32).reshape(384, 4)
SEEN: list[object] = []


def turns(kernel, *args, **kwargs):
    """The loop counters of a run's instructions, in order."""
    return [each.loops for each in nkitools.simulate(kernel, *args, **kwargs).instructions]


@nki.jit
def nested(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 4), dtype=x.dtype, buffer=nl.sbuf)
    for m in range(1, 3):
        nisa.memset(tile, 0.0)
        for n in range(4, 0, -2):
            nisa.dma_copy(dst=tile, src=x[m * 128 : (m + 1) * 128])
            if n == 2:
                break
        nisa.dma_copy(dst=out[m * 128 : (m + 1) * 128], src=tile)
    nisa.dma_copy(dst=out[0:128], src=x[0:128])
    return out


@pytest.mark.parametrize("version", ["0.6", "0.7", "auto"])
def test_instructions_have_the_counters_around_them(version: str) -> None:
    """The innermost counter is the last one, and behind a loop, left by break or not, it is gone."""
    expected = []
    for m in range(1, 3):
        expected += [{"m": m}, {"m": m, "n": 4}, {"m": m, "n": 2}, {"m": m}]
    assert turns(nested, X, nki_version=version) == [*expected, {}]


@nki.jit
def by_helper(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)

    def rows(turn):
        for inside in range(1):
            plain_range_helper.copied(out, x, turn + inside)

    for m in range(2):
        rows(m)
    plain_range_helper.copied(out, x, 2)
    return out


def test_functions_of_the_kernel_count_too() -> None:
    """Those inside of it, and those of other modules; a name that a caller has too gets the function's."""
    assert turns(by_helper, X) == [
        {"m": 0, "inside": 0, "half": 0},
        {"m": 0, "inside": 0, "half": 1},
        {"m": 1, "inside": 0, "half": 0},
        {"m": 1, "inside": 0, "half": 1},
        {"half": 0},
        {"half": 1},
    ]


@nki.jit
def curious(x):
    out = nl.ndarray((128, 4), dtype=x.dtype, buffer=nl.shared_hbm)
    SEEN.extend([range(4)[1:], isinstance(range(2), range), isinstance([], range), range in (type(range(2)),)])
    SEEN.extend(
        [[2 * i for i in range(3)], list(reversed(range(3))), sum(range(4)), repr(range), {range: 1}[type(range(1))]]
    )
    try:
        range("two")
    except TypeError as error:
        SEEN.append(str(error))
    nisa.dma_copy(dst=out, src=x[0:128])
    return out


def test_range_stays_what_it_is() -> None:
    """What a kernel makes with it, asks of it and gets wrong is as outside of kernels."""
    SEEN.clear()
    nkitools.simulate(curious, X, rules="off")
    assert SEEN[:4] == [range(1, 4), True, False, True]
    assert SEEN[4:9] == [[0, 2, 4], [2, 1, 0], 6, "<class 'range'>", 1]
    assert SEEN[9] == "'str' object cannot be interpreted as an integer"


@nki.jit
def broken(x):
    for m in range(3):
        if m == 1:
            raise KeyError("stopped")
    return x


def test_the_name_is_given_back() -> None:
    """After a run, and after one that failed, modules have no range of their own."""
    nkitools.simulate(nested, X)
    with pytest.raises(KeyError, match="stopped"):
        nkitools.simulate(broken, X)
    for module in (sys.modules[__name__], plain_range_helper):
        assert "range" not in vars(module)


def test_runs_of_several_threads_count_until_the_last_has_ended() -> None:
    """A run that ends first leaves the counters of another run of the same module alone."""
    inside, first_ended = threading.Event(), threading.Event()

    def second(x):
        inside.set()
        assert first_ended.wait(60)
        return nested(x)

    def first(x):
        started.append(pool.submit(turns, second, X, rules="report"))
        assert inside.wait(60)
        return nested(x)

    started: list[Future[Any]] = []
    with ThreadPoolExecutor(1) as pool:
        expected = turns(first, X, rules="report")
        first_ended.set()
        assert started[0].result() == expected
    assert {"m": 2, "n": 2} in expected
    assert "range" not in globals()


def test_a_module_keeps_a_range_of_its_own() -> None:
    """An author's own function of that name is called, and stays."""
    module = types.ModuleType("with_its_own_range")
    exec(  # a module of its own, whose range is no longer Python's
        "import nki, nki.isa as nisa, nki.language as nl\n"
        "def range(n):\n    return iter((n, n))\n"
        "def kernel(x):\n"
        "    out = nl.ndarray((128, 4), dtype=x.dtype, buffer=nl.shared_hbm)\n"
        "    for m in range(7):\n"
        "        nisa.dma_copy(dst=out, src=x[0:128])\n"
        "    return out\n",
        vars(module),
    )
    own = vars(module)["range"]
    run = nkitools.simulate(vars(module)["kernel"], X, rules="off")
    assert [each.loops for each in run.instructions] == [{}, {}]
    assert vars(module)["range"] is own


def pieces(x, out):
    for m in range(2):
        yield out[m * 128 : (m + 1) * 128], x[m * 128 : (m + 1) * 128]


@nki.jit
def by_generators(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for (dst, src), (again, _) in zip(pieces(x, out), pieces(x, out), strict=True):
        nisa.dma_copy(dst=dst, src=src)
        nisa.dma_copy(dst=again, src=src)
    return out


def test_loops_of_generators_count_nothing() -> None:
    """Two generators stand in their loops at the same time, and neither is around the instruction."""
    assert turns(by_generators, X, rules="report") == [{}] * 4
