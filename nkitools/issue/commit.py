"""Commits an executed instruction: adds it to the record, with the author's line and name.

The careful path calls `commit_call`; the fast path has source lines that are made here. Both call `Record.commit`,
which adds a row by `Rows.add`, or keeps an instruction open that makes the value of a call in the legacy dialect
(`nkitools.record.open_instruction`). If an instruction is only a row, the fast path has the lines of `Rows.add` itself
for repeats at the same line.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Protocol

from nkitools.issue.careful_call import CarefulCall
from nkitools.issue.instruction_names import label
from nkitools.issue.touched_elements import keep_touched
from nkitools.record.rows import PACKERS, ROW_LINES, head_of, operand_text, own_text, words_of


class Named(Protocol):
    """An instruction as messages show it."""

    @property
    def name(self) -> str:
        """The instruction's name."""

    @property
    def call_form(self) -> str:
        """The signature, as a remedy shows it."""


def commit_call(call: CarefulCall, instruction: Named, name: str | None) -> None:
    """Record an executed call and the elements that it touched; ``name``: the author's name for it."""
    core, record = call.core, call.core.record
    keep_touched(core, call.plan, call.tensors, call.touches, call.kept)
    if call.release is not None:
        call.release()
    if core.undone:
        from nkitools.issue.refused_instructions import follow

        follow(core, call.plan, zip(call.values, call.roles, strict=True))
    record.commit(call.plan, record.site(), words_of(tensor for tensor, _ in call.tensors))
    if name is not None:
        label(core, instruction, name, record.latest)


COMMITTING = {"label": label, "packers": PACKERS, "head_of": head_of}  # what the lines below name


def quick_commit_lines(operands: Sequence[tuple[str, bool]], known: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return `commit_call` as source lines of the fast path.

    A line that repeats its last instruction adds the row directly, unless there is more to do for each instruction, or
    an operand is older than the run. ``operands``: each with whether it is always a tensor. ``known``: the parts of a
    call that decide its plan. ``names``: the parameter for the author's name.
    """
    sure = len(list(takewhile(lambda each: each[1], operands)))
    own = own_text(sure, len(operands))
    if not any(sure for _, sure in operands):
        own = f"(not words or {own})"
    return [
        *_words_lines(operands),
        f"if known is not None and record.only_adds and {own}:",
        *[f"    {line}" for line in ROW_LINES],
        "else:",
        "    site = record.site()",
        "    record.commit(plan, site, words)",
        "    if record.only_adds and record.sites.known.get((id(frame.f_code), frame.f_lasti)) == site:",
        f"        record.issued[at] = (SELF, {', '.join(known)}, plan, head_of(plan, site))",
        *[f"if {name} is not None: label(core, SELF, {name}, record.latest)" for name in names],
    ]


def _words_lines(operands: Sequence[tuple[str, bool]]) -> list[str]:
    texts = [(operand_text(f"s_{operand}", f"k_{operand}", operand), operand, sure) for operand, sure in operands]
    first = list(takewhile(lambda each: each[2], texts))
    lines = [f"words = [{', '.join(text for text, _, _ in first)}]"]
    for text, operand, sure in texts[len(first) :]:
        lines.append(f"words += ({text})" if sure else f"if s_{operand} is not None: words += ({text})")
    return lines
