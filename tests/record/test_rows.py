"""Rows give back what was put in: plans, sites, operands and loop states, by position, in order and by columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nkitools.chip.dtypes import DTYPES
from nkitools.chip.layout import Layout, layout_of
from nkitools.chip.memory_region import MemoryRegion
from nkitools.record.columns import Columns
from nkitools.record.record import Record
from nkitools.record.rows import Access, Rows, access_of, packed_operands, plan_of, site_of, storages_of, words_of_view

LAYOUTS = [
    layout_of((size, 4), (16, 4), DTYPES["float32"], MemoryRegion.sbuf, 0, 0, 1, False, False) for size in range(1, 5)
]


@dataclass
class Planned:
    """As much of a plan as rows ask for."""

    id: int
    written: tuple[bool, ...]
    names_only: bool = False
    name: str = "an instruction"


PLANS = [
    Planned(7, ()),
    Planned(3, (True,)),
    Planned(90_000, (True, False)),
    Planned(5, (False, True), names_only=True),
]

accesses = st.tuples(st.integers(0, 2**31 - 1), st.sampled_from(LAYOUTS), st.integers(0, 2**40))


@st.composite
def instructions(draw: st.DrawFn) -> tuple[Planned, int, list[tuple[int, Layout, int]], int]:
    """A plan, a site, its operands and a loop state."""
    plan = draw(st.sampled_from(PLANS))
    operands = draw(st.lists(accesses, min_size=len(plan.written), max_size=len(plan.written)))
    return plan, draw(st.integers(-1, 2**31 - 1)), operands, draw(st.integers(-1, 100))


@given(st.lists(instructions(), max_size=40))
def test_rows_are_what_was_added(added: list[tuple[Planned, int, list[tuple[int, Layout, int]], int]]) -> None:
    """One by one, from any position on, and by what is written."""
    rows = Rows()
    rows.begin_storage(0)
    for plan, site, operands, loop in added:
        rows.loop = loop
        rows.add(plan, site, [word for each in operands for word in words_of_view(*each)])
    assert rows.count == len(added)
    assert rows.states.tolist() == [loop for *_, loop in added]
    for position, (plan, site, operands, _) in enumerate(added):
        expected = [Access(*each, written) for each, written in zip(operands, plan.written, strict=True)]
        row = rows.row(position)
        assert (row.position, row.plan, row.site) == (position, plan, site)
        assert row.accesses() == rows.accesses(position) == expected
        assert row.storages() == storages_of(row.words) == [storage for storage, _, _ in operands]
        assert row.writes() == ([] if plan.names_only else [each for each in expected if each.written])
        assert rows.plan_at(position) is plan
    middle = len(added) // 2
    assert [row.position for row in rows.rows_between(middle)] == list(range(middle, len(added)))
    assert [row.site for row in rows.rows_between(0, middle)] == [site for _, site, _, _ in added[:middle]]
    heads, packed = [list(each) for each in zip(*rows.packed_rows(0, len(added)), strict=True)] or ([], [])
    assert [site_of(head) for head in heads] == [site for _, site, _, _ in added]
    for position, each in enumerate(packed):
        written = rows.written_by(each)
        parts = zip(packed_operands(each), written, strict=True)
        assert [access_of(*part) for part in parts] == rows.accesses(position)
    assert list(rows.packed_rows(middle, len(added))) == list(zip(heads[middle:], packed[middle:], strict=True))


@given(st.lists(instructions(), max_size=40))
def test_columns_are_what_was_added(added: list[tuple[Planned, int, list[tuple[int, Layout, int]], int]]) -> None:
    """Also of instructions without operands, and then from any position on."""
    record = Record()
    record.begin_storage(0)
    for plan, site, operands, _ in added:
        record.add(plan, site, [word for each in operands for word in words_of_view(*each)])
    columns = Columns(record)
    assert columns.sites.tolist() == [site for _, site, _, _ in added]
    assert columns.positions.tolist() == [at for at, (_, _, operands, _) in enumerate(added) for _ in operands]
    assert columns.writes.tolist() == [written for plan, *_ in added for written in plan.written]
    assert [record.row(at).plan for at in range(len(added))] == [plan for plan, *_ in added]


@given(st.lists(st.tuples(st.integers(0, 2**31 - 1), st.integers(-1, 2**31 - 1)), min_size=1))
def test_heads_are_taken_apart_alone_and_as_arrays(pairs: list[tuple[int, int]]) -> None:
    """The site -1 stands for none, as a number and in an array."""
    rows = Rows()
    for number, site in pairs:
        rows.add(Planned(number, ()), site, [])
    heads = np.array(rows.row_words, np.int64)
    assert [(plan_of(head), site_of(head)) for head in heads.tolist()] == pairs
    assert list(zip(plan_of(heads).tolist(), site_of(heads).tolist(), strict=True)) == pairs


@given(
    st.lists(instructions(), min_size=1, max_size=60), st.integers(0, 2**31 - 1), st.integers(0, 60), st.integers(0, 60)
)
def test_older_accesses_are_those_of_each_row(
    added: list[tuple[Planned, int, list[tuple[int, Layout, int]], int]], storage: int, first: int, last: int
) -> None:
    """The accesses to older storages in any stretch of rows, one by one, and each with its row."""
    rows = Rows()
    rows.begin_storage(0)
    for plan, site, operands, _ in added:
        rows.add(plan, site, [word for each in operands for word in words_of_view(*each)])
    last = min(last, len(added))
    found = [(row.position, number, row.access(number)) for row, number in rows.accesses_before(storage, first, last)]
    assert found == [
        (position, number, Access(*operand, added[position][0].written[number]))
        for position in range(first, last)
        for number, operand in enumerate(added[position][2])
        if operand[0] < storage
    ]


def test_an_instruction_that_ctrl_c_came_into_is_left_out() -> None:
    """It has a loop state and no words yet; the others stay, and nothing is left out where all are whole."""
    rows = Rows()
    rows.begin_storage(5)
    rows.add(PLANS[1], 3, [*words_of_view(5, LAYOUTS[0], 0)])
    rows.states.append(-1)
    rows.leave_out_unfinished()
    rows.leave_out_unfinished()
    assert (rows.count, [row.site for row in rows.rows_between()]) == (1, [3])
