"""Who listens to runs."""

from __future__ import annotations

import contextvars
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects import modern as nki
from tests.launch.kernels import doubled, failing

X = np.ones((8, 4), np.float32)


def test_every_way_in_is_collected() -> None:
    """In the order in which the runs began."""
    with nkitools.collect_runs() as runs:
        run = nkitools.simulate(doubled, X)
        doubled(X)
        nki.simulate(doubled.function)(X)
        doubled[1](X)
    assert runs[0] is run
    assert [each.kernel for each in runs] == ["doubled"] * 4
    assert all(each.error is None for each in runs)


def test_nested_collectors_each_get_them() -> None:
    """The inner one only its own."""
    with nkitools.collect_runs() as outer:
        doubled(X)
        with nkitools.collect_runs() as inner:
            doubled(X)
        doubled(X)
    doubled(X)
    assert (len(outer), len(inner)) == (3, 1)
    assert inner[0] is outer[1]


def test_a_failed_run_is_collected_with_its_error() -> None:
    """Also one that never began for its arguments; and the collector ends with its block."""
    with nkitools.collect_runs() as runs:
        for call in (lambda: failing(X), lambda: doubled(X, X)):
            with pytest.raises(nkitools.KernelError) as raised:
                call()
            assert runs[-1].error is raised.value
            assert runs[-1].findings == [raised.value.finding]
    assert len(runs) == 2


def test_an_exception_ends_the_collector() -> None:
    """Nobody listens afterwards."""
    with pytest.raises(ZeroDivisionError), nkitools.collect_runs() as runs:
        raise ZeroDivisionError
    doubled(X)
    assert runs == []


def test_collectors_may_end_in_another_order_or_context() -> None:
    """Generator fixtures are closed by whoever tears them down."""
    first, second = nkitools.collect_runs(), nkitools.collect_runs()
    outer, inner = first.__enter__(), second.__enter__()
    first.__exit__(None, None, None)
    doubled(X)
    second.__exit__(None, None, None)
    doubled(X)
    assert (len(outer), len(inner)) == (0, 1)
    third: Any = nkitools.collect_runs()
    contextvars.copy_context().run(third.__enter__)
    third.__exit__(None, None, None)
