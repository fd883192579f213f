"""all_gather_v and all_to_all_v: against NumPy for drawn counts and places, and what they refuse."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
from nkitools.dialects.modern import collectives as ncc
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from tests.isa.gathered import finding_of, place
from tests.nki_versions import SINCE_0_7

FOUR = ncc.ReplicaGroup([[0, 1, 2, 3]])
BEFORE = -7  # what destinations and recv_counts hold before


def exchange(call: Any, size: int, memory: str = "hbm", group: Any = FOUR, **flags: Any) -> Any:
    """A kernel that calls ``call`` with metadata in ``memory``, and returns ``dst`` and the metadata afterwards."""

    def kernel(x: Any, table: Any) -> Any:
        first, core = nl.program_id(0) == 0, nl.program_id(0)
        dst, known = place((size,), x.dtype), place(table.shape, table.dtype)
        filling = place((1, size), x.dtype, "sbuf")
        nisa.memset(filling, BEFORE)
        if memory == "sbuf":
            metadata = place((1, *table.shape), table.dtype, "sbuf")
            nisa.dma_copy(dst=metadata, src=table)
        else:
            metadata = place(table.shape, table.dtype)
            if first:
                nisa.dma_copy(dst=metadata, src=table)
        if first:
            nisa.dma_copy(dst=dst, src=filling)
        call([x], [dst], group, metadata, **flags)
        if core == nl.num_programs(0) - 1:
            nisa.dma_copy(dst=known, src=metadata)
        return dst, known

    return kernel


def run(kernel: Any, sources: list[Any], tables: list[Any], **keywords: Any) -> Any:
    tables = [np.asarray(table, np.uint32) for table in tables]
    return nkitools.simulate(kernel, *zip(sources, tables, strict=True), ranks=len(sources), **keywords)


def flat(count: int, size: int, dtype: Any = np.float32) -> list[Any]:
    return [np.arange(1, size + 1).astype(dtype) * (rank + 1) for rank in range(count)]


chunks = st.tuples(st.integers(0, 6), st.integers(0, 4))  # count, displacement: within 10 elements


class TestAllGatherV:
    """One chunk a rank, the same to all."""

    @given(st.lists(chunks, min_size=4, max_size=4), st.booleans(), st.sampled_from(["hbm", "sbuf"]))
    def test_against_numpy(self, sent: list[tuple[int, int]], known: bool, memory: str) -> None:
        """Slot s begins with what rank s has sent; the rest stays, and so does row 2 where counts are known."""
        sources = flat(4, 10)
        # Only the first column of rows 0 and 1 counts.
        tables = [[[count, 99, 99, 99], [start, 99, 99, 99], [5, 5, 5, 5]] for count, start in sent]
        kernel = exchange(ncc.all_gather_v, 24, memory, recv_counts_known=known)
        result = run(kernel, sources, tables, grid=2)
        expected = np.full((4, 6), BEFORE, np.float32)
        for rank, (count, start) in enumerate(sent):
            expected[rank, :count] = sources[rank][start : start + count]
        counts = [5] * 4 if known else [count for count, _ in sent]
        for rank, (got, table) in enumerate(result.outputs):
            np.testing.assert_array_equal(got, expected.reshape(-1))
            np.testing.assert_array_equal(table, [*tables[rank][:2], counts])

    def test_the_limits_of_the_reference(self) -> None:
        """Four ranks, two cores each, no has_rdispls."""
        sources, tables = flat(4, 8), [np.zeros((3, 4), np.uint32)] * 4
        on_one = finding_of(exchange(ncc.all_gather_v, 8), list(zip(sources, tables, strict=True)))
        assert (on_one.rule, "LNC=2" in on_one.message) == ("NK613", True)
        pairs = exchange(ncc.all_gather_v, 8, group=ncc.ReplicaGroup([[0, 1], [2, 3]]))
        two = [np.zeros((3, 2), np.uint32)] * 4
        finding = finding_of(pairs, list(zip(sources, two, strict=True)), grid=2)
        assert (finding.rule, "exactly 4 ranks, it has 2" in finding.message) == ("NK609", True)
        placed = exchange(ncc.all_gather_v, 8, has_rdispls=True)
        four = [np.zeros((4, 4), np.uint32)] * 4
        finding = finding_of(placed, list(zip(sources, four, strict=True)), grid=2)
        assert (finding.rule, "has_rdispls" in finding.message) == ("NK609", True)


class TestAllToAllV:
    """A chunk for each rank."""

    @given(st.data())
    @pytest.mark.parametrize("grid", [1, 2])
    def test_against_numpy(self, grid: int, data: st.DataObject) -> None:
        """Zero counts among them; three or four rows of metadata; groups in any order."""
        size = data.draw(st.integers(1, 3))
        order = data.draw(st.permutations(range(2 * size)))
        groups = [order[:size], order[size:]]
        rows = data.draw(st.sampled_from([3, 4]))
        column = st.lists(st.lists(chunks, min_size=size, max_size=size), min_size=2 * size, max_size=2 * size)
        sent = data.draw(column)
        dtype = data.draw(st.sampled_from([np.float32, ml_dtypes.bfloat16, np.int32]))
        sources = flat(2 * size, 10, dtype)
        tables = []
        for mine in sent:
            table = np.full((rows, size), 77)
            table[0], table[1] = zip(*mine, strict=True)
            tables.append(table)
        memory = data.draw(st.sampled_from(["hbm", "sbuf"]))
        kernel = exchange(ncc.all_to_all_v, 6 * size, memory, ncc.ReplicaGroup(groups))
        result = run(kernel, sources, tables, grid=grid)
        for rank, (got, table) in enumerate(result.outputs):
            group = next(each for each in groups if rank in each)
            expected = np.full((size, 6), BEFORE).astype(dtype)
            for slot, sender in enumerate(group):
                count, start = sent[sender][group.index(rank)]
                expected[slot, :count] = sources[sender][start : start + count]
                assert table[2, slot] == count
            np.testing.assert_array_equal(got, expected.reshape(-1))

    @pytest.mark.parametrize(("chip", "grid"), [("trn3", 2), pytest.param("trn2", 1, marks=SINCE_0_7)])
    def test_places_of_ones_own(self, chip: str, grid: int) -> None:
        """``has_rdispls``: packed one behind the other."""
        counts = np.array([[1, 0, 2, 3], [2, 2, 0, 1], [0, 3, 1, 1], [1, 1, 1, 1]])  # [sender, receiver]
        sources = flat(4, 8)
        tables = []
        for rank in range(4):
            starts = np.concatenate([[0], np.cumsum(counts[rank])[:-1]])
            places = np.concatenate([[0], np.cumsum(counts[:, rank])[:-1]])
            tables.append(np.stack([counts[rank], starts, [9] * 4, places]))
        kernel = exchange(ncc.all_to_all_v, 8, has_rdispls=True)
        for rank, (got, table) in enumerate(run(kernel, sources, tables, grid=grid, chip=chip).outputs):
            parts = [np.split(sources[sender], np.cumsum(counts[sender]))[rank] for sender in range(4)]
            packed = np.concatenate(parts)
            np.testing.assert_array_equal(got[: len(packed)], packed)
            assert (got[len(packed) :] == BEFORE).all()
            np.testing.assert_array_equal(table[2], counts[:, rank])

    def test_the_limits_of_neuroncore_v4(self) -> None:
        """Two cores and whole chips; elsewhere there is no has_rdispls before NKI 0.7."""
        arguments = list(zip(flat(2, 8), [np.zeros((3, 2), np.uint32)] * 2, strict=True))
        pair = ncc.ReplicaGroup([[0, 1]])
        assert finding_of(exchange(ncc.all_to_all_v, 8, group=pair), arguments, chip="trn3").rule == "NK613"
        finding = finding_of(exchange(ncc.all_to_all_v, 8, group=pair), arguments, chip="trn3", grid=2)
        assert "whole chips, 4 each; it is [0, 1]" in finding.message
        four_rows = [(x, np.zeros((4, 2), np.uint32)) for x, _ in arguments]
        placed = exchange(ncc.all_to_all_v, 8, group=pair, has_rdispls=True)
        assert finding_of(placed, four_rows, chip="trn2", nki_version="0.6").rule == "NK606"

    @pytest.mark.parametrize(
        ("table", "rule", "sentence", "rank"),
        [
            ([[5, 0], [4, 0], [0, 0]], "NK402", "column 0 of `metadata_tensor` sends 5 elements from 4 on", 0),
            ([[0, 5], [0, 0], [0, 0]], "NK402", "rank number 0 of the group sends 5 elements", 1),
        ],
    )
    def test_chunks_that_are_too_long(self, table: Any, rule: str, sentence: str, rank: int) -> None:
        """For the source, on the rank that sends; for the slot, on the one that receives."""
        kernel = exchange(ncc.all_to_all_v, 8, group=ncc.ReplicaGroup([[0, 1]]))
        tables = [np.array(table, np.uint32), np.zeros((3, 2), np.uint32)]
        finding = finding_of(kernel, list(zip(flat(2, 8), tables, strict=True)))
        assert (finding.rule, finding.rank) == (rule, rank)
        assert sentence in finding.message

    def test_chunks_that_overlap(self) -> None:
        """NK607: nobody says which of them stays."""
        table = np.array([[2, 0, 0, 0], [0] * 4, [0] * 4, [0, 1, 6, 6]], np.uint32)
        kernel = exchange(ncc.all_to_all_v, 8, has_rdispls=True)
        with pytest.raises(nkitools.NotModelled, match="chunks overlap in"):
            run(kernel, flat(4, 8), [table] * 4, grid=2, chip="trn3")


def call_with(metadata: Any = None, **flags: Any) -> Any:
    """A kernel of two ranks whose metadata ``metadata`` makes of the table."""

    def kernel(x: Any, table: Any) -> Any:
        dst = place((8,), x.dtype)
        ncc.all_to_all_v([x], [dst], ncc.ReplicaGroup([[0, 1]]), metadata(table) if metadata else table, **flags)
        return dst

    return kernel


@pytest.mark.parametrize(
    ("kernel", "rule"),
    [
        (call_with(lambda table: 3), "NK609"),
        (call_with(lambda table: table.reshape((6,))), "NK109"),
        (call_with(lambda table: table[0:2, :]), "NK109"),
        (call_with(lambda table: table.view(nl.int32)), "NK301"),
        (call_with(lambda table: place((3, 2), nl.uint32)), "NK401"),
        (call_with(lambda table: nl.ndarray((1, 3, 2), nl.uint32, buffer=nl.psum)), "NK201"),
        (call_with(has_rdispls=1), "NK609"),
        (call_with(recv_counts_known=None), "NK609"),
        pytest.param(call_with(has_rdispls=True), "NK109", marks=SINCE_0_7),
    ],
)
def test_what_is_refused(kernel: Any, rule: str) -> None:
    """Metadata of other forms, and flags that are none."""
    arguments = [(x, np.zeros((3, 2), np.uint32)) for x in flat(2, 8)]
    assert finding_of(kernel, arguments).rule == rule


def test_flat_buffers_are_contiguous() -> None:
    """A view with gaps is none, and slots are of equal size."""

    def kernel(x: Any, table: Any, size: Any, wide: Any) -> Any:
        dst = place((size,), x.dtype)
        source = x.reshape((2, 4))[:, 0:2] if wide else x
        ncc.all_to_all_v([source], [dst], ncc.ReplicaGroup([[0, 1]]), table)
        return dst

    arguments = [(x, np.zeros((3, 2), np.uint32)) for x in flat(2, 8)]
    assert finding_of(kernel, [(*each, 8, True) for each in arguments]).rule == "NK109"
    assert finding_of(kernel, [(*each, 7, False) for each in arguments]).rule == "NK113"


def test_only_what_is_sent_is_read() -> None:
    """The rest of a source may be unwritten; a chunk of it may not (NK401)."""

    def kernel(x: Any, table: Any) -> Any:
        src, dst = place((8,), x.dtype), place((8,), x.dtype)
        nisa.dma_copy(dst=src[0:4], src=x[0:4])
        nisa.dma_copy(dst=dst, src=x)
        ncc.all_to_all_v([src], [dst], ncc.ReplicaGroup([[0, 1]]), table)
        return dst

    inside, outside = [[2, 1], [0, 3], [0, 0]], [[2, 2], [0, 3], [0, 0]]
    good, bad = np.array(inside, np.uint32), np.array(outside, np.uint32)
    first, second = flat(2, 8)
    outputs = nkitools.simulate(kernel, (first, good), (second, good.copy()), ranks=2).outputs
    np.testing.assert_array_equal(outputs[1], [first[3], *second[1:4], second[3], *second[5:]])
    finding = finding_of(kernel, [(first, good), (second, bad)])
    assert (finding.rule, finding.rank) == ("NK401", 1)
