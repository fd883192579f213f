"""Masks joined by ``and``: ``i_p < h and i_f < w`` is both comparisons, as its author means it.

AWS supports ``&`` only (NKI Known Issues, SDK 2.26), but its own test of ``nc_match_replace8`` writes ``and``. Python
evaluates the truth value of the left comparison and, if it is true, returns the right one. So if the author's bytecode
shows that the value of an ``and`` is used, and that its right side makes a comparison, the left comparison returns True
and waits for the comparison that this stretch of code makes.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import FrameType
from typing import Any, Protocol, TypeVar

from nkitools.authors_code.truth_values import right_of_and
from nkitools.dialects.legacy.kernels.kernel_state import FORM
from nkitools.record.source_sites import author_frame
from nkitools.rules.finding import report


class Comparison(Protocol):
    """A mask that can be joined with another one."""

    def __and__(self, other: Any, /) -> Any: ...


_Mask = TypeVar("_Mask", bound=Comparison)


@dataclass(frozen=True)
class Waiting:
    """A comparison on the left of ``and``: the frame that needed its truth value, and the range of the right side's
    code.
    """

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
    right = right_of_and(frame.f_code, frame.f_lasti)
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
