"""Commit an instruction that was carried out: the record takes it, with the author's line and name.

Every way of issuing an instruction ends in `Core.commit`: here, and in the lines that the fast path takes from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Protocol

from nkitools.chip.core import Core
from nkitools.chip.tensor import NkiTensor
from nkitools.issue.careful_call import CarefulCall
from nkitools.issue.instruction_names import label
from nkitools.issue.plan import Plan
from nkitools.issue.refused_instructions import follow
from nkitools.issue.touched_elements import keep_touched
from nkitools.record.rows import operand_text, words_of


class Named(Protocol):
    """An instruction as messages show it."""

    @property
    def name(self) -> str:
        """The instruction's name."""

    @property
    def call_form(self) -> str:
        """The signature, as a remedy shows it."""


def commit(core: Core, plan: Plan, tensors: Iterable[NkiTensor], instruction: Named, name: str | None) -> None:
    """Record an instruction with these operands; ``name`` is what the author calls it, None for nothing."""
    if core.recording is not None:
        core.recording.committed(plan)
    core.commit(plan, core.record.site(), words_of(tensors))
    if name is not None:
        label(core, instruction, name, core.record.latest)


def commit_call(call: CarefulCall, instruction: Named, name: str | None) -> None:
    """Record a call that was performed, and which elements it has touched."""
    keep_touched(call.core, call.plan, call.tensors, call.touches, call.lanes, call.kept)
    if call.release is not None:
        call.release()
    if call.core.undone:
        follow(call.core, call.plan, zip(call.values, call.roles, strict=True))
    commit(call.core, call.plan, (tensor for tensor, _ in call.tensors), instruction, name)


def commit_lines(operands: Sequence[tuple[str, bool]], names: Sequence[str]) -> list[str]:
    """Return what `commit` does as lines of the fast path.

    ``operands``: each with whether it is always a tensor. ``names``: the parameter that holds the author's name.
    """
    texts = [(operand_text(f"s_{operand}", f"k_{operand}", operand), operand, sure) for operand, sure in operands]
    first = list(takewhile(lambda each: each[2], texts))
    lines = ["record = core.record", f"words = [{', '.join(text for text, _, _ in first)}]"]
    for text, operand, sure in texts[len(first) :]:
        lines.append(f"words += ({text})" if sure else f"if s_{operand} is not None: words += ({text})")
    lines += [  # what `Sites.current` does at a place that is known, without its calls
        "frame = getframe(2)",
        "site = record.sites.known.get((id(frame.f_code), frame.f_lasti))",
        "core.commit(plan, record.sites.current(4) if site is None else site, words)",
    ]
    return lines + [f"if {name} is not None: label(core, SELF, {name}, record.latest)" for name in names]
