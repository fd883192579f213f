"""Every program of a launch makes the same shared_hbm tensors in the same order (NK208)."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl

X = np.arange(512, dtype=np.float32).reshape(128, 4)


def half(out: Any, x: Any) -> None:
    """Copy this program's half of the rows."""
    rows = nl.ds(nl.program_id() * (x.shape[0] // 2), x.shape[0] // 2)
    nisa.dma_copy(out[rows, :], x[rows, :])


def in_another_order(x: Any) -> Any:
    if nl.program_id() == 0:
        out = nl.ndarray(X.shape, nl.float32, buffer=nl.shared_hbm)
    scratch = nl.ndarray(X.shape, nl.float32, buffer=nl.shared_hbm)  # NK208
    if nl.program_id() == 1:
        out = nl.ndarray(X.shape, nl.float32, buffer=nl.shared_hbm)
    half(scratch, x)
    half(out, x)
    return out


def on_one_core_first(x: Any) -> Any:
    if nl.program_id() == 1:
        scratch = nl.ndarray(X.shape, nl.float32, buffer=nl.shared_hbm)
        half(scratch, x)
    out = nl.ndarray(X.shape, nl.float32, buffer=nl.shared_hbm)  # NK208
    half(out, x)
    return out


def on_one_core_last(x: Any) -> Any:
    out = nl.ndarray(X.shape, nl.float32, buffer=nl.shared_hbm)
    if nl.program_id() == 1:
        scratch = nl.ndarray(X.shape, nl.float32, buffer=nl.shared_hbm)  # NK208
        half(scratch, x)
    half(out, x)
    return out


def by_branches(x: Any) -> Any:
    if nl.program_id() == 0:
        out = nl.ndarray(X.shape, nl.float32, buffer=nl.shared_hbm)
    else:
        out = nl.ndarray(X.shape, nl.float32, buffer=nl.shared_hbm)
    half(out, x)
    return out


def in_loops(x: Any) -> Any:
    for _ in range(2):
        out = nl.ndarray(X.shape, nl.float32, buffer=nl.shared_hbm)
        half(out, x)
    return out


@pytest.mark.parametrize("kernel", [in_another_order, on_one_core_first, on_one_core_last])
def test_shared_tensors_of_one_shape_are_told_apart(kernel: Any) -> None:
    """NK208 comes before a race or an output that is not written; equal shapes do not hide it."""
    run = nkitools.simulate(kernel, X, grid=2, rules="report")
    lines, start = inspect.getsourcelines(kernel)
    marked = start + next(number for number, line in enumerate(lines) if "# NK208" in line)
    first = next(each for each in run.findings if each.severity == "error")
    assert (first.rule, first.line) == ("NK208", marked)


@pytest.mark.parametrize("kernel", [by_branches, in_loops])
def test_shared_tensors_may_be_made_at_several_lines(kernel: Any) -> None:
    """The k-th of every program is one buffer, wherever the programs make it."""
    run = nkitools.simulate(kernel, X, grid=2)
    assert [each.rule for each in run.findings if each.severity != "hint"] == []
    np.testing.assert_array_equal(run.outputs, X)
