"""From a broken rule to a finding that names the author's things."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.record import reporter
from nkitools.rules.finding import report
from tests.record import kernels

X = np.ones((8, 4), np.float32)


def finding_of(kernel: Any, *args: Any, **keywords: Any) -> nkitools.Finding:
    """The finding that ends a kernel."""
    with pytest.raises(nkitools.KernelError) as raised:
        nkitools.simulate(kernel, *args, **keywords)
    return raised.value.finding


def named(kernel: Any, *args: Any) -> str:
    """The name by which a finding of NK402 speaks of its tensor."""
    message = finding_of(kernel, *args).message
    assert "out of bounds" in message
    return message.partition("tensor ")[2].partition("(")[0].strip()


class TestPlace:
    """File, line, column and function are the author's."""

    def test_the_line_and_the_column_are_the_expressions(self) -> None:
        """Of the innermost of the author's functions."""

        def kernel(x: Any) -> None:
            tile = nl.load(x)
            nl.add(tile, tile[0:9, :])

        finding = finding_of(kernel, X)
        assert (finding.file, finding.line) == (__file__, kernel.__code__.co_firstlineno + 2)
        with open(__file__, encoding="utf-8") as source:
            line = source.read().splitlines()[finding.line - 1]
        assert finding.column == line.index("tile[0:9, :]") + 1
        assert finding.function == "kernel"
        assert finding.text().startswith(f"{__file__}:{finding.line}:{finding.column}: NK402 index 0:9")

    def test_a_helper_module_is_the_authors(self) -> None:
        """The finding is at the helper's line."""
        finding = finding_of(lambda: kernels.filled(256))
        assert (finding.file, finding.function) == (kernels.__file__, "filled")

    def test_decorated_functions_and_methods_are_found(self) -> None:
        """Through the wrapper of a decorator of theirs."""
        import functools

        def decorated(function: Any) -> Any:
            @functools.wraps(function)
            def wrapper(*args: Any) -> Any:
                return function(*args)

            return wrapper

        class Kernels:
            @decorated
            def kernel(self, x: Any) -> None:
                nl.load(x)[0:9]

        assert finding_of(Kernels().kernel, X).function == "kernel"


class TestNames:
    """Messages call tensors by the author's names."""

    def test_a_local_variable(self) -> None:
        """Of the function at fault, else of its callers."""

        def broken(mine: Any) -> None:
            mine[0:9]

        def kernel(x: Any) -> None:
            outer = nl.load(x)
            broken(outer)

        assert named(kernel, X) == "`mine`"

        def kernel_of_parts(x: Any) -> None:
            outer = nl.load(x)
            (lambda: outer.reshape((8, 2, 2))[:, :, 2:9])()

        assert named(kernel_of_parts, X) == "`outer`"

    def test_elements_of_lists_tuples_and_dictionaries(self) -> None:
        """By index and by key."""
        assert named(lambda x: (lambda tiles: tiles[1][0:9])([3, nl.load(x)]), X) == "`tiles[1]`"
        assert named(lambda x: (lambda pair: pair[0][0:9])((nl.load(x),)), X) == "`pair[0]`"
        assert named(lambda x: (lambda tiles: tiles["left"][0:9])({"left": nl.load(x)}), X) == "`tiles['left']`"

    def test_parameters(self) -> None:
        """An array keeps the name of the kernel's parameter."""
        assert named(lambda preds: preds[0:9], X) == "`preds`"

    def test_the_variable_that_a_new_tensor_was_assigned_to(self) -> None:
        """Where no frame has a name for it any more; attributes have none."""

        class Box:
            tile: Any = None

        def make(x: Any) -> Box:
            box = Box()
            made = nl.load(x)
            box.tile = made
            return box

        assert named(lambda x: make(x).tile[0:9], X) == "`made`"

    def test_the_variable_that_a_helpers_result_is_assigned_to(self) -> None:
        """A helper that only returns a new tensor leaves its name and its place to the caller, who may do the same."""

        def made(x: Any) -> Any:
            return nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)

        def made_in_turn(x: Any) -> Any:
            return made(x)

        def kernel(x: Any) -> Any:
            first = made(x)
            second = made_in_turn(x)
            nisa.dma_copy(dst=first, src=x)
            return first, second

        (finding,) = nkitools.simulate(kernel, X, rules="report").findings
        assert finding.message.startswith("output tensor `second` (shared HBM, float32 [8, 4])")
        assert (finding.function, finding.line) == ("kernel", kernel.__code__.co_firstlineno + 2)

    def test_a_helpers_unassigned_result_keeps_the_helpers_name(self) -> None:
        """There is no name for it; the place is the helper's, also where the helper is the kernel."""

        def made(x: Any) -> Any:
            return nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)

        def kernel(x: Any) -> Any:
            return (made(x),)

        for each in (kernel, made):
            (finding,) = nkitools.simulate(each, X, rules="report").findings
            assert finding.message.startswith("output tensor (shared HBM, ")
            assert finding.function == "made"

    def test_a_tensor_without_a_name(self) -> None:
        """It has a memory, a dtype and a shape."""
        finding = finding_of(lambda x: nl.load(x)[0:9], X)
        assert "of tensor (SBUF, float32 [8, 4])" in finding.message
        assert "\x00" not in finding.message

    def test_objects_of_the_author_are_not_asked(self) -> None:
        """A lazy attribute of theirs might do anything."""

        class Trap:
            @property
            def tensor(self) -> Any:
                raise AssertionError("asked")

            storage = tensor

        def kernel(x: Any) -> None:
            traps = [Trap()]
            trap = traps[0]
            tile = nl.load(x)
            tile[0:9]
            del trap

        assert named(kernel, X) == "`tile`"


class TestRepeats:
    """A finding in a loop comes once in each iteration."""

    @staticmethod
    def kernel(times: int) -> None:
        for i in range(times):
            tile = nl.ndarray((256, 1), dtype=nl.float32)
            nisa.memset(tile, float(i))

    def test_one_finding_stands_for_all_iterations(self) -> None:
        """It has the counters of the first three and of the last, and says how many there were."""
        run = nkitools.simulate(self.kernel, 4096, rules="report")
        (found,) = run.findings
        assert (found.rule, found.loops, found.count) == ("NK101", {"i": 0}, 4096)
        assert [each.loops for each in found.places] == [{"i": 0}, {"i": 1}, {"i": 2}]
        assert found.last is not None
        assert found.last.loops == {"i": 4095}
        assert found.text().endswith(" (and 4,095 more: i=1; i=2; ...)")
        assert run.findings_left_out == 0
        assert "4096 findings" in repr(run)

    def test_a_single_one_has_no_places(self) -> None:
        """Its place is its own."""
        (found,) = nkitools.simulate(self.kernel, 1, rules="report").findings
        assert (found.count, found.places, found.last, found.more()) == (1, (), None, "")

    def test_numbers_in_a_message_do_not_make_another_finding(self) -> None:
        """Each place has the message with its own numbers; other words, another line, another rule are others."""

        def kernel() -> None:
            for i in range(5):
                report("NK612", f"index {i} is beyond {i + 8}")
                report("NK612", "odd" if i % 2 else "even")

        run = nkitools.simulate(kernel, rules="report")
        assert [(each.message, each.count) for each in run.findings] == [
            ("index 0 is beyond 8", 5),
            ("even", 3),
            ("odd", 2),
        ]
        said = [each.message for each in run.findings[0].places]
        assert said == ["index 0 is beyond 8", "index 1 is beyond 9", "index 2 is beyond 10"]

    def test_each_time_counts_under_the_names_that_it_has(self) -> None:
        """A line that is about other tensors by turns has a finding for each of them, with its own places."""

        def kernel(x: Any) -> None:
            first, second = nl.load(x), nl.load(x)
            for i in range(9):
                (first if i % 3 else second)[0, i % 4] = first[0, 0]

        found = {each.message: each for each in nkitools.simulate(kernel, X).findings if each.rule == "NK621"}
        by_name = {message.partition("`")[2].partition("`")[0]: each for message, each in found.items()}
        assert {name: each.count for name, each in by_name.items()} == {"first": 6, "second": 3}
        assert [each.loops for each in by_name["first"].places] == [{"i": 1}, {"i": 2}, {"i": 4}]
        assert [each.last and each.last.loops for each in by_name.values()] == [{"i": 6}, {"i": 8}]

    def test_a_name_that_moves_on_to_another_tensor_is_asked_for_each_time(self) -> None:
        """Also where the line's text stays the same: a function's argument, a tile that each turn makes anew."""

        def put(here: Any, x: Any, i: int) -> None:
            here[0, 0] = x[i % 8, 0]

        def kernel(x: Any) -> None:
            for i in range(6):
                tile = nl.load(x)
                put(tile, x, i)
                tile[0, 1] = tile[0, 2]

        found = [each for each in nkitools.simulate(kernel, X).findings if each.rule == "NK621"]
        assert [(each.message.partition("`")[2].partition("`")[0], each.count) for each in found] == [
            ("here", 6),
            ("tile", 6),
        ]
        for each in found:
            assert [place.loops for place in each.places] == [{"i": 0}, {"i": 1}, {"i": 2}]
            assert each.last is not None
            assert each.last.loops == {"i": 5}

    def test_other_numbers_between_equal_messages_count_in_order(self) -> None:
        """The last place is that of the last time, whichever way it was counted."""

        def kernel() -> None:
            for i in range(12):
                report("NK612", f"size {8 if i < 10 else i}")

        (found,) = nkitools.simulate(kernel).findings
        assert found.count == 12
        assert (found.last and found.last.loops, found.last and found.last.message) == ({"i": 11}, "size 11")

    def test_counters_of_callers_are_those_of_each_time(self) -> None:
        """With the function's name where an inner loop's counter has the same."""

        def inner() -> None:
            for i in range(4):
                report("NK612", f"a warning at {i // 4}")

        def kernel() -> None:
            for i in range(5):
                inner(*[None] * (i < 0))

        (found,) = nkitools.simulate(kernel).findings
        assert found.count == 20
        assert found.last is not None
        assert found.last.loops == {"kernel.i": 4, "i": 3}
        assert [each.loops["i"] for each in found.places] == [0, 1, 2]

    def test_a_finding_is_accepted_from_where_that_is_said_on(self) -> None:
        """Those of the same line before and after it are counted apart."""

        def kernel() -> None:
            for i in range(10):
                with nkitools.allow_findings("NK612", reason="known") if i > 5 else contextlib.nullcontext():
                    report("NK612", "a warning")

        run = nkitools.simulate(kernel)
        assert [(each.count, each.last and each.last.loops) for each in run.findings] == [(6, {"i": 5})]
        assert [(each.count, each.last and each.last.loops) for each in run.allowed] == [(4, {"i": 9})]

    def test_what_is_raised_stands_for_itself(self) -> None:
        """The error that the kernel catches carries a finding that is one of the run's."""
        errors = []

        def kernel() -> None:
            for i in range(3):
                try:
                    report("NK101", f"tile {i}")
                except nkitools.KernelError as error:
                    errors.append(error.finding)

        run = nkitools.simulate(kernel, rules="error")
        assert [each.message for each in run.findings] == ["tile 0", "tile 1", "tile 2"]
        assert all(one is other for one, other in zip(run.findings, errors, strict=True))

    def test_beyond_a_thousand_they_are_counted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """With the last counters, and without messages of their own; other lines and rules still speak."""
        monkeypatch.setattr(reporter, "MAX_REPEATS", 5)

        def kernel() -> None:
            self.kernel(8)
            tile = nl.ndarray((256, 1), dtype=nl.float32)
            nisa.memset(tile, 0)

        run = nkitools.simulate(kernel, rules="report")
        assert [(each.loops, each.count) for each in run.findings] == [({"i": 0}, 8), ({}, 1)]
        assert run.findings[0].last is not None
        assert run.findings[0].last.loops == {"i": 7}

    def test_what_ends_a_run_is_always_kept(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The finding that explains why there are no outputs."""
        monkeypatch.setattr(reporter, "MAX_REPEATS", 0)
        run = nkitools.simulate(lambda x: x[0:9], X, rules="report")
        assert [each.rule for each in run.findings] == ["NK402"]


class TestLevels:
    """Warnings are collected at every level but "off"."""

    @staticmethod
    def kernel() -> None:
        report("NK612", "a warning")

    def test_a_warning_ends_nothing(self) -> None:
        """Only an error fails a run."""
        for level in ("error", "report"):
            run = nkitools.simulate(self.kernel, rules=level)
            assert [(each.rule, each.severity) for each in run.findings] == [("NK612", "warning")]
        assert nkitools.simulate(self.kernel, rules="off").findings == []

    def test_a_finding_raised_without_the_reporter_is_kept_too(self) -> None:
        """A missing name is an AttributeError, which hasattr swallows; only what ends the run is a finding of it."""

        def kernel() -> None:
            assert not hasattr(nl, "arange")
            nl.arange(3)

        with nkitools.collect_runs() as runs, pytest.raises(nkitools.KernelError) as raised:
            nkitools.simulate(kernel)
        assert runs[0].findings == [raised.value.finding]
        assert raised.value.finding.rule == "NK608"


def test_outside_of_a_run_a_finding_is_at_the_line_of_the_call() -> None:
    """Nobody collects there; the place is found all the same."""
    with pytest.raises(nkitools.KernelError) as raised:
        nl.ndarray((4, 4), dtype=nl.float32)
    line = sys._getframe().f_lineno - 1
    finding = raised.value.finding
    assert (finding.rule, finding.file, finding.line) == ("NK611", __file__, line)
    assert finding.function == "test_outside_of_a_run_a_finding_is_at_the_line_of_the_call"
    assert (finding.program, finding.loops) == ((), {})
