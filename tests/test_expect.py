"""`expect_finding`: a negative test passes only where the rule speaks, at the line that it should speak at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools import expect_finding
from nkitools.dialects.legacy import language as legacy_nl
from nkitools.dialects.legacy.kernels import kernel as legacy
from nkitools.dialects.modern import language as nl
from nkitools.facts import options
from nkitools.rules.finding import report

X = np.ones((256, 4), np.float32)
LEVELS = ("error", "strict", "report", "off")


def tall(x: Any) -> Any:
    """Breaks NK101 at its load, at every level where rules speak."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x))
    return out


def outside(x: Any) -> Any:
    """Breaks NK402, beyond which nothing can be computed."""
    return x[0:999]


def fine(x: Any) -> Any:
    """Breaks nothing."""
    return x


def fails(*rules: str, run: Callable[[], Any] = lambda: None, **where: Any) -> str:
    """What a block says that has to fail."""
    with pytest.raises(AssertionError, match=r"^expected ") as raised, expect_finding(*rules, **where):
        run()
    return str(raised.value)


class TestPasses:
    """The expected rule was reported."""

    @pytest.mark.parametrize("level", LEVELS)
    @pytest.mark.parametrize("kernel", [tall, outside])
    def test_at_every_level(self, level: str, kernel: Any) -> None:
        """Raised, collected, or switched off by an option: the block hears it, and no error leaves it."""
        rule = "NK101" if kernel is tall else "NK402"
        with options.override(rules=level), expect_finding(rule) as expected:
            nkitools.simulate(kernel, X)
        assert expected.finding.rule == rule

    def test_by_every_name_of_the_rule(self) -> None:
        """Id, slug, legacy code, in any case."""
        for name in ("NK101", "nk101", "partition-limit", "err_num_partition_exceed_arch_limit"):
            with expect_finding(name):
                nkitools.simulate(tall, X)

    def test_by_legacy_ways_in(self) -> None:
        """The bare IndexError that AWS's tests want carries a finding too."""

        def kernel(x: Any) -> Any:
            out = legacy_nl.ndarray((128, 8), dtype=x.dtype, buffer=legacy_nl.shared_hbm)
            legacy_nl.store(out, legacy_nl.load(x[legacy_nl.arange(128)[:, None], legacy_nl.arange(8)[None, :]]))
            return out

        with expect_finding("NK402", match="Out-of-bound access"):
            legacy.simulate_kernel(legacy.jit(kernel), X)

    def test_outside_of_a_run(self) -> None:
        """What a decorator or a call outside of a kernel refuses."""
        with expect_finding("NK611") as expected:
            nl.ndarray((4, 4), dtype=nl.float32)
        assert expected.findings == [expected.finding]

    def test_of_several_rules_one_is_enough(self) -> None:
        """For all of them blocks are nested: both hear of the run."""
        with expect_finding("NK103", "NK101"):
            nkitools.simulate(tall, X)

        def both(x: Any) -> None:
            report("NK612", "a warning")
            tall(x)

        with expect_finding("NK612"), expect_finding("NK101"):
            nkitools.simulate(both, X)

    def test_a_warning_is_a_finding_too(self) -> None:
        """It raises nothing, and is expected all the same."""
        with expect_finding("NK612") as expected:
            nkitools.simulate(lambda: report("NK612", "a warning"))
        assert expected.finding.severity == "warning"

    def test_at_the_line_and_in_the_file_and_with_the_message(self) -> None:
        """A number, or a part of the line's text; the end of a path in whole names; a regular expression."""
        line = tall.__code__.co_firstlineno + 3
        for where in (
            {"line": line},
            {"line": "nl.load(x)"},
            {"file": "test_expect.py"},
            {"file": "tests/test_expect.py"},
            {"file": __file__},
            {"match": r"256 \w+; a NeuronCore has 128"},
        ):
            with expect_finding("NK101", **where):  # type: ignore[arg-type]
                nkitools.simulate(tall, X)

    def test_the_run_knows_what_was_expected(self) -> None:
        """So that reports can tell it from what nobody expected."""
        with nkitools.collect_runs() as runs, expect_finding("NK101") as expected:
            nkitools.simulate(tall, X, rules="report")
        (run,) = runs
        assert run.expected == expected.findings
        assert {finding.rule for finding in run.expected} == {"NK101"}

    def test_another_rule_may_be_allowed(self) -> None:
        """Around the block and in it."""
        with nkitools.allow_findings("NK304"), expect_finding("NK101"), nkitools.allow_findings("NK305"):
            nkitools.simulate(tall, X)

    def test_a_block_may_be_used_again(self) -> None:
        """Each use collects findings anew."""
        block = expect_finding("NK101")
        for _ in range(2):
            with block:
                nkitools.simulate(tall, X)
        assert len(block.findings) == 1
        assert repr(block) == "<expect_finding: NK101 (partition-limit)>"


class TestRefused:
    """Expectations that everything would fulfil, or that contradict themselves."""

    @pytest.mark.parametrize("where", [{name: text} for name in ("line", "file", "match") for text in ("", " ")])
    def test_an_empty_text_fits_every_finding(self, where: dict[str, str]) -> None:
        """It is named."""
        ((name, text),) = where.items()
        with pytest.raises(ValueError, match=f"^expect_finding: {name}={text!r} fits every finding; write a text"):
            expect_finding("NK101", **where)  # type: ignore[arg-type]

    def test_a_rule_is_allowed_or_expected(self) -> None:
        """By the block around, and by one inside of it: an allowed finding ends no run."""
        with (
            nkitools.allow_findings("NK101"),
            pytest.raises(
                ValueError, match=r"^expect_finding: NK101 \(partition-limit\) is allowed here, and expected"
            ),
            expect_finding("NK101"),
        ):
            pass
        with (
            pytest.raises(ValueError, match=r"^expect_finding: NK101 is allowed in the block \(allow=\), and expected"),
            expect_finding("NK101"),
            nkitools.allow_findings("NK101"),
        ):
            nkitools.simulate(tall, X)


class TestFails:
    """The counterparts: something else happened, and the failure says what."""

    def test_nothing_was_reported(self) -> None:
        """The kernels that ran are named, with their chip."""
        assert fails("NK101", run=lambda: nkitools.simulate(fine, X, chip="trn1")) == (
            "expected NK101 (partition-limit), which was not reported\nno rule was reported; run were `fine` on trn1"
        )

    def test_no_kernel_ran(self) -> None:
        """A block that tests nothing is no negative test."""
        assert fails("NK101").endswith("\nno kernel was run in the block")

    @pytest.mark.parametrize("level", ["error", "report"])
    def test_another_rule_was_reported(self, level: str) -> None:
        """Its text stands there, and its error is the cause."""
        with options.override(rules=level), pytest.raises(AssertionError) as raised, expect_finding("NK103", "NK402"):
            nkitools.simulate(tall, X)
        expected, instead, finding, *_ = str(raised.value).splitlines()
        assert expected == (
            "expected NK103 (matmul-contraction-limit) or NK402 (out-of-bounds), which was not reported"
        )
        assert instead == "reported instead:"
        assert finding.startswith(f"  {__file__}:{tall.__code__.co_firstlineno + 3}:")
        assert ": NK101 nl.load" in finding
        assert isinstance(raised.value.__cause__, nkitools.KernelError) is (level == "error")

    @pytest.mark.parametrize(
        ("where", "said"),
        [
            ({"line": 1}, "NK101 (partition-limit) at line 1, which"),
            ({"line": "nc_matmul("}, "NK101 (partition-limit) at a line with 'nc_matmul(', which"),
            ({"file": "expect.py"}, "NK101 (partition-limit) in expect.py, which"),
            ({"match": "512"}, "NK101 (partition-limit) with a message that matches '512', which"),
        ],
    )
    def test_the_rule_was_reported_elsewhere(self, where: dict[str, Any], said: str) -> None:
        """At another line, in another file (`expect.py` is not the end of `test_expect.py`), in other words."""
        text = fails("NK101", run=lambda: nkitools.simulate(tall, X), **where)
        assert said in text
        assert "NK101 nl.load" in text

    def test_many_findings_are_cut(self) -> None:
        """Each once, the first ten."""

        def kernel() -> None:
            for number in range(24):
                report("NK612", f"warning {'abcdefghijkl'[number // 2]}")

        lines = fails("NK101", run=lambda: nkitools.simulate(kernel)).splitlines()
        assert lines[-1] == "  ... and 2 more"
        assert len(lines) == 13

    @pytest.mark.parametrize("turn", [0, 1, 7, 41, 49])
    def test_a_message_of_any_turn_is_met(self, turn: int) -> None:
        """What one finding stands for is told apart where the test asks for some of it."""

        def kernel() -> None:
            for number in range(50):
                report("NK612", f"warning {number}")

        with expect_finding("NK612", match=f"warning {turn}$") as expected:
            run = nkitools.simulate(kernel)
        assert [(each.message, each.count) for each in expected.findings] == [(f"warning {turn}", 1)]
        assert sorted(each.count for each in run.findings) == [1, 49]
        assert [each.count for each in nkitools.simulate(kernel).findings] == [50]

    def test_switched_off_by_the_call_itself(self) -> None:
        """rules="off" in the call is the author's own word."""
        assert "no rule was reported" in fails("NK101", run=lambda: nkitools.simulate(tall, X, rules="off"))


class TestPassesThrough:
    """Exceptions that are none of its business."""

    def test_exceptions_of_the_kernel_and_of_the_test(self) -> None:
        """Also where the expected rule was reported before."""

        def dying(x: Any) -> None:
            report("NK612", "a warning")
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError), expect_finding("NK612"):
            nkitools.simulate(dying, X)
        with pytest.raises(KeyboardInterrupt), expect_finding("NK612"):
            raise KeyboardInterrupt

    def test_an_error_that_was_not_expected_beside_a_warning_that_was(self) -> None:
        """The warning is there; the error is another matter."""

        def both(x: Any) -> None:
            report("NK612", "a warning")
            tall(x)

        with pytest.raises(nkitools.KernelError, match="NK101"), expect_finding("NK612"):
            nkitools.simulate(both, X)


def test_nothing_is_left_behind() -> None:
    """After success and after failure options are what they were, and nobody listens any more."""
    with options.override(rules="off"):
        with expect_finding("NK101"):
            nkitools.simulate(tall, X)
        fails("NK103", run=lambda: nkitools.simulate(tall, X))
        assert options.value("rules") == "off"
        assert nkitools.simulate(tall, X).findings == []


def test_mistakes_are_reported_at_once() -> None:
    """No rule, a name that none has, findings before there are any."""
    with pytest.raises(ValueError, match="name a rule"):
        expect_finding()
    with pytest.raises(ValueError, match=r"no rule is called 'NK1011'. Did you mean .*NK101 partition-limit"):
        expect_finding("NK1011")
    missed = expect_finding("NK101")
    with pytest.raises(AssertionError, match="no kernel was run"), missed:
        pass
    assert missed.findings == []
    with pytest.raises(RuntimeError, match=r"NK101 \(partition-limit\) was not reported"):
        _ = missed.finding
    with expect_finding("NK101") as expected:
        with pytest.raises(RuntimeError, match="once the block has ended"):
            expected.findings  # noqa: B018
        nkitools.simulate(tall, X)
