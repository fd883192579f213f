"""Rules whose findings somebody accepts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools import allow_findings
from nkitools.dialects.modern import language as nl
from nkitools.record.allowed_rules import set_aside
from nkitools.record.run import Run
from nkitools.rules.finding import report
from tests.report.test_run_counts import finding

X = np.ones((256, 4), np.float32)


def tall(x: Any) -> Any:
    """Breaks NK101, beyond which a result can be computed."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x))
    return out


@pytest.mark.parametrize("level", ["error", "strict", "report"])
def test_an_allowed_error_ends_nothing(level: str) -> None:
    """The run goes on to its result; the finding is kept apart, with the reason."""
    with allow_findings("partition-limit", reason="tiled by the caller"):
        run = nkitools.simulate(tall, X, rules=level)
    np.testing.assert_array_equal(run.outputs, X)
    assert run.findings == []
    assert {each.rule for each in run.allowed} == {"NK101"}
    assert run.reasons == {"NK101": "tiled by the caller"}


def test_other_rules_speak_as_ever() -> None:
    """The counterpart: what is not named is raised, inside of the block and after it."""
    with allow_findings("NK103"), pytest.raises(nkitools.KernelError, match="NK101"):
        nkitools.simulate(tall, X)
    with allow_findings("NK101"):
        nkitools.simulate(tall, X)
    with pytest.raises(nkitools.KernelError, match="NK101"):
        nkitools.simulate(tall, X)


def test_where_nothing_can_be_computed_the_error_speaks() -> None:
    """An index outside of its tensor has no elements that could be taken in its place."""
    with allow_findings("NK402"):
        with pytest.raises(nkitools.KernelError, match="NK402"):
            nkitools.simulate(lambda x: x[0:999], X)
        run = nkitools.simulate(lambda x: x[0:999], X, rules="report")
    assert [each.rule for each in run.findings] == ["NK402"]
    assert run.outputs is None


def test_what_is_not_modelled_cannot_be_allowed() -> None:
    """There is nothing that could be accepted; nor can what is no rule."""
    with pytest.raises(ValueError, match=r"NK607 .* cannot be allowed"), allow_findings("not-modelled"):
        pass
    with pytest.raises(ValueError, match="no rule is called 'NK999'"), allow_findings("NK999"):
        pass


def test_the_innermost_reason_counts() -> None:
    """Blocks may be nested."""
    with allow_findings("NK612", reason="outer"), allow_findings("NK612", reason="inner"):
        run = nkitools.simulate(lambda: report("NK612", "a warning"))
    assert run.reasons == {"NK612": "inner"}


def test_repeats_of_allowed_findings_are_counted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """One finding stands for all times, however many there are; the reason stays with it."""
    monkeypatch.setattr("nkitools.record.reporter.MAX_REPEATS", 2)

    def kernel() -> None:
        for _ in range(5):
            report("NK612", "a warning")

    with allow_findings("NK612"):
        run = nkitools.simulate(kernel)
    assert [each.count for each in run.allowed] == [5]
    assert (run.findings, run.findings_left_out) == ([], 0)


def test_a_run_of_another_target_is_sorted_afterwards() -> None:
    """Whoever collects findings by itself: the allowed ones move, but for the one that ended the run."""
    kept, moved = finding(line=1), finding(line=2)
    run = Run("giou", "elsewhere", findings=[moved, kept], error=nkitools.KernelError(kept))
    set_aside(run)
    assert run.findings == [moved, kept]
    with allow_findings("NK101", reason="why not"):
        set_aside(run)
    assert (run.findings, run.allowed, run.reasons) == ([kept], [moved], {"NK101": "why not"})
