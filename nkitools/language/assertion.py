"""``assert nl.equal(a, b)``: what a comparison function has made may be asserted, as the reference's examples do it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nkitools.record.source_sites import author_frame

if TYPE_CHECKING:
    from nkitools.chip.strided_view import StridedView


def assertable(tensor: StridedView) -> None:
    """Give the elements of a fresh tensor a truth value in the author's ``assert``: whether none of them is 0.

    Everywhere else it stays refused (NK602): an ``if`` would choose on the host what the chip cannot.
    """
    tensor.storage.truth = _truth


def _truth(tensor: StridedView) -> bool | None:
    from nkitools.authors_code.truth_values import is_asserted

    frame = author_frame()
    if frame is None or not is_asserted(frame.f_code, frame.f_lasti):
        return None
    return bool((tensor.read() != 0).all())
