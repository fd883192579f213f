"""all_reduce, all_gather, reduce_scatter and all_to_all against NumPy.

The expected values are computed from the definitions in the docstrings, rank by rank.
"""

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
from nkitools.facts import options
from tests.isa.gathered import kernel_of, numbers, on_ranks, place
from tests.nki_versions import WITH_REMOVED_NAMES

GROUPS = [[[0, 1, 2, 3]], [[0, 2], [1, 3]], [[0], [1], [2], [3]], [[3, 1], [0, 2]]]
IN_HBM = [("shared_hbm", 1), ("shared_hbm", 2), ("private_hbm", 1)]  # memory, cores a rank
# 0.7 has no shared HBM on one core for all_reduce and all_gather.
LIMITED = [pytest.param("shared_hbm", 1, marks=WITH_REMOVED_NAMES), *IN_HBM[1:]]
IN_SBUF = [("sbuf", 1), ("sbuf", 2)]
OPERATORS = {"add": np.add, "minimum": np.minimum, "maximum": np.maximum}
DTYPES = [np.float32, ml_dtypes.bfloat16, np.float16, np.int8]


def peers(groups: list[list[int]], rank: int) -> list[int]:
    return next(group for group in groups if rank in group)


@pytest.mark.parametrize("groups", GROUPS, ids=str)
class TestAgainstNumPy:
    """Every group shape, on one and on two cores a rank, in every memory that the collective has."""

    @pytest.mark.parametrize(("memory", "grid"), [*LIMITED, *IN_SBUF])
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

    @pytest.mark.parametrize(("memory", "grid"), [*LIMITED, *IN_SBUF])
    def test_all_gather(self, groups: list[list[int]], grid: int, memory: str) -> None:
        """Each rank has the sources of its group, in the order of the group; in SBUF beside each other, too."""
        arrays = numbers(4, 8, 6)
        count = len(groups[0])
        group = ncc.ReplicaGroup(groups)
        for dim in (0, 1) if memory == "sbuf" else (0,):
            shape = (8 * count, 6) if dim == 0 else (8, 6 * count)
            kernel = kernel_of(lambda src, dst, dim=dim: ncc.all_gather([src], [dst], group, dim), shape, memory)
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
