"""Rules whose findings are accepted: they are kept apart from the findings, and end no run that can go on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from nkitools.record.run_listeners import added
from nkitools.rules.catalogue import rule_named

if TYPE_CHECKING:
    from nkitools.record.run import Run

_allowances: ContextVar[tuple[Mapping[str, str], ...]] = ContextVar("nkitools_allowed", default=())


def allowance(rule: str) -> str | None:
    """Return the reason for accepting findings of this rule ('' if none was given); None if they are not accepted."""
    known = _allowances.get()
    return next((reasons[rule] for reasons in reversed(known) if rule in reasons), None) if known else None


@contextmanager
def allow_findings(*rules: str, reason: str = "") -> Iterator[None]:
    """Accept the findings of ``rules`` (ids, slugs or legacy codes) in the runs started inside.

    They go to ``run.allowed`` in place of ``run.findings``, and ``reason`` to ``run.reasons``; if two blocks allow one
    rule, the inner one's reason counts. An error of an allowed rule raises nothing as long as a result can still be
    computed; otherwise it is raised as if it were not allowed.
    ValueError for an unknown rule and for NK607: what is not modelled has no result that could be accepted.
    """
    reasons = {rule_named(rule).id: reason for rule in rules}
    if "NK607" in reasons:
        raise ValueError("NK607 (not-modelled) cannot be allowed: nothing was computed that could be accepted")
    with added(_allowances, reasons):
        yield


def set_aside(run: Run) -> None:
    """Move the allowed findings of a run to ``run.allowed``, unless that was done before.

    The finding that ended the run stays.
    """
    if not _allowances.get():
        return
    ended_by = getattr(run.error, "finding", None)
    kept = []
    for finding in run.findings:
        reason = None if finding is ended_by else allowance(finding.rule)
        if reason is None:
            kept.append(finding)
        else:
            run.set_aside.append((finding, reason))
    run.findings[:] = kept
