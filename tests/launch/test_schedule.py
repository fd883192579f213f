"""`kernel.with_schedule`: no result changes, and what makes no sense is a finding."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects import modern as nki
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl

X = np.arange(1, 33, dtype=np.float32).reshape(8, 4)


def tile_of(x: Any) -> Any:
    return nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)


@nki.jit
def two_halves(t: Any) -> Any:
    """The guide's kernel: "recip" and "plus1" do not depend on each other, "sum" needs both."""
    x, a, b, c = (tile_of(t) for _ in range(4))
    nisa.dma_copy(dst=x, src=t, name="load")
    nisa.reciprocal(dst=a, data=x, name="recip")
    nisa.tensor_scalar(dst=b, data=x, op0=nl.add, operand0=1, name="plus1")
    nisa.tensor_tensor(dst=c, data1=a, data2=b, op=nl.add, name="sum")
    out = nl.ndarray(t.shape, t.dtype, buffer=nl.shared_hbm, name="result")
    nisa.dma_copy(dst=out, src=c)
    return out


EXPECTED = np.float32(1) / X + (X + 1)


def refusal(kernel: Any, *arrays: Any) -> nkitools.Finding:
    """The one finding of a launch, which is the same at both levels of the rules."""
    with pytest.raises(nkitools.KernelError) as raised:
        kernel(*arrays)
    finding = raised.value.finding
    assert [each.message for each in nkitools.simulate(kernel, *arrays, rules="report").findings] == [finding.message]
    return finding


class TestForm:
    """What `with_schedule` takes."""

    @pytest.mark.parametrize(
        "edges",
        [
            [],
            [("plus1", "recip")],
            [("plus1", ["recip"])],
            (("recip", "plus1"),),
            [["sum", ("recip", "plus1", "load")], ("plus1", "load")],
            [("recip", "plus1"), ("recip", "plus1")],
        ],
    )
    def test_a_schedule_changes_no_result(self, edges: Any) -> None:
        """One name or several after each; the LNC degree stays, and so does the kernel that it is made of."""
        scheduled = two_halves.with_schedule(edges)
        np.testing.assert_allclose(scheduled(X), EXPECTED, rtol=1e-6)
        np.testing.assert_allclose(nki.simulate(scheduled)(X), EXPECTED, rtol=1e-6)
        np.testing.assert_allclose(nkitools.simulate(scheduled, X).outputs, EXPECTED, rtol=1e-6)
        assert two_halves[2].with_schedule(edges).grid == (2,)
        assert two_halves.schedule is None

    @pytest.mark.parametrize(
        "wrong", [None, "store", [("store",)], [("store", 1)], [(None, "load")], ["ab"], [("a", "b", "c")], {"a": "b"}]
    )
    def test_what_is_no_schedule_is_refused(self, wrong: Any) -> None:
        """NK609 at the call."""
        with pytest.raises(TypeError) as raised:
            two_halves.with_schedule(wrong)
        finding = raised.value.finding  # type: ignore[attr-defined]
        assert (finding.rule, finding.file) == ("NK609", __file__)
        assert finding.message.startswith("with_schedule")

    @pytest.mark.parametrize(
        ("edges", "circle"),
        [
            ([("a", "a")], "`a` after `a`"),
            ([("a", ["b", "a"])], "`a` after `a`"),
            ([("a", "b"), ("b", "a")], "`a` after `b` after `a`"),
            ([("x", "a"), ("a", ["y", "b"]), ("b", "c"), ("c", "a")], "`a` after `b` after `c` after `a`"),
        ],
    )
    def test_a_circle_is_refused(self, edges: Any, circle: str) -> None:
        """Nothing in it could run first."""
        with pytest.raises(TypeError, match="is a circle") as raised:
            two_halves.with_schedule(edges)
        assert circle in raised.value.finding.message  # type: ignore[attr-defined]

    def test_two_ways_to_one_instruction_are_no_circle(self) -> None:
        """A diamond."""
        two_halves.with_schedule([("sum", ["recip", "plus1"]), ("recip", "load"), ("plus1", "load")])

    def test_it_is_a_property_of_the_kernel(self) -> None:
        """It stays under a grid and a second nki.jit; a second schedule takes the first one's place."""
        first = two_halves.with_schedule([("no", "such")])
        for kernel in (first[1], nki.jit(first), nki.jit(mode="trace")(first)[1], nki.simulate(first)):
            with pytest.raises(nkitools.KernelError, match="with_schedule names `no`"):
                kernel(X)
        np.testing.assert_allclose(first.with_schedule([("plus1", "recip")])(X), EXPECTED, rtol=1e-6)

    def test_an_inner_kernel_has_none(self) -> None:
        """NK610: like a grid it belongs to the kernel that the host calls, whose edges may name inner instructions."""
        inner = two_halves.with_schedule([("plus1", "recip")])
        finding = refusal(nki.jit(lambda x: inner(x)), X)
        assert (finding.rule, finding.file) == ("NK610", __file__)
        outer = nki.jit(lambda x: two_halves(x)).with_schedule([("plus1", "recip")])
        np.testing.assert_allclose(outer(X), EXPECTED, rtol=1e-6)


class TestNames:
    """The names are those of the instructions that the kernel issues."""

    @pytest.mark.parametrize(
        ("edges", "unknown", "remedy"),
        [
            ([("plus2", "recip")], "plus2", "Did you mean `plus1`?"),
            ([("plus1", ["recip", "rceip"])], "rceip", "Did you mean `recip`?"),
            ([("plus1", "result")], "result", "It is the name of a tensor; an edge is between instructions"),
            ([("plus1", "zzz")], "zzz", "The instructions of this run are named load, plus1, recip, sum."),
        ],
    )
    def test_an_unknown_name_gets_its_neighbours_suggested(self, edges: Any, unknown: str, remedy: str) -> None:
        """NK609 at the author's call of with_schedule, when the kernel has run."""
        scheduled = two_halves.with_schedule(edges)
        line = sys._getframe().f_lineno - 1
        finding = refusal(scheduled, X)
        assert finding.message == f"with_schedule names `{unknown}`, a name that no instruction of the kernel has"
        assert finding.remedy.startswith(remedy)
        assert (finding.rule, finding.file, finding.line) == ("NK609", __file__, line)

    def test_a_kernel_without_names_says_how_to_give_one(self) -> None:
        """`name=` of the call."""
        scheduled = nki.jit(lambda x: nisa.dma_copy(dst=x, src=x) and x).with_schedule([("b", "a")])
        findings = nkitools.simulate(scheduled, X.copy(), rules="report").findings
        assert [finding.message[:24] for finding in findings] == [
            "with_schedule names `b`,",
            "with_schedule names `a`,",
        ]
        assert 'pass name="b" to the call that you mean' in findings[0].remedy

    def test_a_name_of_several_instructions_is_refused(self) -> None:
        """An edge is between two: in a Python loop each turn has an instruction of its own."""

        @nki.jit
        def kernel(x: Any) -> Any:
            tile = nl.load(x)
            for i in range(3):
                nisa.activation(dst=tile, op=nl.copy, data=tile, name="act")
                nisa.tensor_copy(dst=tile, src=tile, name=f"copy{i}")
            nl.store(x, tile)
            return x

        finding = refusal(kernel.with_schedule([("act", "copy0")]), X.copy())
        assert finding.message.startswith("with_schedule names `act`, the name of 3 instructions (line ")
        assert 'name=f"act{i}"' in finding.remedy
        kernel.with_schedule([("copy2", ["copy0", "copy1"])])(X.copy())  # where nobody names it, it may repeat

    @pytest.mark.parametrize("turns", [0, 1, 3])
    def test_a_loop_on_the_device_issues_its_body_once(self, turns: int) -> None:
        """However many turns it has, and also without one, where nothing is issued here."""

        @nki.jit
        def kernel(x: Any) -> Any:
            tile = nl.load(x)

            def body(i: Any) -> None:
                nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0, name="first")
                nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0, name="second")

            nl.fori_loop(0, turns, body)
            nl.store(x, tile)
            return x

        scheduled = kernel.with_schedule([("second", "first")])
        np.testing.assert_array_equal(scheduled(X.copy()), X + 2 * turns)

    def test_one_of_two_programs_is_enough(self) -> None:
        """Names that only one program issues are known."""

        @nki.jit
        def kernel(x: Any) -> Any:
            if nl.program_id(0) == 1:
                tile = tile_of(x)
                nisa.memset(tile, 1.0, name="one")
                nisa.memset(tile, 2.0, name="two")
            return x

        assert kernel[2].with_schedule([("two", "one")])(X) is X

    def test_instructions_that_are_skipped_have_their_name(self) -> None:
        """A run-time address out of bounds leaves nothing to do."""

        @nki.jit
        def kernel(x: Any) -> Any:
            tile = nl.load(x)
            source = x.ap([[4, 1], [1, 4]], scalar_offset=nisa.register_alloc(99), indirect_dim=0)
            nisa.dma_copy(dst=tile[0:1, :], src=source, oob_mode=nisa.oob_mode.skip, name="skipped")
            nisa.tensor_copy(dst=tile, src=tile, name="copy")
            return x

        assert kernel.with_schedule([("copy", "skipped")])(X) is X


class TestOrder:
    """An order that the data do not allow."""

    def test_what_is_independent_may_turn_round(self) -> None:
        """ "recip" is issued first, and may run second."""
        np.testing.assert_allclose(two_halves.with_schedule([("recip", "plus1")])(X), EXPECTED, rtol=1e-6)

    @pytest.mark.parametrize("edges", [[("recip", "sum")], [("load", "sum")], [("sum", "load"), ("load", "plus1")]])
    def test_data_cannot_be_used_before_they_are_there(self, edges: Any) -> None:
        """Directly, or through other instructions."""
        finding = refusal(two_halves.with_schedule(edges), X)
        later, earlier = edges[-1]
        assert finding.rule == "NK609"
        assert finding.message == (
            f"with_schedule lets `{later}` run after `{earlier}`, which needs the data or the place of `{later}`, so "
            "that neither can run"
        )

    def test_edges_and_data_together_may_make_a_circle(self) -> None:
        """Each edge alone would do."""

        @nki.jit
        def kernel(x: Any) -> Any:
            a, b, c, d = (nl.zeros((8, 4), nl.float32, buffer=nl.sbuf) for _ in range(4))
            nisa.memset(a, 1.0, name="a")
            nisa.tensor_copy(b, a, name="b")
            nisa.memset(c, 2.0, name="c")
            nisa.tensor_copy(d, c, name="d")
            return x

        for edge in (("a", "d"), ("c", "b")):
            assert kernel.with_schedule([edge])(X) is X
        assert "`a` run after `d`" in refusal(kernel.with_schedule([("a", "d"), ("c", "b")]), X).message

    @pytest.mark.parametrize(
        ("earlier", "later", "possible"),
        [
            (lambda t: t[:, 0:2], lambda t: t[:, 2:4], True),
            (lambda t: t[0:32, :], lambda t: t[32:64, :], True),
            (lambda t: t[:, ::2], lambda t: t[:, 1::2], True),
            (lambda t: t[:, 0:3], lambda t: t[:, 2:4], False),
            (lambda t: t, lambda t: t.reshape((64, 2, 2))[:, 1, 1], False),
        ],
    )
    def test_parts_of_a_tensor_that_do_not_meet_are_independent(self, earlier: Any, later: Any, possible: bool) -> None:
        """Element by element."""

        @nki.jit
        def kernel(x: Any) -> Any:
            tile = nl.zeros((64, 4), nl.float32, buffer=nl.sbuf)
            nisa.memset(earlier(tile), 1.0, name="earlier")
            nisa.memset(later(tile), 2.0, name="later")
            return x

        scheduled = kernel.with_schedule([("earlier", "later")])
        if possible:
            assert scheduled(X) is X
        else:
            assert "needs the data or the place of `earlier`" in refusal(scheduled, X).message

    def test_no_reorder_keeps_its_order(self) -> None:
        """Also of what is called from inside of it; outside, and between blocks, the order is free."""

        @nki.jit
        def kernel(x: Any) -> Any:
            tiles = [nl.zeros((8, 4), nl.float32, buffer=nl.sbuf) for _ in range(4)]

            def body(i: int) -> None:
                nisa.memset(tiles[i], float(i), name=f"act{i}")

            body(0)
            with nl.no_reorder():
                for i in (1, 2):
                    body(i)
            with nl.no_reorder():
                body(3)
            return x

        assert kernel.with_schedule([("act0", "act1"), ("act2", "act3")])(X) is X
        finding = refusal(kernel.with_schedule([("act1", "act2")]), X)
        assert "which nl.no_reorder() keeps behind `act1`" in finding.message
