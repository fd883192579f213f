"""Masks joined by ``and``: ``i_p < h and i_f < w`` is both comparisons, as its author means it.

AWS supports ``&`` only (NKI Known Issues, SDK 2.26), but its own test of ``nc_match_replace8`` writes ``and``. Python
asks the left comparison for its truth value and, if that is true, takes the right one in its place. So where
the author's bytecode shows that the value of an ``and`` is wanted, and that its right side makes a comparison, the left
one says that it is true and waits for the comparison that is made in that stretch of code.
"""

from __future__ import annotations

import dis
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any, Protocol, TypeVar

from nkitools.dialects.legacy.kernels.kernel_state import FORM
from nkitools.record.source_sites import author_frame
from nkitools.rules.finding import report

_SILENT = ("CACHE", "EXTENDED_ARG", "NOT_TAKEN")  # nothing that the author wrote


class Comparison(Protocol):
    """A mask, as far as this file joins it with another one."""

    def __and__(self, other: Any, /) -> Any: ...


_Mask = TypeVar("_Mask", bound=Comparison)


@dataclass(frozen=True)
class Waiting:
    """A comparison on the left of ``and``: the frame that asked for its truth, and where the right side's code lies."""

    mask: Comparison
    frame: FrameType
    right: range

    @property
    def is_there(self) -> bool:
        """Return whether the right side is being computed."""
        return self.frame.f_lasti in self.right


def waits(mask: Comparison) -> bool:
    """Return whether the truth value asked for is of the left side of an ``and`` of two comparisons (NK620)."""
    form, frame = FORM.get(), author_frame(2)
    if form is None or frame is None:
        return False
    right = _right_side(frame.f_code, frame.f_lasti)
    if right is None:
        return False
    form.joining = Waiting(mask, frame, right)
    place = (id(frame.f_code), right.stop)  # the same for each `and` of a row
    if place not in form.reported:
        form.reported.add(place)
        report("NK620", "a mask is joined by `and`; it is taken as &, both comparisons")
    return True


def with_left_side(mask: _Mask) -> _Mask:
    """Return a mask that the author has just made, and the comparison that waits for it."""
    form = FORM.get()
    if form is None or form.joining is None or form.joining.frame is not author_frame(2) or not form.joining.is_there:
        return mask
    joined: _Mask = form.joining.mask & mask
    form.joining = None
    return joined


def was_lost() -> bool:
    """Return whether a comparison has waited in vain: ``and`` is done, and its right side was a plain truth value."""
    form = FORM.get()
    if form is None or form.joining is None or form.joining.is_there:
        return False
    form.joining = None
    return True


@lru_cache(maxsize=256)
def _right_side(code: CodeType, offset: int) -> range | None:
    return right_side(dis.get_instructions(code), offset)


def right_side(instructions: Iterable[dis.Instruction], offset: int) -> range | None:
    """Return where the right side of an ``and`` lies, if the instruction at ``offset`` asks for the truth of its left
    side.

    None where the truth decides something else, as in ``if a and b``, ``a or b``, ``not a`` and ``0 <= i < n``, and
    where the right side makes no comparison.
    """
    code = [each for each in instructions if each.opname not in _SILENT]
    offsets = [each.offset for each in code]
    asked = bisect_left(offsets, offset)
    jump = asked + (code[asked].opname == "TO_BOOL")  # Python 3.13 asks in an instruction of its own
    if code[jump].opname == "JUMP_IF_FALSE_OR_POP":  # Python 3.11
        left = code[:asked]
    elif (
        _is_copy(code[asked - 1], 1) and code[jump].opname == "POP_JUMP_IF_FALSE" and code[jump + 1].opname == "POP_TOP"
    ):
        left = code[: asked - 1]
    else:
        return None
    is_chain = len(left) > 1 and _is_copy(left[-2], 2)  # of the middle of three, which is compared twice
    right = code[jump + 1 : bisect_left(offsets, code[jump].argval)]
    if is_chain or not _makes_comparison(right):
        return None
    return range(right[0].offset, code[jump].argval)


def _is_copy(instruction: dis.Instruction, depth: int) -> bool:
    return instruction.opname == "COPY" and instruction.arg == depth


def _makes_comparison(code: list[dis.Instruction]) -> bool:
    """Return whether the value of the code is a comparison, or comparisons joined by &."""
    code = [each for each in code if each.opname != "RETURN_VALUE"]  # what is returned may be so on both ways
    if not code:
        return False
    is_last = code[-1].opname == "COMPARE_OP" or (code[-1].opname == "BINARY_OP" and code[-1].argrepr == "&")
    return is_last and any(each.opname == "COMPARE_OP" for each in code)
