"""The halves of all_gather_v and all_to_all_v: against NumPy, their dependences, and what they refuse."""

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
from tests.isa.gathered import finding_of, place
from tests.isa.test_collectives_variable import BEFORE, FOUR, chunks, flat, run
from tests.nki_versions import SINCE_0_7

pytestmark = SINCE_0_7

PAIR = ncc.ReplicaGroup([[0, 1]])
NONE = np.zeros((3, 2), np.uint32)  # metadata that send nothing
ONE_EACH = np.array([[1, 1], [0, 1], [0, 0]], np.uint32)


def halves(prepare: Any, trigger: Any, size: int, group: Any, *, overwrites: bool, **flags: Any) -> Any:
    """A kernel that fills ``src`` and ``dst`` between the halves; ``overwrites`` the metadata there, too."""

    def kernel(x: Any, table: Any) -> Any:
        first, last = nl.program_id(0) == 0, nl.program_id(0) == nl.num_programs(0) - 1
        src, dst, known = place(x.shape, x.dtype), place((size,), x.dtype), place(table.shape, table.dtype)
        metadata, out = place(table.shape, table.dtype), place((size,), x.dtype)
        filling, zeros = place((1, size), x.dtype, "sbuf"), place(table.shape, table.dtype, "sbuf")
        nisa.memset(filling, BEFORE)
        nisa.memset(zeros, 0)
        if first:
            nisa.dma_copy(dst=metadata, src=table)
        prepared = prepare([src], [dst], group, metadata, **flags)
        if first:
            nisa.dma_copy(dst=src, src=x)
            nisa.dma_copy(dst=dst, src=filling)
            if overwrites:
                nisa.dma_copy(dst=metadata, src=zeros)
        trigger(prepared)
        if last:
            nisa.dma_copy(dst=out, src=dst)
        if first:
            nisa.dma_copy(dst=known, src=metadata)
        return out, known

    return kernel


@given(st.data())
@pytest.mark.parametrize("grid", [1, 2])
def test_all_to_all_v_in_halves(grid: int, data: st.DataObject) -> None:
    """What the metadata said at prepare of the sources at trigger; row 2 is written by the trigger."""
    size = data.draw(st.integers(1, 3))
    order = data.draw(st.permutations(range(2 * size)))
    groups = [order[:size], order[size:]]
    sent = data.draw(st.lists(st.lists(chunks, min_size=size, max_size=size), min_size=2 * size, max_size=2 * size))
    known, overwrites = data.draw(st.booleans()), data.draw(st.booleans())
    sources, tables = flat(2 * size, 10), []
    for mine in sent:
        counts, starts = zip(*mine, strict=True)
        tables.append(np.array([counts, starts, [77] * size]))
    kernel = halves(
        ncc.all_to_all_v_prepare,
        ncc.all_to_all_v_trigger,
        6 * size,
        ncc.ReplicaGroup(groups),
        overwrites=overwrites,
        recv_counts_known=known,
    )
    for rank, (got, table) in enumerate(run(kernel, sources, tables, grid=grid).outputs):
        group = next(each for each in groups if rank in each)
        expected, after = np.full((size, 6), BEFORE, np.float32), tables[rank] * (not overwrites)
        for slot, sender in enumerate(group):
            count, start = sent[sender][group.index(rank)]
            expected[slot, :count] = sources[sender][start : start + count]
            after[2, slot] = after[2, slot] if known else count
        np.testing.assert_array_equal(got, expected.reshape(-1))
        np.testing.assert_array_equal(table, after)


@given(st.lists(chunks, min_size=4, max_size=4), st.booleans())
def test_all_gather_v_in_halves(sent: list[tuple[int, int]], overwrites: bool) -> None:
    """Slot s begins with the chunk of rank s."""
    sources = flat(4, 10)
    tables = [[[count, 99, 99, 99], [start, 99, 99, 99], [5] * 4] for count, start in sent]
    kernel = halves(ncc.all_gather_v_prepare, ncc.all_gather_v_trigger, 24, FOUR, overwrites=overwrites)
    expected = np.full((4, 6), BEFORE, np.float32)
    for rank, (count, start) in enumerate(sent):
        expected[rank, :count] = sources[rank][start : start + count]
    for got, table in run(kernel, sources, tables, grid=2).outputs:
        np.testing.assert_array_equal(got, expected.reshape(-1))
        np.testing.assert_array_equal(table[2], [count for count, _ in sent])


def test_prepare_reads_the_metadata_and_trigger_moves_the_data() -> None:
    """Their operands in the record, and their dependences: of a trigger on its prepare and on the other rank's."""

    def kernel(x: Any, table: Any) -> Any:
        src, dst, metadata = place((8,), x.dtype), place((8,), x.dtype), place((3, 2), table.dtype)
        nisa.dma_copy(dst=metadata, src=table)
        prepared = ncc.all_to_all_v_prepare([src], [dst], PAIR, metadata, recv_counts_known=True)
        nisa.dma_copy(dst=src, src=x)
        nisa.dma_copy(dst=dst, src=x)
        ncc.all_to_all_v_trigger(prepared)
        return dst

    result = run(kernel, flat(2, 8), [ONE_EACH] * 2)
    names = [each.name for each in result.instructions]
    one = ["dma_copy", "all_to_all_v_prepare", "dma_copy", "dma_copy", "all_to_all_v_trigger"]
    assert names == [*one, *one]
    prepare, trigger = result.instructions[1], result.instructions[4]
    assert [(each.tensor, each.written) for each in prepare.operands] == [("metadata", False)]
    assert [(each.tensor, each.written) for each in trigger.operands] == [("dst", True), ("src", False)]
    found = result.dependences
    assert [found.flow[at].tolist() for at in range(10)] == [
        *([-1], [0], [-1], [-1], [1, 2, 9]),
        *([-1], [5], [-1], [-1], [4, 6, 7]),
    ]
    assert [found.output[at].tolist() for at in (1, 4, 6, 9)] == [[], [3], [], [8]]
    assert [found.anti[at].tolist() for at in (2, 3)] == [[], []]


def test_metadata_may_be_overwritten_after_prepare() -> None:
    """The instruction that overwrites them comes after prepare, not after trigger."""

    def kernel(x: Any, table: Any) -> Any:
        dst, metadata = place((8,), x.dtype), place((3, 2), table.dtype)
        nisa.dma_copy(dst=metadata, src=table)
        nisa.dma_copy(dst=dst, src=x)
        prepared = ncc.all_to_all_v_prepare([x], [dst], PAIR, metadata, recv_counts_known=True)
        ncc.all_to_all_v_trigger(prepared)
        nisa.dma_copy(dst=metadata, src=table)
        return dst

    found = run(kernel, flat(2, 8), [ONE_EACH] * 2).dependences
    assert (found.anti[4].tolist(), found.output[4].tolist()) == ([2], [0])


def split(prepares: str = "all_to_all_v", triggers: str = "all_to_all_v", **flags: Any) -> tuple[Any, Any]:
    """Both halves as functions of (x, dst, table) and of a handle."""
    prepare, trigger = getattr(ncc, f"{prepares}_prepare"), getattr(ncc, f"{triggers}_trigger")
    group = flags.pop("group", PAIR)
    return lambda x, dst, table: prepare([x], [dst], group, table, **flags), trigger


def two_prepares(x: Any, dst: Any, table: Any) -> None:
    prepare, trigger = split()
    prepare(x, dst, table)
    trigger(prepare(x, dst, table))


def two_triggers(x: Any, dst: Any, table: Any) -> None:
    prepare, trigger = split()
    prepared = prepare(x, dst, table)
    trigger(prepared)
    trigger(prepared)


def an_old_handle(x: Any, dst: Any, table: Any) -> None:
    prepare, trigger = split()
    first = prepare(x, dst, table)
    trigger(first)
    prepare(x, dst, table)
    trigger(first)


def another_handle(x: Any, dst: Any, table: Any) -> None:
    prepare, trigger = split()
    prepare(x, dst, table)
    trigger(nisa.dma_copy(dst=dst, src=x))


def no_handle(x: Any, dst: Any, table: Any) -> None:
    prepare, trigger = split()
    prepare(x, dst, table)
    trigger(x)


def the_other_trigger(x: Any, dst: Any, table: Any) -> None:
    prepare, trigger = split(triggers="all_gather_v")
    trigger(prepare(x, dst, table))


def a_trigger_in_a_loop(x: Any, dst: Any, table: Any) -> None:
    prepare, trigger = split()
    prepared = prepare(x, dst, table)
    nl.fori_loop(0, 1, lambda i: trigger(prepared) and None)


def a_prepare_in_a_loop(x: Any, dst: Any, table: Any) -> None:
    prepare, trigger = split()
    found: list[Any] = []
    nl.fori_loop(0, 1, lambda i: found.append(prepare(x, dst, table)))
    trigger(found[0])


def never_triggered(x: Any, dst: Any, table: Any) -> None:
    prepare, _ = split()
    nisa.dma_copy(dst=dst, src=x)
    prepare(x, dst, table)


WRONG: dict[str, tuple[str, str, Any]] = {
    "two prepares": ("NK609", r"all_to_all_v_prepare at test_collectives_prepared.py:\d+ was not trig", two_prepares),
    "two triggers": ("NK609", "there is no prepare that waits", two_triggers),
    "an old handle": ("NK609", "the handle of another instruction than all_to_all_v_prepare at", an_old_handle),
    "another handle": ("NK609", "the handle of another instruction than all_to_all_v_prepare at", another_handle),
    "no handle": ("NK609", "it is of class NkiTensor", no_handle),
    "the other trigger": ("NK609", "waits for all_to_all_v_trigger", the_other_trigger),
    "a trigger in a loop": ("NK609", "not in the same loop on the device", a_trigger_in_a_loop),
    "a prepare in a loop": ("NK609", "not in the same loop on the device", a_prepare_in_a_loop),
    "never triggered": ("NK504", "no trigger has followed", never_triggered),
}


@pytest.mark.parametrize("case", WRONG)
def test_one_trigger_after_each_prepare(case: str) -> None:
    """One slot a core: what breaks the pair is refused at its line."""
    rule, sentence, body = WRONG[case]

    def kernel(x: Any, table: Any) -> Any:
        dst = place((8,), x.dtype)
        body(x, dst, table)
        return dst

    with pytest.raises(nkitools.KernelError, match=sentence) as raised:
        run(kernel, flat(2, 8), [NONE.copy(), NONE.copy()])
    assert raised.value.finding.rule == rule


def test_a_prepare_of_the_other_kind_between() -> None:
    """Both collectives share the slot."""

    def kernel(x: Any, table: Any) -> None:
        dst = place((8,), x.dtype)
        ncc.all_gather_v_prepare([x], [dst], FOUR, table)
        ncc.all_to_all_v_prepare([x], [dst], FOUR, table)

    arguments = [(x, np.zeros((3, 4), np.uint32)) for x in flat(4, 8)]
    finding = finding_of(kernel, arguments, grid=2)
    assert finding.rule == "NK609"
    assert "all_gather_v_trigger before this line" in finding.remedy


def test_pairs_one_after_the_other() -> None:
    """In a loop on the device, too; the handle's place in it is that of the loop."""

    def kernel(x: Any, table: Any) -> Any:
        dst = place((8,), x.dtype)
        nisa.dma_copy(dst=dst, src=x)
        prepare, trigger = split(recv_counts_known=True)
        trigger(prepare(x, dst, table))
        nl.fori_loop(0, 2, lambda i: trigger(prepare(x, dst, table)) and None)
        return dst

    first, second = flat(2, 8)
    outputs = run(kernel, [first, second], [ONE_EACH] * 2).outputs
    np.testing.assert_array_equal(outputs[0], [first[0], *first[1:4], second[0], *first[5:]])
    np.testing.assert_array_equal(outputs[1], [first[1], *second[1:4], second[1], *second[5:]])


def test_a_prepare_without_a_trigger_is_found_at_its_line() -> None:
    """NK504, also where the other rank waits in its trigger."""

    def kernel(x: Any, table: Any, triggers: Any) -> Any:
        dst = place((8,), x.dtype)
        nisa.dma_copy(dst=dst, src=x)
        prepared = ncc.all_to_all_v_prepare([x], [dst], PAIR, table)
        if triggers:
            ncc.all_to_all_v_trigger(prepared)
        return dst

    arguments = [(x, NONE.copy(), rank == 0) for rank, x in enumerate(flat(2, 8))]
    with pytest.raises(nkitools.KernelError) as raised:
        nkitools.simulate(kernel, *arguments, ranks=2)
    finding = raised.value.finding
    assert (finding.rule, finding.rank) == ("NK504", 1)
    assert finding.line == kernel.__code__.co_firstlineno + 3
    assert "all_to_all_v_trigger" in finding.remedy


@pytest.mark.parametrize("name", ["all_gather_v", "all_to_all_v"])
def test_no_halves_with_a_neuron_switch(name: str) -> None:
    """NK606 on NeuronCore-v4, with the collective that does both."""
    prepare, trigger = split(name, name, group=FOUR)

    def kernel(x: Any, table: Any) -> Any:
        dst = place((8,), x.dtype)
        trigger(prepare(x, dst, table))
        return dst

    arguments = [(x, np.zeros((3, 4), np.uint32)) for x in flat(4, 8)]
    with pytest.raises(nkitools.KernelError) as raised:
        nkitools.simulate(kernel, *arguments, ranks=4, chip="trn3", grid=2)
    finding = raised.value.finding
    assert finding.rule == "NK606"
    assert f"Call {name}, which does both" in finding.remedy


def test_metadata_are_valid_at_prepare_and_sources_at_trigger() -> None:
    """NK401 at the line that reads."""

    def kernel(x: Any, table: Any, what: Any) -> Any:
        src, dst, metadata = place((8,), x.dtype), place((8,), x.dtype), place((3, 2), table.dtype)
        nisa.dma_copy(dst=dst, src=x)
        if what != "metadata":
            nisa.dma_copy(dst=metadata, src=table)
        prepared = ncc.all_to_all_v_prepare([src], [dst], PAIR, metadata)
        if what != "src":
            nisa.dma_copy(dst=src, src=x)
        ncc.all_to_all_v_trigger(prepared)
        return dst

    first = kernel.__code__.co_firstlineno
    for what, line in (("metadata", first + 5), ("src", first + 8)):
        finding = finding_of(kernel, [(x, ONE_EACH.copy(), what) for x in flat(2, 8)])
        assert (finding.rule, finding.line) == ("NK401", line)


def test_a_saved_run_has_the_edge_to_prepare(tmp_path: Any) -> None:
    """What is kept beside the rows is in the file."""
    kernel = halves(ncc.all_to_all_v_prepare, ncc.all_to_all_v_trigger, 8, PAIR, overwrites=True)
    result = run(kernel, flat(2, 8), [ONE_EACH] * 2)
    result.save(tmp_path / "run.json")
    loaded = nkitools.load_run(tmp_path / "run.json")
    np.testing.assert_array_equal(loaded.dependences.flow.sources, result.dependences.flow.sources)
