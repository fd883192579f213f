"""Loop counters of prints, findings and instructions."""
# ruff: noqa: B007, C400, C419, RET503 - kernels with counters that nothing reads are what these tests are about

from __future__ import annotations

import sys
import weakref
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.record.loop_counters import counters
from tests.record import kernels

X = np.ones((8, 4), np.float32)


def printed(kernel: Any) -> list[dict[str, int]]:
    """The counters of a kernel's prints."""
    return [each.loops for each in nkitools.simulate(kernel, X).prints]


def issued(kernel: Any) -> list[dict[str, int]]:
    """The counters of a kernel's instructions."""
    return [each.loops for each in nkitools.simulate(kernel, X).instructions]


class TestPrints:
    """Counters come from the author's frames, so that every kind of loop has them."""

    @pytest.mark.parametrize("kind", [range, nl.affine_range, nl.sequential_range, nl.static_range])
    def test_every_range_counts(self, kind: Any) -> None:
        """nl ranges and plain range; the outermost comes first, and the order is the order of the loops."""

        def kernel(x: Any) -> None:
            for n in kind(2):
                for m in kind(3, 5):
                    nl.device_print("x", x)
            nl.device_print("x", x)

        found = printed(kernel)
        assert found == [{"n": n, "m": m} for n in range(2) for m in (3, 4)] + [{}]
        assert list(found[0]) == ["n", "m"]

    def test_tuples_count_what_is_a_number(self) -> None:
        """enumerate and zip; tiles, arrays and names count nothing, NumPy's numbers do."""

        def kernel(x: Any) -> None:
            weights = [np.ones(3), np.ones((2, 2))]
            for index, (tile, weight) in enumerate(zip([x, x], weights, strict=True)):
                for name in "a":
                    for number in np.arange(1):
                        nl.device_print(f"{name} {weight.size}", tile)

        assert printed(kernel) == [{"index": 0, "number": 0}, {"index": 1, "number": 0}]

    def test_a_helper_in_a_loop_is_in_it(self) -> None:
        """The caller's counters come first; where an inner one has the name, the caller's is qualified."""

        def kernel(x: Any) -> None:
            for m in nl.affine_range(1):
                for i in range(5, 6):
                    kernels.printed(nl.load(x))

        assert printed(kernel) == [{"m": 0, "kernel.i": 5, "i": 0}, {"m": 0, "kernel.i": 5, "i": 1}]

    def test_comprehensions_and_generators_count(self) -> None:
        """They are loops, too."""

        def kernel(x: Any) -> None:
            [nl.device_print("x", x) for i in range(2) for j in nl.affine_range(1)]
            {k: nl.device_print("x", x) for k in range(1)}
            list(nl.device_print("x", x) for g in range(1))
            for o in range(1):
                all([nl.device_print("x", x) is None for p in range(1)])

        assert printed(kernel) == [{"i": 0, "j": 0}, {"i": 1, "j": 0}, {"k": 0}, {"g": 0}, {"o": 0, "p": 0}]

    def test_while_loops_have_no_counter(self) -> None:
        """What is around and inside of them counts all the same."""

        def kernel(x: Any) -> None:
            left = 2
            while left:
                for i in range(1):
                    nl.device_print("x", x)
                left -= 1

        assert printed(kernel) == [{"i": 0}, {"i": 0}]

    def test_a_line_after_a_loop_or_in_its_else_is_not_in_it(self) -> None:
        """The counter is still there, the loop is not."""

        def kernel(x: Any) -> None:
            for i in range(3):
                if i == 1:
                    break
            nl.device_print("x", x)
            for j in range(3):
                pass
            else:
                nl.device_print("x", x)

        assert printed(kernel) == [{}, {}]

    def test_branches_with_and_try_are_in_the_loop(self) -> None:
        """However the line is reached, `break` and `return` included."""

        def kernel(x: Any) -> None:
            for i in range(3):
                try:
                    nl.device_print("try", x)
                finally:
                    nl.device_print("finally", x)
                with np.errstate():
                    nl.device_print("with", x)
                if i == 1:
                    nl.device_print("break", x)
                    break
            for j in range(3):
                if j == 1:
                    return nl.device_print("return", x)

        assert printed(kernel) == [{"i": 0}] * 3 + [{"i": 1}] * 4 + [{"j": 1}]

    def test_one_line_and_many_lines_are_loops_alike(self) -> None:
        """Source layout plays no part."""

        def kernel(x: Any) -> None:
            for i in range(1): nl.device_print("x", x)  # fmt: skip  # noqa: E701
            for j in range(1):
                nl.device_print("x", x)

        assert printed(kernel) == [{"i": 0}, {"j": 0}]

    def test_code_without_source_counts(self) -> None:
        """exec'd kernels, as notebooks and code generators make them."""
        source = (
            "def kernel(x):\n    for m in nl.affine_range(2):\n        for i in range(1):\n"
            "            nl.device_print('x', x)\n            nl.load(x)\n"
        )
        names: dict[str, Any] = {"nl": nl}
        exec(source, names)
        assert printed(names["kernel"]) == [{"m": 0, "i": 0}, {"m": 1, "i": 0}]
        assert issued(names["kernel"]) == [{"m": 0, "i": 0}, {"m": 1, "i": 0}]
        (found,) = {(each.file, each.line) for each in nkitools.simulate(names["kernel"], X).instructions}
        assert found == ("<string>", 5)

    def test_outside_of_a_kernel_nothing_counts(self) -> None:
        """The loops of a test are not the kernel's."""
        import sys

        for _outer in range(1):
            assert counters(sys._getframe()) == {}
            assert printed(lambda x: nl.device_print("x", x)) == [{}]
        assert counters(None) == {}


class TestInstructions:
    """Counters of loops over nl's ranges and Python's are kept with each instruction."""

    def test_ranges_are_kept(self) -> None:
        """Nested, and with the names that they have in the source."""

        def kernel(x: Any) -> None:
            nl.load(x)
            for n in nl.affine_range(2):
                nl.load(x)
                for _ in range(2):
                    for m in nl.sequential_range(2, 6, 3):
                        nl.load(x)

        inner = [{"n": n, "_": turn, "m": m} for n in range(2) for turn in range(2) for m in (2, 5)]
        assert issued(kernel) == [{}, {"n": 0}, *inner[:4], {"n": 1}, *inner[4:]]

    def test_what_breaks_out_of_a_loop_is_out_of_it(self) -> None:
        """The state around the loop holds again: after break, continue, return and the end."""

        def helper(x: Any) -> None:
            for k in nl.affine_range(3):
                if k == 1:
                    return
                nl.load(x)

        def kernel(x: Any) -> None:
            for n in nl.affine_range(2):
                for m in nl.affine_range(3):
                    if m == 0:
                        continue
                    nl.load(x)
                    break
                helper(x)
                nl.load(x)
            nl.load(x)

        each = [[{"n": n, "m": 1}, {"n": n, "k": 0}, {"n": n}] for n in range(2)]
        assert issued(kernel) == [*each[0], *each[1], {}]

    def test_a_callers_counter_of_the_same_name_is_qualified(self) -> None:
        """As in prints."""

        def helper(x: Any) -> None:
            for m in nl.affine_range(1):
                nl.load(x)

        def kernel(x: Any) -> None:
            for m in nl.affine_range(2):
                helper(x)

        assert issued(kernel) == [{"kernel.m": 0, "m": 0}, {"kernel.m": 1, "m": 0}]

    def test_a_range_inside_of_another_iterator_is_named_where_it_can_be(self) -> None:
        """enumerate counts too; a comprehension's counter is its own; one that nobody names is named by its line."""

        def kernel(x: Any) -> None:
            for _, m in enumerate(nl.affine_range(1, 2)):
                nl.load(x)
            [nl.load(x) for n in nl.affine_range(1)]
            turns = iter(nl.affine_range(1))
            next(turns)
            nl.load(x)
            next(turns, None)

        line = kernel.__code__.co_firstlineno + 5
        assert issued(kernel) == [{"m": 1}, {"n": 0}, {f"line {line}": 0}]

    def test_ranges_outside_of_a_kernel_are_ranges(self) -> None:
        """They can be listed, measured and indexed."""
        assert list(nl.affine_range(2, 8, 3)) == [2, 5]
        assert (len(nl.static_range(4)), nl.static_range(4)[1]) == (4, 1)


def test_findings_have_the_counters_of_their_line() -> None:
    """Also of plain ranges, and of the functions around."""

    def kernel(x: Any) -> None:
        for m in nl.affine_range(3):
            for i in range(2):
                if (m, i) == (1, 1):
                    nisa.memset(nl.load(x)[0:9, :], 0)

    with pytest.raises(nkitools.KernelError) as raised:
        nkitools.simulate(kernel, X)
    assert raised.value.finding.loops == {"m": 1, "i": 1}
    assert "loop m=1, i=1" in str(raised.value)


def test_a_frame_that_was_asked_keeps_nothing_alive() -> None:
    """Reading loop counters keeps no deleted tensor alive and leaves the kernel's locals() whole."""
    seen: list[Any] = []

    def gives_up(x: Any) -> Any:
        for turn in range(1):
            tile = nl.load(x)
            kept = weakref.ref(tile.storage)
            seen.append((counters(sys._getframe()), kept() is None))
            del tile
            seen.append(kept() is None)
        return x

    def looks(x: Any) -> Any:
        for turn in range(1):
            mine = locals()
            counters(sys._getframe())
            seen.append(mine["turn"])
        return x

    for kernel in (gives_up, looks):
        nkitools.simulate(kernel, np.ones((1, 1), np.float32), rules="off")
    assert seen == [({"turn": 0}, False), True, 0]
