"""What NKI 0.7 changed of collectives: handles, groups by an operation, private and shared HBM."""

from __future__ import annotations

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
from nkitools.rules.finding import KernelError
from tests.isa.gathered import finding_of, judged, numbers, on_ranks, place
from tests.nki_versions import SINCE_0_7

pytestmark = SINCE_0_7

PAIR = ncc.ReplicaGroup([[0, 1]])
OPERATIONS = {"bitwise_and": np.bitwise_and, "div": np.floor_divide, "mod": np.mod}

# --- handles ---------------------------------------------------------------------------------------------------------

CALLS: dict[str, Any] = {
    "all_reduce": lambda src, dst: ncc.all_reduce([src], [dst], PAIR, nl.add),
    "all_gather": lambda src, dst: ncc.all_gather([src[0:2]], [dst], PAIR, 0),
    "reduce_scatter": lambda src, dst: ncc.reduce_scatter([src], [dst[0:2]], PAIR, 0, nl.add),
    "all_to_all": lambda src, dst: ncc.all_to_all([src], [dst], PAIR, 0),
    "collective_permute": lambda src, dst: ncc.collective_permute([src], [dst], [(0, 1)]),
    "collective_permute of no pair": lambda src, dst: ncc.collective_permute([src], [dst], [(2, 2)]),
    "collective_permute_implicit": lambda src, dst: ncc.collective_permute_implicit([[src]], [[dst]], PAIR),
    "collective_permute_implicit_reduce": lambda src, dst: ncc.collective_permute_implicit_reduce(
        [[src]], [[src]], [[dst]], PAIR, nl.add
    ),
    "all_to_all_v": lambda src, dst: ncc.all_to_all_v([src], [dst], PAIR, metadata()),
}


def metadata() -> Any:
    """Metadata that send nothing."""
    found = nl.ndarray((1, 3, 2), nl.uint32, buffer=nl.sbuf)
    nisa.memset(found, 0)
    return found


@pytest.mark.parametrize("name", CALLS)
def test_what_a_collective_returns(name: str) -> None:
    """A handle that depends_on takes and has; before NKI 0.7 nothing."""
    found: list[Any] = []

    def kernel(x: Any) -> Any:
        dst = place(x.shape, x.dtype)
        before = nisa.dma_copy(dst=dst, src=x)
        handle = CALLS[name](x, dst) if ncc.rank_id() is not None else None
        found.append(handle)
        if handle is not None:
            after = nisa.dma_copy(dst=dst, src=x)
            assert handle.depends_on(before, kind=nisa.dependency.runtime) is handle
            assert after.depends_on(handle, kind=nisa.dependency.runtime) is after
        return dst

    ranks = 3 if name.endswith("no pair") else 2
    for version in ("0.7", "auto", "0.6"):
        run = on_ranks(kernel, numbers(ranks, 4, 6), nki_version=version)
        assert judged(run) == []
        assert [type(each) for each in found] == [type(None) if version == "0.6" else nisa.NkiInstruction] * ranks
        found.clear()


# --- groups by an operation ------------------------------------------------------------------------------------------


@given(st.integers(1, 40), st.sampled_from(sorted(OPERATIONS)), st.integers(1, 45))
def test_ranks_with_one_result_form_a_list(size: int, name: str, operand: int) -> None:
    """Each rank is in the list of those with its result; lists and ranks ascend."""
    group = ncc.ReplicaGroup.from_partition_op(size, ncc.rg_partition_op[name], operand)
    keys = OPERATIONS[name](np.arange(size), operand)
    _, firsts = np.unique(keys, return_index=True)
    expected = tuple(tuple(np.flatnonzero(keys == keys[first]).tolist()) for first in sorted(firsts))
    assert isinstance(group, ncc.ReplicaGroup)
    assert group == ncc.ReplicaGroup(expected)


def test_the_examples_of_the_reference() -> None:
    """Eight ranks in one list, in two, in four."""
    made = ncc.ReplicaGroup.from_partition_op
    assert made(8, ncc.rg_partition_op.bitwise_and, 0) == ncc.ReplicaGroup([[*range(8)]])
    assert made(8, ncc.rg_partition_op.div, 4) == ncc.ReplicaGroup([[0, 1, 2, 3], [4, 5, 6, 7]])
    assert made(8, ncc.rg_partition_op.mod, 4) == ncc.ReplicaGroup([[0, 4], [1, 5], [2, 6], [3, 7]])


def test_a_kernel_with_such_a_group() -> None:
    """Ranks of one remainder reduce among themselves."""

    def kernel(x: Any) -> Any:
        dst = place(x.shape, x.dtype)
        group = ncc.ReplicaGroup.from_partition_op(4, ncc.rg_partition_op.mod, 2)
        ncc.all_reduce([x], [dst], group, nl.add)
        return dst

    arrays = numbers(4, 4, 6)
    sums = [arrays[0] + arrays[2], arrays[1] + arrays[3]]
    np.testing.assert_array_equal(on_ranks(kernel, arrays).outputs, [*sums, *sums])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((8, "mod", 4), "`op` must be a member of nki.collectives.rg_partition_op, it is 'mod'"),
        ((0, ncc.rg_partition_op.mod, 4), "`world_size` must be an integer from 1 on, it is 0"),
        ((8.0, ncc.rg_partition_op.mod, 4), "`world_size` must be an integer from 1 on, it is 8.0"),
        ((8, ncc.rg_partition_op.mod, 0), "`operand` must be an integer from 1 on, it is 0"),
        ((8, ncc.rg_partition_op.bitwise_and, -1), "`operand` must be an integer from 0 on, it is -1"),
    ],
)
def test_no_group(arguments: Any, sentence: str) -> None:
    """NK609, outside of a kernel too."""
    with pytest.raises(KernelError) as raised:
        ncc.ReplicaGroup.from_partition_op(*arguments)
    assert raised.value.finding.rule == "NK609"
    assert sentence in raised.value.finding.message


def test_groups_by_an_operation_before_0_7() -> None:
    """NK608 that says since when, and what to write."""
    operation = ncc.rg_partition_op.mod
    with options.override(nki_version="0.6"), pytest.raises(KernelError) as raised:
        ncc.ReplicaGroup.from_partition_op(8, operation, 4)
    finding = raised.value.finding
    assert finding.rule == "NK608"
    assert "from_partition_op is public since NKI 0.7; this is NKI 0.6" in finding.message
    assert "ReplicaGroup([[0, 1], [2, 3]])" in finding.remedy


# --- private and shared HBM ------------------------------------------------------------------------------------------

GATHERED: dict[str, Any] = {
    "all_reduce": lambda srcs, dsts: ncc.all_reduce(srcs, dsts, PAIR, nl.add),
    "all_gather": lambda srcs, dsts: ncc.all_gather([src[0:2] for src in srcs], dsts, PAIR, 0),
}


def with_memories(name: str, srcs: list[str], dsts: list[str]) -> Any:
    """A kernel whose tensors of a collective lie in these classes of HBM."""

    def kernel(x: Any) -> Any:
        sent = [place(x.shape, x.dtype, f"{memory}_hbm") for memory in srcs]
        received = [place(x.shape, x.dtype, f"{memory}_hbm") for memory in dsts]
        outputs = [place(x.shape, x.dtype) for _ in dsts]
        for src in sent:
            nisa.dma_copy(dst=src, src=x)
        GATHERED[name](sent, received)
        for out, dst in zip(outputs, received, strict=True):
            nisa.dma_copy(dst=out, src=dst)
        return tuple(outputs)

    return kernel


def results(name: str, arrays: list[Any]) -> Any:
    """What each rank has of each destination."""
    return np.concatenate([each[0:2] for each in arrays]) if name == "all_gather" else arrays[0] + arrays[1]


SHARED, PRIVATE = ["shared"], ["private"]
LIMITS: dict[str, tuple[list[str], list[str], str]] = {
    "shared sources": (SHARED, PRIVATE, "a source in shared HBM on one core"),
    "shared destinations": (PRIVATE, SHARED, "a destination in shared HBM on one core"),
    "one shared source": ([*PRIVATE, *SHARED], PRIVATE * 2, "a source in shared HBM on one core"),
}


@pytest.mark.parametrize("name", GATHERED)
@pytest.mark.parametrize("case", LIMITS)
def test_hbm_of_a_collective_on_one_core(case: str, name: str) -> None:
    """NK201 where 0.7 is said, a warning of NK618 where nothing is, silence under 0.6; the values are the same."""
    srcs, dsts, form = LIMITS[case]
    kernel, arrays = with_memories(name, srcs, dsts), numbers(2, 4, 6)
    finding = finding_of(kernel, [(array,) for array in arrays], nki_version="0.7")
    assert finding.rule == "NK201"
    assert f"{form} was removed in NKI 0.7" in finding.message
    assert "buffer=nl.private_hbm" in finding.remedy
    for version, found in (("auto", [("NK618", "warning")] * 2), ("0.6", [])):
        run = on_ranks(kernel, arrays, nki_version=version)
        assert [(each.rule, each.severity) for each in judged(run)] == found
        assert all((each == results(name, arrays)).all() for rank in run.outputs for each in rank)


@pytest.mark.parametrize("name", GATHERED)
def test_hbm_of_a_collective_on_two_cores(name: str) -> None:
    """A list is of one class; the two lists need not agree."""
    mixed = finding_of(
        with_memories(name, [*SHARED, *PRIVATE], SHARED * 2),
        [(array,) for array in numbers(2, 4, 6)],
        grid=2,
        nki_version="0.7",
    )
    assert mixed.rule == "NK201"
    assert "a list of private and shared HBM was removed in NKI 0.7" in mixed.message
    for srcs, dsts in ((PRIVATE, SHARED), (SHARED, PRIVATE)):
        run = nkitools.simulate(
            with_memories(name, srcs, dsts),
            *((x,) for x in numbers(2, 4, 6)),
            ranks=2,
            grid=2,
            nki_version="0.7",
            rules="report",
        )
        assert [each for each in run.findings if each.rule in ("NK201", "NK618")] == []


def test_one_copy_for_a_pair_of_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    """NKI_LNC1_SHARED_HBM=1 allows shared destinations on one core, and no shared sources."""
    monkeypatch.setenv("NKI_LNC1_SHARED_HBM", "1")
    arrays = numbers(2, 4, 6)
    run = on_ranks(with_memories("all_reduce", PRIVATE, SHARED), arrays, nki_version="0.7")
    assert judged(run) == []
    assert all((each == arrays[0] + arrays[1]).all() for rank in run.outputs for each in rank)
    refused = finding_of(with_memories("all_reduce", SHARED, PRIVATE), [(x,) for x in arrays], nki_version="0.7")
    assert refused.rule == "NK201"


def test_arguments_lie_where_the_launch_puts_them() -> None:
    """With brackets in shared HBM, without them in private: either way they are sources."""

    def kernel(x: Any) -> Any:
        dst = place(x.shape, x.dtype)
        ncc.all_reduce([x], [dst], PAIR, nl.add)
        return dst

    for grid in (None, 1):
        assert judged(on_ranks(kernel, numbers(2, 4, 6), grid=grid, nki_version="0.7")) == []


def test_other_collectives_take_shared_hbm() -> None:
    """No page states the limits for them."""

    def kernel(x: Any) -> Any:
        src, dst = place(x.shape, x.dtype, "shared_hbm"), place((2, 6), x.dtype, "shared_hbm")
        nisa.dma_copy(dst=src, src=x)
        ncc.reduce_scatter([src], [dst], PAIR, 0, nl.add)
        return dst

    arrays = numbers(2, 4, 6)
    run = on_ranks(kernel, arrays, nki_version="0.7")
    assert judged(run) == []
    np.testing.assert_array_equal(np.concatenate(run.outputs), arrays[0] + arrays[1])
