"""Findings about shapes say which tile to change, where it is made, in which dimension, and the size that it needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl

F32 = nl.float32


def tile(*shape: int, buffer: Any = nl.sbuf) -> Any:
    """Return a tile of ones, or an unwritten one in PSUM."""
    made = nl.ndarray(shape, dtype=F32, buffer=buffer)
    nisa.memset(dst=made, value=1.0)
    return made


def _dma(x: Any) -> Any:
    t = nl.ndarray((128, 32), dtype=F32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)


def _dma_slice(x: Any) -> Any:
    t = nl.ndarray((128, 64), dtype=F32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x[0:127])


def _outvoted_destination(x: Any) -> Any:
    a, b = tile(128, 64), tile(128, 64)
    r = nl.ndarray((128, 32), dtype=F32, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=r, data1=a, data2=b, op=nl.add)


def _outvoted_operand(x: Any) -> Any:
    a, b, r = tile(128, 64), tile(64, 64), tile(128, 64)
    nisa.tensor_tensor(dst=r, data1=a, data2=b, op=nl.add)


def _column(x: Any) -> Any:
    a, b, r = tile(128, 64), tile(128, 1), tile(128, 64)
    nisa.tensor_tensor(dst=r, data1=a, data2=b, op=nl.add)


def _transposed_operand(x: Any) -> Any:
    a, b, r = tile(64, 32), tile(32, 64), tile(64, 32)
    nisa.tensor_tensor(dst=r, data1=a, data2=b, op=nl.add)


def _activation(x: Any) -> Any:
    a, r = tile(64, 32), tile(32, 32)
    nisa.activation(dst=r, op=nl.exp, data=a)


def _reduce(x: Any) -> Any:
    a, r = tile(128, 64), tile(128, 4)
    nisa.tensor_reduce(dst=r, op=nl.add, data=a, axis=1)


def _moving_transposed(x: Any) -> Any:
    s, m, p = tile(64, 32), tile(48, 64), nl.ndarray((32, 48), dtype=F32, buffer=nl.psum)
    nisa.nc_matmul(dst=p, stationary=s, moving=m)


def _stationary_transposed(x: Any) -> Any:
    s, m, p = tile(32, 64), tile(64, 48), nl.ndarray((32, 48), dtype=F32, buffer=nl.psum)
    nisa.nc_matmul(dst=p, stationary=s, moving=m)


def _product(x: Any) -> Any:
    s, m, p = tile(64, 32), tile(64, 48), nl.ndarray((48, 32), dtype=F32, buffer=nl.psum)
    nisa.nc_matmul(dst=p, stationary=s, moving=m)


def _matmul(x: Any) -> Any:
    a, b = tile(64, 32), tile(64, 48)
    nl.matmul(a, b)


def _moving_limit(x: Any) -> Any:
    s, m, p = tile(64, 32), tile(64, 1024), nl.ndarray((32, 1024), dtype=F32, buffer=nl.psum)
    nisa.nc_matmul(dst=p, stationary=s, moving=m)


def _tall(x: Any) -> Any:
    t = nl.ndarray((256, 64), dtype=F32, buffer=nl.sbuf)
    nisa.memset(dst=t, value=0.0)


def _reshape(x: Any) -> Any:
    t = tile(128, 64)
    t.reshape((64, 128))


def _ap(x: Any) -> Any:
    t, r = tile(128, 64), tile(128, 64)
    nisa.tensor_copy(dst=r, src=t.ap([[1, 128], [1, 64]]))


def _axis(x: Any) -> Any:
    a, r = tile(128, 64), tile(128, 1)
    nisa.tensor_reduce(dst=r, op=nl.add, data=a, axis=2)


def _turn(name: str, has: list[int], needs: list[int]) -> str:
    return f"The tile `{name}` (line N) is {has}, the transpose of the {needs} that is needed: turn it with "


CASES: dict[Callable[[Any], Any], tuple[str, str]] = {
    _dma: ("NK109", "Make `t` (line N) as [128, 64]: dimension 1 is 32, it must be 64."),
    _dma_slice: ("NK109", "Slice `x` as [128, 64]: dimension 0 is 127, it must be 128."),
    _outvoted_destination: ("NK109", "Make `r` (line N) as [128, 64]: dimension 1 is 32, it must be 64."),
    _outvoted_operand: ("NK102", "Make `b` (line N) as [128, 64]: dimension 0 is 64, it must be 128."),
    _column: ("NK109", "Call nisa.tensor_scalar with `a` as data and `b` as operand0."),
    _transposed_operand: ("NK102", _turn("b", [32, 64], [64, 32])),
    _activation: ("NK102", "Make `r` (line N) as [64, 32]: dimension 0 is 32, it must be 64."),
    _reduce: ("NK109", "Make `r` (line N) as [128, 1], or take `r[0:128, 0:1]`: dimension 1 is 4, it must be 1."),
    _moving_transposed: ("NK102", _turn("m", [48, 64], [64, 48])),
    _stationary_transposed: ("NK102", _turn("s", [32, 64], [64, 32])),
    _product: ("NK109", "Make `p` (line N) as [32, 48]: dimension 0 is 48, it must be 32."),
    _matmul: ("NK102", "Pass transpose_x=True: the dimension of `a` to sum over is 0."),
    _moving_limit: ("NK105", "Loop over 2 pieces of `m` (line N) of 512 columns, each with a PSUM tile of [32, 512]"),
    _tall: ("NK101", "Make `t` (line N) as [128, 64] in a loop over 2 tiles of nl.tile_size.pmax rows."),
    _reshape: ("NK109", "Begin the shape with 128, the partitions that `t` has (line N)."),
    _ap: ("NK109", "Write ap([[64, 128], [1, 64]]): the first pair is a stride of 64 and the number of partitions."),
    _axis: ("NK112", "Write axis=1, the last dimension; the free dimensions are 1."),
}


@pytest.mark.parametrize(("kernel", "expected"), CASES.items(), ids=[each.__name__ for each in CASES])
def test_the_tile_its_dimension_its_size_and_its_line(kernel: Callable[[Any], Any], expected: tuple[str, str]) -> None:
    """The remedy names what to change; the facts have the same, and are of the tile that is wrong."""

    def whole(x: Any) -> Any:
        kernel(x)
        return x

    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(whole, np.ones((128, 64), np.float32))
    finding = caught.value.finding
    line = str(finding.facts.get("allocated_at", ":0")).rpartition(":")[2]
    rule, remedy = expected
    assert (finding.rule, finding.remedy[: len(remedy.replace("N", line))]) == (
        rule,
        remedy.replace("line N", f"line {line}"),
    )


def test_the_facts_are_those_of_the_tile_to_change() -> None:
    """Axis, extent and limit are the dimension, its size, and the size that it needs."""

    def kernel(x: Any) -> Any:
        _outvoted_operand(x)
        return x

    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(kernel, np.ones((128, 64), np.float32))
    facts = caught.value.finding.facts
    assert (facts["tensor"], facts["axis"], facts["extent"], facts["limit"]) == ("b", 0, 64, 128)


def test_a_line_that_is_not_known_is_left_out() -> None:
    """An argument is made by no line of the kernel."""

    def kernel(x: Any) -> Any:
        t = nl.ndarray((128, 32), dtype=F32, buffer=nl.sbuf)
        nisa.memset(dst=t, value=0.0)
        nisa.dma_copy(dst=x, src=t)
        return x

    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(kernel, np.ones((128, 64), np.float32))
    assert "\x01" not in caught.value.finding.sentence()
    assert caught.value.finding.remedy.startswith("Make `t` (line ")
