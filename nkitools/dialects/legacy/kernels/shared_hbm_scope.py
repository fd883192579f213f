"""NK208: a kernel may create a shared_hbm tensor only in its own body, not in a function that it calls.

For loops over ranges, and an ``if`` whose condition differs between programs or iterations, see `scopes`.
"""

from __future__ import annotations

from types import FrameType

from nkitools.dialects.legacy.kernels.kernel_state import SKIP_SHARED_HBM_CHECK, form_of
from nkitools.record.loop_counters import author_frames
from nkitools.record.source_sites import author_frame
from nkitools.rules.finding import report


def check_kernel_level(what: str) -> None:
    """NK208: the author's frame that creates the tensor is the kernel's own."""
    form = form_of()
    if SKIP_SHARED_HBM_CHECK in form.switches:
        return
    frames = [frame for frame in author_frames(author_frame(2)) if not _is_comprehension(frame)]
    if len(frames) > 1 and frames[0].f_code is not form.code:
        message = (
            f"{what}: a shared_hbm tensor is created in {frames[0].f_code.co_name}, which the kernel calls; only the "
            "top level of a kernel may create one"
        )
        report("NK208", message, remedy=f"Create it in the kernel and pass it to {frames[0].f_code.co_name}.")


def _is_comprehension(frame: FrameType) -> bool:
    """Return whether a frame is a comprehension's; later Pythons run it in the frame around it."""
    return frame.f_code.co_name in ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")
