"""Permutes by pairs and around rings, who a rank is, and whose data it has: against NumPy, and what they refuse."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
from nkitools.dialects.modern import collectives as ncc
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.facts import options
from tests.isa.gathered import finding_of, kernel_of, numbers, on_ranks, place

RING = ncc.ReplicaGroup([range(4)])
OPERATORS = {"add": np.add, "minimum": np.minimum, "maximum": np.maximum}


class TestPairs:
    """collective_permute."""

    @given(st.data())
    def test_any_pairs(self, data: st.DataObject) -> None:
        """What is a target gets what its source has sent; whatever is none keeps what it had."""
        size = data.draw(st.integers(2, 5))
        targets = data.draw(st.permutations(range(size)))
        pairs = data.draw(st.lists(st.sampled_from(list(enumerate(targets))), min_size=1, unique=True))

        def kernel(x: Any) -> Any:
            dst = place(x.shape, x.dtype)
            nisa.dma_copy(dst=dst, src=x)
            ncc.collective_permute([x], [dst], pairs)
            return dst

        arrays = numbers(size, 3, 2)
        expected = list(arrays)
        for source, target in pairs:
            expected[target] = arrays[source]
        for got, wanted in zip(on_ranks(kernel, arrays).outputs, expected, strict=True):
            np.testing.assert_array_equal(got, wanted)

    def test_two_cores(self) -> None:
        """A swap of shared HBM is made once for both."""
        arrays = numbers(2, 4, 6)
        kernel = kernel_of(lambda src, dst: ncc.collective_permute([src], [dst], [(0, 1), (1, 0)]), (4, 6))
        run = on_ranks(kernel, arrays, grid=2)
        np.testing.assert_array_equal(run.outputs, arrays[::-1])

    def test_only_sources_are_read_and_only_targets_written(self) -> None:
        """NK401 for what a source sends, not for what a mere target has; NK403 for what a mere source returns."""

        def kernel(x: Any, loads: Any, returns: Any) -> Any:
            src, dst = place(x.shape, x.dtype), place(x.shape, x.dtype)
            if loads:
                nisa.dma_copy(dst=src, src=x)
            ncc.collective_permute([src], [dst], [(0, 1)])
            return dst if returns else x

        first, second = numbers(2, 2, 2)
        run = nkitools.simulate(kernel, (first, True, False), (second, False, True), ranks=2)
        np.testing.assert_array_equal(run.outputs[1], first)
        assert finding_of(kernel, [(first, False, False), (second, False, True)]).rule == "NK401"
        finding = finding_of(kernel, [(first, True, True), (second, True, True)])
        assert (finding.rule, finding.rank) == ("NK403", 0)

    @pytest.mark.parametrize(
        ("pairs", "sentence"),
        [
            ([], "list of (source, target)"),
            ([0, 1], "list of (source, target)"),
            ([(0, 1, 2)], "list of (source, target)"),
            ([(0, -1)], "list of (source, target)"),
            ([(0, 1), (0, 0)], "rank 0 as a source twice"),
            ([(0, 1), (1, 1)], "rank 1 as a target twice"),
            ([(0, 2)], "names rank 2; this run has 2 ranks, 0..1"),
        ],
    )
    def test_what_are_no_pairs(self, pairs: Any, sentence: str) -> None:
        """NK609."""
        kernel = kernel_of(lambda src, dst: ncc.collective_permute([src], [dst], pairs), (2, 2))
        finding = finding_of(kernel, [(array,) for array in numbers(2, 2, 2)])
        assert finding.rule == "NK609"
        assert sentence in finding.message

    def test_other_refusals(self) -> None:
        """One tensor in each list, in HBM, of one shape."""
        arrays = [(array,) for array in numbers(2, 2, 2)]
        swap = [(0, 1), (1, 0)]
        two = kernel_of(lambda src, dst: ncc.collective_permute([src, src], [dst, dst], swap), (2, 2))
        assert "exactly one tensor" in finding_of(two, arrays).message
        in_sbuf = kernel_of(lambda src, dst: ncc.collective_permute([src], [dst], swap), (2, 2), "sbuf")
        assert finding_of(in_sbuf, arrays).rule == "NK201"
        other = kernel_of(lambda src, dst: ncc.collective_permute([src], [dst], swap), (4, 1))
        assert finding_of(other, arrays).rule == "NK109"

    def test_pairs_that_differ(self) -> None:
        """NK609, on the rank that has others."""

        def kernel(x: Any, pairs: Any) -> Any:
            dst = place(x.shape, x.dtype)
            ncc.collective_permute([x], [dst], pairs)
            return dst

        circle = [(0, 1), (1, 2), (2, 0)]
        arrays = numbers(3, 2, 2)
        finding = finding_of(kernel, list(zip(arrays, [circle, circle, [(2, 1), (1, 0), (0, 2)]], strict=True)))
        assert (finding.rule, finding.rank) == ("NK609", 2)
        assert "source_target_pairs must be the same" in finding.message


class TestRing:
    """collective_permute_implicit and its reducing form."""

    @pytest.mark.parametrize("groups", [[[0, 1, 2, 3]], [[0, 2], [1, 3]], [[3, 0, 1], [2]]], ids=str)
    @pytest.mark.parametrize(("memory", "grid"), [("shared_hbm", 1), ("shared_hbm", 2), ("sbuf", 1), ("sbuf", 2)])
    def test_from_the_one_before(self, groups: list[list[int]], memory: str, grid: int) -> None:
        """In the order of the group, and around."""
        group = ncc.ReplicaGroup(groups)
        kernel = kernel_of(lambda src, dst: ncc.collective_permute_implicit([[src]], [[dst]], group), (4, 6), memory)
        arrays = numbers(4, 4, 6)
        outputs = on_ranks(kernel, arrays, grid=grid).outputs
        for ring in groups:
            for place_in_ring, rank in enumerate(ring):
                np.testing.assert_array_equal(outputs[rank], arrays[ring[place_in_ring - 1]])

    @pytest.mark.parametrize("op", OPERATORS)
    @pytest.mark.parametrize("memory", ["shared_hbm", "sbuf"])
    def test_what_the_one_before_has_reduced(self, op: str, memory: str) -> None:
        """``op(src0, src1)`` of the predecessor, on two channels."""

        def kernel(x: Any, y: Any) -> Any:
            tensors = [place(x.shape, x.dtype, memory) for _ in range(6)]
            for number, tensor in enumerate(tensors[:4]):
                nisa.dma_copy(dst=tensor, src=(x, y)[number % 2])
            ncc.collective_permute_implicit_reduce(
                srcs0_by_channel=[[tensors[0]], [tensors[1]]],
                srcs1_by_channel=[[tensors[1]], [tensors[2]]],
                dsts_by_channel=[[tensors[4]], [tensors[5]]],
                replica_group=RING,
                op=getattr(nl, op),
                channel_ids=[0, 1],
            )
            out = place((2, *x.shape), x.dtype)
            for channel in range(2):
                nisa.dma_copy(dst=out[channel], src=tensors[4 + channel])
            return out

        xs, ys = numbers(4, 3, 4), numbers(4, 3, 4)
        outputs = nkitools.simulate(kernel, *zip(xs, ys, strict=True), ranks=4).outputs
        for rank, got in enumerate(outputs):
            np.testing.assert_array_equal(got[0], OPERATORS[op](xs[rank - 1], ys[rank - 1]))
            np.testing.assert_array_equal(got[1], OPERATORS[op](ys[rank - 1], xs[rank - 1]))

    @given(st.permutations(range(4)), st.integers(0, 7), st.sampled_from([None, "3"]))
    def test_whose_data_come(self, order: Sequence[int], steps: int, seed: str | None) -> None:
        """After any number of steps the data are those of the rank that the register names."""
        ring = ncc.ReplicaGroup([order[:3], order[3:]])

        def kernel(x: Any) -> Any:
            here, there = place((1, 4), x.dtype), place((1, 4), x.dtype)
            nisa.dma_copy(dst=here, src=x)
            for _ in range(steps):
                ncc.collective_permute_implicit([[here]], [[there]], ring)
                here, there = there, here
            owner = ncc.collective_permute_implicit_current_processing_rank_id(steps, ring)
            out = place((4, 4), x.dtype)
            zeros = place((4, 4), x.dtype, "sbuf")
            nisa.memset(zeros, 0.0)
            nisa.dma_copy(dst=out, src=zeros)
            nisa.dma_copy(dst=out.ap(pattern=[[4, 1], [1, 4]], scalar_offset=owner, indirect_dim=0), src=here)
            return out

        arrays = [np.full((1, 4), rank + 1, np.float32) for rank in range(4)]
        with options.override(schedule_seed=seed):
            outputs = on_ranks(kernel, arrays).outputs
        for rank, got in enumerate(outputs):
            group = order[:3] if rank in order[:3] else order[3:]
            owner = group[(group.index(rank) - steps) % len(group)]
            expected = np.zeros((4, 4))
            expected[owner] = owner + 1
            np.testing.assert_array_equal(got, expected)

    @pytest.mark.parametrize(
        ("channels", "count", "sentence"),
        [
            ([1], 1, "consecutive from 0"),
            ([0, 2], 2, "consecutive from 0"),
            ([], 0, "consecutive from 0"),
            ([0, 1, 2, 3, 4], 5, "consecutive from 0"),
            (0, 1, "consecutive from 0"),
            ([0, 1], 1, "one list of tensors for each of 2 channel_ids"),
        ],
    )
    def test_channels(self, channels: Any, count: int, sentence: str) -> None:
        """NK609: 0, 1, … up to four, and a list of tensors for each."""
        kernel = kernel_of(
            lambda src, dst: ncc.collective_permute_implicit([[src]] * count, [[dst]] * count, RING, channels), (2, 2)
        )
        finding = finding_of(kernel, [(array,) for array in numbers(4, 2, 2)])
        assert finding.rule == "NK609"
        assert sentence in finding.message

    @pytest.mark.parametrize(
        ("call", "rule", "sentence"),
        [
            (lambda src, dst: ncc.collective_permute_implicit([src], [[dst]], RING), "NK609", r"srcs_by_channel\[0\]"),
            (lambda src, dst: ncc.collective_permute_implicit([[src, src]], [[dst]], RING), "NK609", "exactly one"),
            (lambda src, dst: ncc.collective_permute_implicit([[src[:1, :]]], [[dst]], RING), "NK109", r"\[1, 2\]"),
            (
                lambda src, dst: ncc.collective_permute_implicit_reduce([[src]], [[src]], [[dst]], RING, nl.divide),
                "NK306",
                "nl.maximum are",
            ),
            (
                lambda src, dst: ncc.collective_permute_implicit_reduce([[src]], [[src[:, :1]]], [[dst]], RING, nl.add),
                "NK109",
                "srcs1_by_channel",
            ),
        ],
    )
    def test_what_is_refused(self, call: Any, rule: str, sentence: str) -> None:
        """With the list and the channel."""
        finding = finding_of(kernel_of(call, (2, 2)), [(array,) for array in numbers(4, 2, 2)])
        assert finding.rule == rule
        assert re.search(sentence, finding.message)


class TestRankIds:
    """Registers that differ from rank to rank."""

    def test_selecting_a_slice(self) -> None:
        """As a scalar_offset, an index, and through arithmetic."""

        def kernel(x: Any) -> Any:
            rank = ncc.rank_id(name="me")
            out = place((3, 1, 4), x.dtype)
            nisa.dma_copy(dst=out[0], src=x.ap(pattern=[[4, 1], [1, 4]], scalar_offset=rank, indirect_dim=0))
            nisa.dma_copy(dst=out[1], src=x[rank])
            nisa.dma_copy(dst=out[2], src=x[nl.ds(3 - rank, 1), 0, :])
            return out

        table = np.arange(16, dtype=np.float32).reshape(4, 1, 4)
        run = nkitools.simulate(kernel, *[(table,)] * 4, ranks=4)
        for rank, got in enumerate(run.outputs):
            np.testing.assert_array_equal(got, np.stack([table[rank], table[rank], table[3 - rank]]))
        assert [each.rank for each in run.instructions if each.name == "rank_id"] == [0, 1, 2, 3]

    def test_both_cores_are_one_rank(self) -> None:
        """LNC 2."""
        stored: list[tuple[int, float]] = []

        def kernel(x: Any) -> Any:
            stored.append((nl.program_id(0), ncc.rank_id().read("the test")))
            return x

        on_ranks(kernel, numbers(3, 1, 1), grid=2)
        assert sorted(stored) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]

    def test_without_ranks(self) -> None:
        """NK609 says how to run it."""
        with pytest.raises(nkitools.KernelError, match="NK609") as raised:
            nkitools.simulate(lambda: ncc.rank_id())
        assert "ranks=2" in raised.value.finding.remedy

    def test_a_group_of_one_needs_no_ranks(self) -> None:
        """Rank 0 of [[0]]."""
        alone = ncc.ReplicaGroup([[0]])

        def kernel(x: Any) -> Any:
            out = place(x.shape, x.dtype)
            ncc.collective_permute_implicit([[x]], [[out]], alone)
            register = ncc.collective_permute_implicit_current_processing_rank_id(3, alone)
            nisa.dma_copy(dst=out[register], src=x[0])
            return out

        (array,) = numbers(1, 2, 2)
        np.testing.assert_array_equal(nkitools.simulate(kernel, array).outputs, np.stack([array[0], array[1]]))

    @pytest.mark.parametrize("keywords", [{"iteration_id": -1}, {"iteration_id": 1.0}, {"channel_id": 4}])
    def test_what_is_refused(self, keywords: dict[str, Any]) -> None:
        """NK609."""

        def kernel(x: Any) -> Any:
            ncc.collective_permute_implicit_current_processing_rank_id(
                **{"iteration_id": 0, "replica_group": RING, **keywords}
            )
            return x

        assert finding_of(kernel, [(array,) for array in numbers(4, 1, 1)]).rule == "NK609"
