"""What collectives and sendrecv state of the elements of other ranks and cores is what they move."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import collectives as ncc
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.issue.element_maps import Elements, From
from nkitools.issue.element_rules import Parts
from tests.isa.gathered import kernel_of, numbers, on_ranks
from tests.isa.talking import exchange, hbm, sbuf
from tests.isa.test_collectives_variable import exchange as exchange_v
from tests.isa.test_collectives_variable import flat, run
from tests.issue.sources_of import sources_at

PAIR, RING = ncc.ReplicaGroup([[1, 0]]), ncc.ReplicaGroup([[2, 0, 1]])
SHAPE = (4, 2)

CASES: list[tuple[str, int, Callable[[Any, Any], None], tuple[int, ...], str]] = [
    ("all_reduce", 2, lambda src, dst: ncc.all_reduce([src], [dst], PAIR, nl.add), (4, 2), "hbm"),
    ("all_gather", 2, lambda src, dst: ncc.all_gather([src], [dst], PAIR, 0), (8, 2), "hbm"),
    ("all_gather", 2, lambda src, dst: ncc.all_gather([src], [dst], PAIR, 1), (4, 4), "sbuf"),
    ("reduce_scatter", 2, lambda src, dst: ncc.reduce_scatter([src], [dst], PAIR, 0, nl.add), (2, 2), "hbm"),
    ("all_to_all", 2, lambda src, dst: ncc.all_to_all([src], [dst], PAIR, 0), (4, 2), "hbm"),
    (
        "collective_permute",
        3,
        lambda src, dst: ncc.collective_permute([src], [dst], [(0, 1), (1, 2), (2, 0)]),
        (4, 2),
        "hbm",
    ),
    (
        "collective_permute_implicit",
        3,
        lambda src, dst: ncc.collective_permute_implicit([[src]], [[dst]], RING),
        (4, 2),
        "hbm",
    ),
    (
        "collective_permute_implicit_reduce",
        3,
        lambda src, dst: ncc.collective_permute_implicit_reduce([[src]], [[src]], [[dst]], RING, nl.add),
        (4, 2),
        "sbuf",
    ),
]


def elements_of(result: Any, name: str, rank: int = 0) -> Elements:
    """The map of the instruction of this name that a rank has issued last."""
    record = result.records[rank] if result.records else result.record
    plans = [record.plan_at(position) for position in range(record.count)]
    found = next(plan.elements for plan in reversed(plans) if plan.name == name)
    assert isinstance(found, Elements)
    return found


def seen(call: Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]], arrays: list[np.ndarray]) -> np.ndarray:
    """For each output and input whether the former changes with the latter: (outputs, elements, inputs, elements)."""
    first = call(arrays)
    found = np.zeros((len(first), first[0].size, len(arrays), arrays[0].size), bool)
    for source, array in enumerate(arrays):
        for at in range(array.size):
            changed = [each.copy() for each in arrays]
            changed[source].reshape(-1)[at] += 100
            for output, (before, after) in enumerate(zip(first, call(changed), strict=True)):
                found[output, :, source, at] = (before != after).reshape(-1)
    return found


@pytest.mark.parametrize(("name", "count", "call", "shape", "memory"), CASES, ids=[f"{c[0]}-{c[4]}" for c in CASES])
def test_collectives(name: str, count: int, call: Any, shape: tuple[int, ...], memory: str) -> None:
    """Each element of a destination is made of the named elements of the named ranks, and of no others."""
    kernel, arrays = kernel_of(call, shape, memory), numbers(count, *SHAPE)
    changed = seen(lambda given: on_ranks(kernel, given).outputs, arrays)
    result = on_ranks(kernel, arrays)
    for rank in range(count):
        elements = elements_of(result, name, rank)
        for at in range(int(np.prod(shape))):
            stated = np.zeros((count, arrays[0].size), bool)
            index = np.array([np.unravel_index(at, shape)])
            shapes = {"dsts[0]": shape, "srcs[0]": SHAPE, "srcs[1]": SHAPE}
            for source, places in sources_at(elements, "dsts[0]", index, shapes).items():
                assert source.rank is not None
                stated[source.rank, np.ravel_multi_index(tuple(places.T), SHAPE)] = True
            assert changed[rank, at].tolist() == stated.tolist()


def test_a_rank_that_receives_nothing_keeps_its_destination() -> None:
    """What is no target of a permute is made of its own earlier value."""
    kernel = kernel_of(lambda src, dst: filled_permute(src, dst), SHAPE)
    elements = elements_of(on_ranks(kernel, numbers(2, *SHAPE)), "collective_permute", 0)
    assert [source for source, _ in elements.of("dsts[0]")] == [From("dsts[0]")]


def filled_permute(src: Any, dst: Any) -> None:
    nisa.dma_copy(dst=dst, src=src)
    ncc.collective_permute([src], [dst], [(0, 1)])


def test_chunks_whose_sizes_are_known_when_the_kernel_runs() -> None:
    """Elements of the senders' chunks, and between them the destination's own; received counts of the metadata."""
    counts = [2, 0, 3, 1]
    tables = [[[count, 9, 9, 9], [rank, 9, 9, 9], [5, 5, 5, 5]] for rank, count in enumerate(counts)]
    result = run(exchange_v(ncc.all_gather_v, 16), flat(4, 10), tables, grid=2)
    elements = elements_of(result, "all_gather_v", 1)
    if not elements.results:  # the second core follows the first
        record = result.records[1]
        elements = next(
            plan.elements
            for plan in map(record.plan_at, range(record.count))
            if plan.name == "all_gather_v" and plan.elements.results
        )
    shapes = {"dsts[0]": (16,), "srcs[0]": (10,), "dsts[1]": (1, 4), "srcs[1]": (3, 4)}
    got = result.outputs[1][0]
    sources = flat(4, 10)
    for at in range(16):
        found = sources_at(elements, "dsts[0]", np.array([[at]]), shapes)
        values = [
            sources[source.rank][int(places[0, 0])]
            for source, places in found.items()
            if source.operand == "srcs[0]" and source.rank is not None and len(places)
        ]
        own = len(found[From("dsts[0]")])
        assert values == ([] if own else [got[at]])
        assert own == (got[at] == -7)
    received = sources_at(elements, "dsts[1]", np.array([[0, 2]]), shapes)
    assert {source.rank: places.tolist() for source, places in received.items() if len(places)} == {2: [[0, 0]]}


def test_sendrecv_names_the_other_core() -> None:
    """An element comes from the same place of the other core's source."""

    def kernel(x: Any) -> Any:
        out, core = hbm((2, 4, 6)), nl.program_id(0)
        mine, theirs = nl.load(x[core]), sbuf((4, 6))
        exchange(mine, theirs)
        nisa.dma_copy(dst=out[core], src=theirs)
        return out

    result = nkitools.simulate(kernel, np.zeros((2, 4, 6), np.float32), grid=2)
    record = result.record
    plans = {
        record.program_at(position): record.plan_at(position).elements
        for position in range(record.count)
        if record.plan_at(position).name == "sendrecv"
    }
    shapes = {"dst": (4, 6), "src": (4, 6)}
    for core in (0, 1):
        found = sources_at(plans[(core,)], "dst", np.array([[2, 3]]), shapes)
        assert {source: places.tolist() for source, places in found.items()} == {From("src", core=1 - core): [[2, 3]]}


def test_parts_of_a_dimension() -> None:
    """A stretch of a dimension other than the first, in both directions."""
    rule, wanted = Parts(((1, 0, 2),), 1), np.zeros((2, 4), bool)
    wanted[1, 2] = wanted[0, 3] = True
    back = rule.sources(wanted, (2, 2), {})
    assert np.argwhere(back).tolist() == [[1, 1]]
    assert np.argwhere(rule.results(back, (2, 4), {})).tolist() == [[1, 2]]
