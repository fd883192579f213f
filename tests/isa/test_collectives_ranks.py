"""Ranks of a collective that do not agree, or do not come; replica groups."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import collectives as ncc
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.facts import options
from tests.isa.gathered import finding_of, kernel_of, numbers, on_ranks, place

PAIR = ncc.ReplicaGroup([[0, 1]])


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
        assert f"on ranks {others} at test_collectives_ranks.py:" in finding.message

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
            r"rank 0 waits in nki.collectives.all_reduce with ranks \[0, 1, 2\] at test_collectives_ranks.py:\d+; "
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
