"""NK204 in the modern dialect: reading what a tensor at an overlapping address has overwritten."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.record.run_session import current_findings
from tests.cases import cases
from tests.history.racing import line_of

X = np.arange(128 * 8, dtype=np.float32).reshape(128, 8)

# --- against a map of who wrote each byte last -----------------------------------------------------------------------

PARTITIONS, BYTES = 128, 64
PLACES = [
    ((32, 4), (0, 0)),
    ((32, 4), (32, 8)),
    ((64, 4), (0, 8)),
    ((32, 8), (0, 4)),
    ((128, 2), (0, 20)),
    ((32, 4), (0, 0)),
]
STEP = st.tuples(
    st.sampled_from(["write", "read", "copy"]),
    st.integers(0, len(PLACES) - 1),
    st.integers(0, len(PLACES) - 1),
    st.integers(0, 3),  # the first column
    st.integers(1, 4),  # how many columns
)
NEVER, HELD, LOST = 0, 1, 2


class Bytes:
    """What each tensor still holds of its bytes."""

    def __init__(self) -> None:
        self.states = [np.full((PARTITIONS, BYTES), NEVER) for _ in PLACES]

    def region(self, tensor: int, columns: slice) -> tuple[slice, slice]:
        (rows, _), (partition, byte) = PLACES[tensor]
        return slice(partition, partition + rows), slice(byte + 4 * columns.start, byte + 4 * columns.stop)

    def write(self, tensor: int, columns: slice) -> None:
        region = self.region(tensor, columns)
        for other, state in enumerate(self.states):
            part = state[region]
            part[part == HELD] = HELD if other == tensor else LOST
        self.states[tensor][region] = HELD

    def rules_of_reading(self, tensor: int, columns: slice) -> set[str]:
        """What may be said: nothing, that bytes were lost, that they were never written, or either."""
        found = set(np.unique(self.states[tensor][self.region(tensor, columns)])) - {HELD}
        return {"NK204" if state == LOST else "NK401" for state in found}


def columns_of(tensor: int, first: int, count: int) -> slice:
    width = PLACES[tensor][0][1]
    first = min(first, width - 1)
    return slice(first, min(first + count, width))


def played(x: Any, steps: Any, told: list[str]) -> None:
    before: Counter[str] = Counter()
    tensors = [nl.ndarray(shape, nl.float32, address=address) for shape, address in PLACES]
    scratch = nl.ndarray((128, 8), nl.float32, buffer=nl.shared_hbm)
    for what, one, other, first, count in steps:
        columns = columns_of(one, first, count)
        tile = tensors[one][:, columns]
        if what == "write":
            nisa.dma_copy(dst=tile, src=x[0 : tile.shape[0], columns])
        elif what == "read":
            nisa.dma_copy(dst=scratch[0 : tile.shape[0], columns], src=tile)
        elif PLACES[other][0] == PLACES[one][0]:
            target = tensors[other][:, columns]  # and the sum stays in the registers, for which all elements are used
            nisa.tensor_scalar_reduce(target, tile, nl.add, 1.0, nl.add)
        now = times_of_rules()
        told += (now - before).elements()
        before = now


def times_of_rules() -> Counter[str]:
    """How often each rule was broken in the run that goes on."""
    times: Counter[str] = Counter()
    findings = current_findings()
    for each in findings.all if findings is not None else ():
        times[each.rule] += each.count
    return times


def expected(steps: Any) -> list[set[str]]:
    """What each reading step may be told, where it is told something at all."""
    memory, found = Bytes(), []
    for what, one, other, first, count in steps:
        columns = columns_of(one, first, count)
        if what == "copy" and PLACES[other][0] != PLACES[one][0]:
            continue
        if what != "write":
            found.append(memory.rules_of_reading(one, columns))
        if what == "write":
            memory.write(one, columns)
        elif what == "copy":
            memory.write(other, columns)
    return [each for each in found if each]


@settings(max_examples=cases(5000))
@given(st.lists(STEP, max_size=12))
def test_reading_is_reported_exactly_where_bytes_are_missing(steps: Any) -> None:
    """Slices of tensors that overlap in part, beside and below each other; NK401 where nothing was ever there."""
    with nkitools.allow_findings("NK401", "NK204", reason="tensors are read in any order"):
        told: list[str] = []
        nkitools.simulate(lambda x: played(x, steps, told), X, rules="report")
    wanted = expected(steps)
    assert len(told) == len(wanted)
    assert all(rule in rules for rule, rules in zip(told, wanted, strict=True))


# --- what the message says -------------------------------------------------------------------------------------------


def test_the_message_names_both_tensors_and_their_places() -> None:
    """Who is read, who has overwritten it and in which line, their addresses, and the first byte that is lost."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        first = nl.ndarray((128, 8), nl.float32, address=(0, 0))
        second = nl.ndarray((64, 4), nl.float32, address=(64, 16))
        nisa.dma_copy(dst=first, src=x)
        nisa.memset(second, 1.0)  # overwrites
        nisa.tensor_copy(dst=second[:, 0:1], src=first[64:128, 0:1])
        nisa.dma_copy(dst=out, src=first)  # reads
        return out

    (finding,) = nkitools.simulate(kernel, X, rules="report").findings
    assert (finding.rule, finding.line) == ("NK204", line_of(kernel, "# reads"))
    assert finding.message == (
        "dma_copy: tensor `first` (SBUF, float32 [128, 8]) is read at partitions 0..127, bytes 0..31 of SBUF, after "
        "tensor `second` (SBUF, float32 [64, 4]) at partitions 64..127, bytes 16..31 of SBUF has overwritten it in "
        "line "
        f"{line_of(kernel, '# overwrites')}; the first byte lost is 16 of partition 64"
    )


def test_rotating_buffers_are_legal() -> None:
    """Two places for any number of tiles: each is used up before its place is written again."""

    def kernel(x: Any, places: int) -> Any:
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        tiles = []
        for i in range(6):
            tile = nl.ndarray((128, 8), nl.float32, address=(0, i % places * 32))
            nisa.dma_copy(dst=tile, src=x)
            tiles.append(tile)
            if i:
                nisa.tensor_tensor(dst=tile, data1=tile, data2=tiles[i - 1], op=nl.add)  # the one before
        nisa.dma_copy(dst=out, src=tiles[-1])
        return out

    run = nkitools.simulate(kernel, X, 2, rules="report")
    assert run.findings == []
    np.testing.assert_array_equal(run.outputs, 6 * X)
    findings = nkitools.simulate(kernel, X, 1, rules="report").findings
    told = [(each.rule, each.line, each.count) for each in findings]
    assert told == [("NK204", line_of(kernel, "# the one before"), 5)]


READERS = {
    "activation": lambda tile, out: nisa.activation(dst=out, op=nl.relu, data=tile),
    "tensor_reduce": lambda tile, out: nisa.tensor_reduce(dst=out[:, 0:1], op=nl.add, data=tile, axis=1),
    "a scalar operand": lambda tile, out: nisa.tensor_scalar(dst=out, data=out, op0=nl.add, operand0=tile[:, 0:1]),
    "in place": lambda tile, out: nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0),
    "a matmul": lambda tile, out: nisa.nc_matmul(nl.ndarray((8, 8), nl.float32, buffer=nl.psum), tile, out),
    "a pattern": lambda tile, out: nisa.tensor_copy(dst=out, src=tile.ap([[8, 128], [1, 8]])),
    "another dtype": lambda tile, out: nisa.tensor_copy(dst=out.view(nl.int32), src=tile.view(nl.int32)),
    "nl.copy": lambda tile, out: nl.copy(tile),
}


@pytest.mark.parametrize("name", READERS)
def test_every_way_of_reading_is_reported(name: str) -> None:
    """Fast and careful ways alike, though the tensor was wholly written once."""

    def kernel(x: Any) -> None:
        out = nl.zeros((128, 8), nl.float32)
        tile = nl.ndarray((128, 8), nl.float32, address=(0, 0))
        other = nl.ndarray((128, 1), nl.float32, address=(0, 0))
        for _ in range(2):
            nisa.dma_copy(dst=tile, src=x)
            nl.copy(tile)
        nisa.memset(other, 7.0)
        READERS[name](tile, out)

    run = nkitools.simulate(kernel, X, rules="report")
    assert [each.rule for each in run.findings] == ["NK204"]


def test_psum_is_shared_the_same_way() -> None:
    """A bank that another tile has been summed up in is lost; what lies in the next bank is not."""

    def kernel(x: Any, byte: int) -> Any:
        out = nl.ndarray((8, 8), x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        first = nl.ndarray((8, 8), nl.float32, buffer=nl.psum, address=(0, 2048))
        second = nl.ndarray((8, 8), nl.float32, buffer=nl.psum, address=(0, byte))
        nisa.nc_matmul(first, tile, tile, accumulate=False)
        nisa.nc_matmul(second, tile, tile, accumulate=False)
        nisa.dma_copy(dst=out, src=nl.copy(second))
        nisa.dma_copy(dst=out, src=nl.copy(first))
        return out

    assert nkitools.simulate(kernel, X, 4096, rules="report").findings == []
    assert "NK204" in [each.rule for each in nkitools.simulate(kernel, X, 2048, rules="report").findings]


def test_the_error_stops_the_kernel_at_the_read() -> None:
    """Under rules="error" nothing is computed of what is gone."""

    def kernel(x: Any) -> None:
        first = nl.ndarray((128, 8), nl.float32, address=(0, 0))
        second = nl.ndarray((128, 8), nl.float32, address=(0, 0))
        nisa.dma_copy(dst=first, src=x)
        nisa.dma_copy(dst=second, src=x)
        nl.copy(first)

    with pytest.raises(nkitools.KernelError, match="NK204 overlapping-lifetimes"):
        nkitools.simulate(kernel, X)
