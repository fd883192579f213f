"""Carry a call out step by step: all instructions that the fast path does not take, collectives and barriers."""

from __future__ import annotations

from nkitools.issue.careful_call import CarefulCall
from nkitools.issue.check import check
from nkitools.issue.commit import Named, commit_call
from nkitools.issue.perform import perform


def carry_out(call: CarefulCall, instruction: Named, name: str | None) -> None:
    """Check, compute and record a call that has a plan; ``name``: the author's name for the instruction, or None."""
    check(call)
    perform(call)
    commit_call(call, instruction, name)
