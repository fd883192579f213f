"""What all_reduce, all_gather, reduce_scatter and all_to_all refuse."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from nkitools.dialects import modern as nki
from nkitools.dialects.modern import collectives as ncc
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from tests.isa.gathered import finding_of, judged, kernel_of, numbers, on_ranks, place


def refused(call: Any, shape: Sequence[int] = (4, 6), memory: str = "hbm", **keywords: Any) -> Any:
    """The finding of a collective from a [4, 6] source to a destination of ``shape``, on both of two ranks."""
    finding = finding_of(kernel_of(call, shape, memory), [(array,) for array in numbers(2, 4, 6)], **keywords)
    assert finding.rank == 0
    return finding


PAIR = ncc.ReplicaGroup([[0, 1]])
ARE_REFUSED: dict[str, tuple[str, str, Any, Any]] = {
    "no list": (
        "NK609",
        "must be a list of tensors",
        lambda src, dst: ncc.all_reduce(src, [dst], PAIR, nl.add),
        (4, 6),
    ),
    "no tensor": ("NK609", "must hold tensors", lambda src, dst: ncc.all_reduce([3], [dst], PAIR, nl.add), (4, 6)),
    "nothing": ("NK609", "at least one tensor", lambda src, dst: ncc.all_reduce([], [], PAIR, nl.add), (4, 6)),
    "pairs": ("NK609", "go in pairs", lambda src, dst: ncc.all_reduce([src, src], [dst], PAIR, nl.add), (4, 6)),
    "shape": (
        "NK109",
        r"must have shape \[4, 6\]",
        lambda src, dst: ncc.all_reduce([src], [dst], PAIR, nl.add),
        (6, 4),
    ),
    "gathered shape": ("NK109", r"\[8, 6\]", lambda src, dst: ncc.all_gather([src], [dst], PAIR, 0), (4, 12)),
    "scattered shape": (
        "NK109",
        r"\[2, 6\]",
        lambda src, dst: ncc.reduce_scatter([src], [dst], PAIR, 0, nl.add),
        (4, 6),
    ),
    "uneven": ("NK113", "evenly", lambda src, dst: ncc.all_to_all([src[0:3, :]], [dst[0:3, :]], PAIR, 0), (4, 6)),
    "dimension": ("NK609", "must be 0 here", lambda src, dst: ncc.all_gather([src], [dst], PAIR, 1), (4, 12)),
    "dimension True": ("NK609", "must be 0 here", lambda src, dst: ncc.all_to_all([src], [dst], PAIR, False), (4, 6)),
    "operator": ("NK306", "nl.maximum are", lambda src, dst: ncc.all_reduce([src], [dst], PAIR, nl.multiply), (4, 6)),
    "no operator": ("NK306", "not a math operator", lambda src, dst: ncc.all_reduce([src], [dst], PAIR, 3), (4, 6)),
    "no group": ("NK609", "ReplicaGroup", lambda src, dst: ncc.all_reduce([src], [dst], [[0, 1]], nl.add), (4, 6)),
    "rank": (
        "NK609",
        r"rank 2; this run has 2 ranks, 0\.\.1",
        lambda src, dst: ncc.all_reduce([src], [dst], ncc.ReplicaGroup([[0, 1, 2]]), nl.add),
        (4, 6),
    ),
    "priority": ("NK606", "NeuronCore-v4", lambda src, dst: ncc.all_reduce([src], [dst], PAIR, nl.add, 1), (4, 6)),
    "priority 4": ("NK609", "0, 1, 2 or 3", lambda src, dst: ncc.all_reduce([src], [dst], PAIR, nl.add, 4), (4, 6)),
    "name": ("NK609", "string", lambda src, dst: ncc.all_reduce([src], [dst], PAIR, nl.add, name=3), (4, 6)),
    "argument": ("NK609", "collective_dim", lambda src, dst: ncc.all_gather([src], [dst], PAIR), (8, 6)),
    "index": (
        "NK609",
        "by an index",
        lambda src, dst: ncc.all_reduce([src.vector_select(0, rows())], [dst], PAIR, nl.add),
        (4, 6),
    ),
}


def rows() -> Any:
    index = nl.ndarray((4, 1), nl.uint32, buffer=nl.sbuf)
    nisa.memset(index, 0)
    return index


@pytest.mark.parametrize("case", ARE_REFUSED)
def test_what_is_refused(case: str) -> None:
    """With the rule that says why, on the first rank that comes there."""
    rule, sentence, call, shape = ARE_REFUSED[case]
    finding = refused(call, shape)
    assert finding.rule == rule
    assert re.search(sentence, finding.message) or re.search(sentence, finding.remedy), finding.message


def test_groups_of_different_sizes() -> None:
    """What is gathered follows from the size of the group; a reduction does not mind."""
    arrays = numbers(3, 4, 6)
    group = ncc.ReplicaGroup([[0], [1, 2]])
    gathered = kernel_of(lambda src, dst: ncc.all_gather([src], [dst], group, 0), (8, 6))
    assert "different sizes" in finding_of(gathered, [(array,) for array in arrays]).message
    added = on_ranks(kernel_of(lambda src, dst: ncc.all_reduce([src], [dst], group, nl.add), (4, 6)), arrays).outputs
    np.testing.assert_array_equal(np.stack(added), [arrays[0], arrays[1] + arrays[2], arrays[1] + arrays[2]])


@pytest.mark.parametrize("call", [ncc.all_reduce, ncc.reduce_scatter])
@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_integers_of_32_bits_are_not_reduced(call: Any, dtype: Any) -> None:
    """NCC_EVRF061: the collective engine has no datapath for them."""
    dims = {"collective_dim": 0} if call is ncc.reduce_scatter else {}
    kernel = kernel_of(lambda src, dst: call([src], [dst], ncc.ReplicaGroup([[0]]), op=nl.add, **dims), (4, 6))
    finding = finding_of(kernel, [(np.ones((4, 6), dtype),)])
    assert finding.rule == "NK301"
    assert "EVRF061" in finding.message


def test_dtypes_that_differ() -> None:
    """Nothing is cast on the way."""
    kernel = kernel_of(lambda src, dst: ncc.all_reduce([src], [place((4, 6), nl.bfloat16)], PAIR, nl.add), (4, 6))
    assert finding_of(kernel, [(array,) for array in numbers(2, 4, 6)]).rule == "NK301"


class TestInSbuf:
    """What only HBM has."""

    def test_memories_are_not_mixed(self) -> None:
        """From SBUF to HBM is two instructions."""
        kernel = kernel_of(
            lambda src, dst: ncc.all_reduce([src], [place((4, 6), src.dtype)], PAIR, nl.add), (4, 6), "sbuf"
        )
        finding = finding_of(kernel, [(array,) for array in numbers(2, 4, 6)])
        assert finding.rule == "NK201"
        assert "all in SBUF" in finding.message

    def test_one_pair_of_tensors(self) -> None:
        """Coalesced calls are for HBM."""
        finding = refused(lambda src, dst: ncc.all_reduce([src, src], [dst, dst], PAIR, nl.add), memory="sbuf")
        assert finding.rule == "NK609"
        assert "HBM only" in finding.message

    def test_two_dimensions(self) -> None:
        """A single free dimension."""
        finding = refused(
            lambda src, dst: ncc.all_reduce([src.reshape((4, 2, 3))], [dst.reshape((4, 2, 3))], PAIR, nl.add),
            memory="sbuf",
        )
        assert finding.rule == "NK110"

    def test_no_more_partitions_than_there_are(self) -> None:
        """Two times 96 rows are no tile."""
        kernel = kernel_of(lambda src, dst: ncc.all_gather([src], [dst], PAIR, 0), (192, 2), "sbuf")
        assert finding_of(kernel, [(array,) for array in numbers(2, 96, 2)]).rule == "NK101"

    def test_all_to_all_is_for_hbm(self) -> None:
        """The docstring: not currently supported."""
        assert refused(lambda src, dst: ncc.all_to_all([src], [dst], PAIR, 0), memory="sbuf").rule == "NK201"

    def test_psum_is_out_of_reach(self) -> None:
        """For all of them."""
        kernel = kernel_of(
            lambda src, dst: ncc.all_reduce([nl.ndarray((4, 6), nl.float32, buffer=nl.psum)], [dst], PAIR, nl.add),
            (4, 6),
        )
        assert finding_of(kernel, [(array,) for array in numbers(2, 4, 6)]).rule == "NK201"


def test_priority_on_neuroncore_v4() -> None:
    """It changes no result."""
    arrays = numbers(2, 4, 6)
    kernel = kernel_of(lambda src, dst: ncc.all_reduce([src], [dst], PAIR, nl.add, priority=3), (4, 6))
    assert all((got == sum(arrays)).all() for got in on_ranks(kernel, arrays, chip="trn3").outputs)


def test_what_was_never_written_is_not_sent() -> None:
    """NK401, on the rank that has not written it."""

    def kernel(x: Any, loads: Any) -> Any:
        src, dst = place(x.shape, x.dtype), place(x.shape, x.dtype)
        if loads:
            nisa.dma_copy(dst=src, src=x)
        ncc.all_reduce([src], [dst], PAIR, nl.add)
        return dst

    (first, second) = numbers(2, 4, 6)
    finding = finding_of(kernel, [(first, True), (second, False)])
    assert (finding.rule, finding.rank) == ("NK401", 1)


def test_a_named_collective() -> None:
    """For schedules: "All nki.collectives APIs now accept an optional name"."""
    arrays = numbers(2, 4, 6)
    kernel = kernel_of(lambda src, dst: ncc.all_reduce([src], [dst], PAIR, nl.add, name="sum"), (4, 6))
    run = on_ranks(kernel, arrays)
    assert [[name for _, _, name in record.labels] for record in run.records] == [["sum"], ["sum"]]


def test_schedules_know_collectives() -> None:
    """An edge may name one; a name that no instruction has is said of each rank."""

    @nki.jit
    def kernel(x: Any) -> Any:
        dst, out = place(x.shape, x.dtype), place(x.shape, x.dtype)
        ncc.all_reduce([x], [dst], PAIR, nl.add, name="sum")
        nisa.dma_copy(dst=out, src=dst, name="store")
        return out

    arrays = numbers(2, 4, 6)
    assert judged(on_ranks(kernel.with_schedule([("store", "sum")]), arrays)) == []
    wrong = judged(on_ranks(kernel.with_schedule([("sum", "store")]), arrays, rules="report"))
    assert [(each.rule, each.rank) for each in wrong] == [("NK609", 0), ("NK609", 1)]
