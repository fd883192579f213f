"""What tests of cores that talk share."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects import modern as nki
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl

X = np.arange(128 * 8, dtype=np.float32).reshape(128, 8)


@pytest.fixture(autouse=True)
def no_thread_outlives_its_run() -> Any:
    """Programs that talk run in threads of their own."""
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) == before


def finding_of(kernel: Any, *arrays: Any, **keywords: Any) -> Any:
    """The one finding of a run on two cores (of one or both of them), the same at both levels of the rules."""
    with pytest.raises(nkitools.KernelError) as raised:
        nkitools.simulate(kernel, *arrays, grid=2, **keywords)
    run = nkitools.simulate(kernel, *arrays, grid=2, rules="report", **keywords)
    assert {(each.rule, each.line) for each in run.findings} == {(raised.value.finding.rule, raised.value.finding.line)}
    assert len({each.program for each in run.findings}) == len(run.findings)
    return raised.value.finding


def exchange(src: Any, dst: Any, pipe: int = 0, **keywords: Any) -> None:
    other = 1 - nl.program_id(0)
    nisa.sendrecv(src=src, dst=dst, send_to_rank=other, recv_from_rank=other, pipe_id=pipe, **keywords)


def sbuf(shape: Any, dtype: Any = nl.float32) -> Any:
    return nl.ndarray(shape, dtype, buffer=nl.sbuf)


def hbm(shape: Any, dtype: Any = nl.float32) -> Any:
    return nl.ndarray(shape, dtype, buffer=nl.shared_hbm)


@nki.jit
def swapped(x: Any) -> Any:
    """Each core gets the half of the rows that the other has loaded, times 1 more than the other's number."""
    out = hbm(x.shape)
    core = nl.program_id(0)
    rows = nl.ds(64 * core, 64)
    mine, theirs = nl.load(x[rows, :]), sbuf((64, x.shape[1]))
    nisa.tensor_scalar(mine, mine, nl.multiply, 1.0 + core)
    exchange(mine, theirs)
    nisa.dma_copy(dst=out[rows, :], src=theirs)
    return out


def swapped_by_numpy(x: Any) -> Any:
    return np.concatenate([2 * x[64:], x[:64]])


@nki.jit
def ping_pong(x: Any) -> Any:
    """In place, in turns: the cores write the halves that the other has read before the barrier."""
    core = nl.program_id(0)
    for turn in range(4):
        rows = nl.ds(64 * ((core + turn) % 2), 64)
        part = nl.load(x[rows, :])
        nisa.tensor_scalar(part, part, nl.multiply, 2.0, op1=nl.add, operand1=float(core))
        nl.store(x[rows, :], part)
        nisa.core_barrier(x, [0, 1])
    return x


def ping_pong_by_numpy(x: Any) -> Any:
    x = x.copy()
    for turn in range(4):
        for core in range(2):
            start = 64 * ((core + turn) % 2)
            x[start : start + 64] = 2 * x[start : start + 64] + core
    return x
