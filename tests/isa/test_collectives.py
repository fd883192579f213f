"""all_reduce, all_gather, reduce_scatter and all_to_all: against NumPy, and what they refuse.

The expected values are computed from the definitions in the docstrings, rank by rank.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nkitools
from nkitools import options
from nkitools.dialects import modern as nki
from nkitools.dialects.modern import collectives as ncc
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from tests.isa.gathered import finding_of, kernel_of, numbers, on_ranks, place

GROUPS = [[[0, 1, 2, 3]], [[0, 2], [1, 3]], [[0], [1], [2], [3]], [[3, 1], [0, 2]]]
IN_HBM = [("shared_hbm", 1), ("shared_hbm", 2), ("private_hbm", 1)]  # memory, cores a rank
IN_SBUF = [("sbuf", 1), ("sbuf", 2)]
OPERATORS = {"add": np.add, "minimum": np.minimum, "maximum": np.maximum}
DTYPES = [np.float32, ml_dtypes.bfloat16, np.float16, np.int8]


def peers(groups: list[list[int]], rank: int) -> list[int]:
    return next(group for group in groups if rank in group)


@pytest.mark.parametrize("groups", GROUPS, ids=str)
class TestAgainstNumPy:
    """Every group shape, on one and on two cores a rank, in every memory that the collective has."""

    @pytest.mark.parametrize(("memory", "grid"), [*IN_HBM, *IN_SBUF])
    @pytest.mark.parametrize("op", OPERATORS)
    def test_all_reduce(self, groups: list[list[int]], grid: int, memory: str, op: str) -> None:
        """Each rank has the reduction of its group."""
        arrays = numbers(4, 8, 6)
        group = ncc.ReplicaGroup(groups)
        kernel = kernel_of(
            lambda src, dst: ncc.all_reduce([src], [dst], group, getattr(nl, op)), arrays[0].shape, memory
        )
        for rank, got in enumerate(on_ranks(kernel, arrays, grid=grid).outputs):
            expected = OPERATORS[op].reduce([arrays[peer] for peer in peers(groups, rank)])
            np.testing.assert_array_equal(got, expected)

    @pytest.mark.parametrize(
        ("memory", "grid", "dim"), [*((*each, 0) for each in (*IN_HBM, *IN_SBUF)), *((*each, 1) for each in IN_SBUF)]
    )
    def test_all_gather(self, groups: list[list[int]], grid: int, memory: str, dim: int) -> None:
        """Each rank has the sources of its group, in the order of the group."""
        arrays = numbers(4, 8, 6)
        count = len(groups[0])
        shape = (8 * count, 6) if dim == 0 else (8, 6 * count)
        group = ncc.ReplicaGroup(groups)
        kernel = kernel_of(lambda src, dst: ncc.all_gather([src], [dst], group, dim), shape, memory)
        for rank, got in enumerate(on_ranks(kernel, arrays, grid=grid).outputs):
            expected = np.concatenate([arrays[peer] for peer in peers(groups, rank)], axis=dim)
            np.testing.assert_array_equal(got, expected)

    @pytest.mark.parametrize(("memory", "grid"), [*IN_HBM, *IN_SBUF])
    def test_reduce_scatter(self, groups: list[list[int]], grid: int, memory: str) -> None:
        """Each rank has its part of the reduction of its group."""
        arrays = numbers(4, 8, 6)
        group = ncc.ReplicaGroup(groups)
        shape = (8 // len(groups[0]), 6)
        kernel = kernel_of(lambda src, dst: ncc.reduce_scatter([src], [dst], group, 0, nl.add), shape, memory)
        for rank, got in enumerate(on_ranks(kernel, arrays, grid=grid).outputs):
            mine = peers(groups, rank)
            total = sum(arrays[peer] for peer in mine)
            np.testing.assert_array_equal(got, np.split(total, len(mine))[mine.index(rank)])

    @pytest.mark.parametrize(("memory", "grid"), IN_HBM)
    def test_all_to_all(self, groups: list[list[int]], grid: int, memory: str) -> None:
        """Part n of a rank's source is with rank n of its group."""
        arrays = numbers(4, 8, 6)
        group = ncc.ReplicaGroup(groups)
        kernel = kernel_of(lambda src, dst: ncc.all_to_all([src], [dst], group, 0), (8, 6), memory)
        for rank, got in enumerate(on_ranks(kernel, arrays, grid=grid).outputs):
            mine = peers(groups, rank)
            parts = [np.split(arrays[peer], len(mine))[mine.index(rank)] for peer in mine]
            np.testing.assert_array_equal(got, np.concatenate(parts))


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype: Any) -> None:
    """Sums are cast to the destination's dtype once: 128 bfloat16 ones and a half are 128 or 129, not 128 in steps."""
    arrays = numbers(4, 4, 3, dtype=dtype)
    group = ncc.ReplicaGroup([[0, 1, 2, 3]])
    kernel = kernel_of(lambda src, dst: ncc.all_reduce([src], [dst], group, nl.add), (4, 3))
    wide = sum(array.astype(np.float64) for array in arrays)
    for got in on_ranks(kernel, arrays).outputs:
        assert got.dtype == dtype
        np.testing.assert_array_equal(got.astype(np.float64), wide)


def test_a_sum_is_rounded_once() -> None:
    """256 + 1 is 256 in bfloat16, yet 256 + 1 + 1 + 1 + 1 is 260: the reduction goes on in float32."""
    arrays = [np.full((1, 2), value, ml_dtypes.bfloat16) for value in (256, 1, 1, 1, 1)]
    group = ncc.ReplicaGroup([range(5)])
    kernel = kernel_of(lambda src, dst: ncc.all_reduce([src], [dst], group, nl.add), (1, 2))
    assert all((got.astype(np.float32) == 260).all() for got in on_ranks(kernel, arrays).outputs)


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_reduce_scatter_and_all_gather_are_all_reduce(data: st.DataObject) -> None:
    """The runtime's guide: "AllReduce can be seen as a concatenation of ReduceScatter followed by AllGather"."""
    size = data.draw(st.sampled_from([1, 2, 3]))
    ranks = data.draw(st.permutations(range(size * 2)))
    group = ncc.ReplicaGroup([ranks[:size], ranks[size:]])
    arrays = numbers(size * 2, size * 2, data.draw(st.integers(1, 5)))

    def both(x: Any) -> Any:
        src, part = place(x.shape, x.dtype), place((x.shape[0] // size, x.shape[1]), x.dtype)
        once, twice = place(x.shape, x.dtype), place(x.shape, x.dtype)
        nisa.dma_copy(dst=src, src=x)
        ncc.all_reduce([src], [once], group, nl.add)
        ncc.reduce_scatter([src], [part], group, 0, nl.add)
        ncc.all_gather([part], [twice], group, 0)
        return once, twice

    for once, twice in on_ranks(both, arrays).outputs:
        np.testing.assert_array_equal(once, twice)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 4), st.integers(1, 3))
def test_all_to_all_twice_is_nothing(size: int, rows: int) -> None:
    """It is a transposition of parts and ranks."""
    arrays = numbers(size, size * rows, 2)
    group = ncc.ReplicaGroup([range(size)])

    def twice(x: Any) -> Any:
        once, back = place(x.shape, x.dtype), place(x.shape, x.dtype)
        ncc.all_to_all([x], [once], group, 0)
        ncc.all_to_all([once], [back], group, 0)
        return back

    for got, array in zip(on_ranks(twice, arrays).outputs, arrays, strict=True):
        np.testing.assert_array_equal(got, array)


def test_a_coalesced_call() -> None:
    """Several pairs of different shapes and dtypes, in one instruction."""

    def kernel(x: Any, y: Any) -> Any:
        group = ncc.ReplicaGroup([[0, 1]])
        xs, ys = place((4, 3), x.dtype), place((2, 2, 5), y.dtype)
        ncc.all_gather(srcs=[x, y], dsts=[xs, ys], replica_group=group, collective_dim=0)
        return xs, ys

    arrays, others = numbers(2, 2, 3), numbers(2, 1, 2, 5, dtype=np.int32)
    run = nkitools.simulate(kernel, *zip(arrays, others, strict=True), ranks=2)
    for xs, ys in run.outputs:
        np.testing.assert_array_equal(xs, np.concatenate(arrays))
        np.testing.assert_array_equal(ys, np.concatenate(others))
    assert [(each.name, each.rank, len(each.operands)) for each in run.instructions] == [
        ("all_gather", 0, 4),
        ("all_gather", 1, 4),
    ]


def test_parts_of_tensors() -> None:
    """Views are sent and received in place; the rest of the destination stays unwritten."""

    def kernel(x: Any) -> Any:
        out = place((6, 4), x.dtype)
        ncc.all_gather([x[1:3, :]], [out[1:5, :]], ncc.ReplicaGroup([[0, 1]]), 0)
        return out[1:5, :]

    arrays = numbers(2, 3, 4)
    for got in on_ranks(kernel, arrays).outputs:
        np.testing.assert_array_equal(got, np.concatenate([array[1:3] for array in arrays]))


def test_two_cores_send_tiles_of_their_own() -> None:
    """In SBUF core c of a rank exchanges with core c of the others."""

    def kernel(x: Any) -> Any:
        core = nl.program_id(0)
        mine, all_of_them = nl.load(x[nl.ds(4 * core, 4), :]), place((4, 6), x.dtype, "sbuf")
        ncc.all_gather([mine], [all_of_them], ncc.ReplicaGroup([[0, 1]]), 1)
        out = place((8, 6), x.dtype)
        nisa.dma_copy(dst=out[nl.ds(4 * core, 4), :], src=all_of_them)
        return out

    arrays = numbers(2, 8, 3)
    for got in on_ranks(kernel, arrays, grid=2).outputs:
        np.testing.assert_array_equal(got, np.concatenate(arrays, axis=1))


def halves(x: Any) -> Any:
    """Both cores write a half of what is sent, and read the other half of what is received."""
    core = nl.program_id(0)
    sent, received, out = (place(x.shape, x.dtype) for _ in range(3))
    mine, other = nl.ds(4 * core, 4), nl.ds(4 * (1 - core), 4)
    nisa.dma_copy(dst=sent[mine, :], src=x[mine, :])
    ncc.all_reduce([sent], [received], ncc.ReplicaGroup([[0, 1, 2]]), nl.add)
    nisa.dma_copy(dst=out[other, :], src=received[other, :])
    return out


@pytest.mark.parametrize("seed", [None, *range(12)])
def test_the_cores_of_a_rank_wait_for_each_other(seed: int | None) -> None:
    """No race (NK502), and one result, in whatever order the six programs run."""
    arrays = numbers(3, 8, 5)
    with options.override(schedule_seed=None if seed is None else str(seed)):
        run = on_ranks(halves, arrays, grid=2)
    assert run.findings == []
    assert all((got == sum(arrays)).all() for got in run.outputs)


# --- what is refused -------------------------------------------------------------------------------------------------


def refused(call: Any, shape: Sequence[int] = (4, 6), memory: str = "shared_hbm", **keywords: Any) -> Any:
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
    assert on_ranks(kernel.with_schedule([("store", "sum")]), arrays).findings == []
    wrong = on_ranks(kernel.with_schedule([("sum", "store")]), arrays, rules="report").findings
    assert [(each.rule, each.rank) for each in wrong] == [("NK609", 0), ("NK609", 1)]


# --- ranks that do not agree -----------------------------------------------------------------------------------------


def each_its_own(x: Any, what: str) -> Any:
    """What a rank calls follows from its argument."""
    dst = place(x.shape, x.dtype)
    match what:
        case "add":
            ncc.all_reduce([x], [dst], ncc.ReplicaGroup([[0, 1, 2]]), nl.add)
        case "maximum":
            ncc.all_reduce([x], [dst], ncc.ReplicaGroup([[0, 1, 2]]), nl.maximum)
        case "to all":
            ncc.all_to_all([x], [dst], ncc.ReplicaGroup([[0, 1, 2]]), 0)
        case "order":
            ncc.all_reduce([x], [dst], ncc.ReplicaGroup([[2, 1, 0]]), nl.add)
        case "pair":
            ncc.all_reduce([x], [dst], ncc.ReplicaGroup([[0, 1], [2]]), nl.add)
        case "sbuf":
            mine, sums = nl.load(x), place(x.shape, x.dtype, "sbuf")
            ncc.all_reduce([mine], [sums], ncc.ReplicaGroup([[0, 1, 2]]), nl.add)
    return dst


class TestDisagreement:
    """What differs is said of the rank that differs from most, with the lines of both."""

    @pytest.mark.parametrize("wrong", [0, 1, 2])
    @pytest.mark.parametrize(
        ("what", "rule", "sentence"),
        [
            ("maximum", "NK609", "op must be the same on all ranks of a group: nl.maximum on rank"),
            ("to all", "NK504", "the collective must be the same on all ranks of a group: all_to_all on rank"),
            ("sbuf", "NK201", "the memory must be the same on all ranks of a group: SBUF on rank"),
        ],
    )
    def test_one_of_three(self, wrong: int, what: str, rule: str, sentence: str) -> None:
        """Whichever comes last."""
        arrays = numbers(3, 3, 2)
        calls = ["add", "add", "add"]
        calls[wrong] = what
        finding = finding_of(each_its_own, list(zip(arrays, calls, strict=True)))
        assert (finding.rule, finding.rank) == (rule, wrong)
        assert sentence in finding.message
        others = ", ".join(str(rank) for rank in range(3) if rank != wrong)
        assert f"on ranks {others} at test_collectives.py:" in finding.message

    def test_shapes(self) -> None:
        """NK109."""
        arrays = [*numbers(2, 3, 2), *numbers(1, 6, 2)]
        finding = finding_of(each_its_own, [(array, "add") for array in arrays])
        assert (finding.rule, finding.rank) == ("NK109", 2)
        assert "srcs [[6, 2]], dsts [[6, 2]] on rank 2" in finding.message

    def test_dtypes(self) -> None:
        """NK301; of two and one the two are right."""
        arrays = [*numbers(1, 3, 2, dtype=np.float16), *numbers(2, 3, 2)]
        finding = finding_of(each_its_own, [(array, "add") for array in arrays])
        assert (finding.rule, finding.rank) == ("NK301", 0)

    @pytest.mark.parametrize(("what", "rule"), [("order", "NK609"), ("pair", "NK504")])
    def test_groups(self, what: str, rule: str) -> None:
        """A rank that waits for another, which waits for it in another group."""
        arrays = numbers(3, 3, 2)
        finding = finding_of(each_its_own, list(zip(arrays, ["add", what, "add"], strict=True)))
        assert (finding.rule, finding.rank) == (rule, 1)
        assert "[0, 1, 2]" in finding.message

    def test_a_rank_that_does_not_come(self) -> None:
        """NK504 says who waits, in what, where, and with whom."""
        arrays = numbers(3, 3, 2)
        finding = finding_of(each_its_own, list(zip(arrays, ["add", "nothing", "add"], strict=True)))
        assert (finding.rule, finding.rank) == ("NK504", 0)
        assert re.search(
            r"rank 0 waits in nki.collectives.all_reduce with ranks \[0, 1, 2\] at test_collectives.py:\d+; "
            "rank 1 has ended; rank 2 waits",
            finding.message,
        )

    def test_a_core_that_does_not_come(self) -> None:
        """On two cores both call a collective of shared HBM."""

        def kernel(x: Any) -> Any:
            dst = place(x.shape, x.dtype)
            if nl.program_id(0) == 0:
                ncc.all_reduce([x], [dst], PAIR, nl.add)
            return dst

        finding = finding_of(kernel, [(array,) for array in numbers(2, 4, 6)], grid=2)
        assert finding.rule == "NK504"
        assert "waits in nki.collectives.all_reduce for the other core of its rank" in finding.message
        assert "rank 1, program 1 has ended" in finding.message


@pytest.mark.parametrize("seed", [None, *range(10)])
def test_groups_that_change_from_call_to_call(seed: int | None) -> None:
    """Pairs, all, other pairs: a rank that has gone on asks for one that is only about to go on."""
    pairs, every, others = (ncc.ReplicaGroup(lists) for lists in ([[0, 1], [2, 3]], [[0, 1, 2, 3]], [[0, 2], [1, 3]]))

    def kernel(x: Any) -> Any:
        for group in (pairs, every, others):
            sums = place(x.shape, x.dtype)
            ncc.all_reduce([x], [sums], group, nl.add)
            x = sums
        return x

    arrays = numbers(4, 2, 3)
    with options.override(schedule_seed=None if seed is None else str(seed)):
        run = on_ranks(kernel, arrays, grid=2)
    assert run.findings == []
    assert all((got == 4 * sum(arrays)).all() for got in run.outputs)


class TestReplicaGroup:
    """The lists of ranks."""

    @pytest.mark.parametrize("form", [[[0, 1], [2]], ((0, 1), (2,)), [range(2), (np.int64(2),)]])
    def test_forms(self, form: Any) -> None:
        """Lists, tuples and ranges; equal where they name the same ranks."""
        group = ncc.ReplicaGroup(form)
        assert group == ncc.ReplicaGroup([[0, 1], [2]]) != ncc.ReplicaGroup([[1, 0], [2]])
        assert hash(group) == hash(ncc.ReplicaGroup(group))
        assert isinstance(group, nl.NKIObject)

    @pytest.mark.parametrize(
        ("form", "sentence"),
        [
            (3, "list of lists"),
            ([0, 1], "list of lists"),
            ([], "without ranks"),
            ([[0], []], "without ranks"),
            ([[0, -1]], "-1"),
            ([[0, True]], "True"),
            ([["0"]], "'0'"),
            ([[0, 0]], "rank 0 twice"),
            ([[0, 1], [2, 1]], "rank 1 twice"),
        ],
    )
    def test_what_is_none(self, form: Any, sentence: str) -> None:
        """NK609 at the line that makes it, also outside of a kernel."""
        with pytest.raises(nkitools.KernelError, match="NK609") as raised:
            ncc.ReplicaGroup(form)
        assert sentence in str(raised.value)
        assert raised.value.finding.file == __file__

    def test_a_rank_in_no_group(self) -> None:
        """It may run, but not call the collective."""
        kernel = kernel_of(lambda src, dst: ncc.all_reduce([src], [dst], PAIR, nl.add), (4, 6))
        finding = finding_of(kernel, [(array,) for array in numbers(3, 4, 6)])
        assert (finding.rule, finding.rank) == ("NK609", 2)
        assert "rank 2 is in none of the groups [[0, 1]]" in finding.message


def test_full_precision_goes_with_what_is_sent() -> None:
    """The digits beyond bfloat16 arrive too."""
    third = np.full((2, 2), 1 / 3, np.float32)

    def kernel(x: Any) -> Any:
        src, dst = place((2, 2), nl.bfloat16), place((2, 2), nl.bfloat16)
        nisa.dma_copy(dst=src, src=x)
        ncc.all_reduce([src], [dst], PAIR, nl.add)
        return dst

    with options.override(precision="full"):
        outputs = on_ranks(kernel, [third, third]).outputs
    assert all((got == third + third).all() for got in outputs)
    rounded = on_ranks(kernel, [third, third]).outputs[0]
    assert rounded.dtype == ml_dtypes.bfloat16
    assert (rounded.astype(np.float32) != third + third).all()
