"""pdb for kernels: it stops in the author's frames, and steps over nkitools and libraries that it calls."""

from __future__ import annotations

import os
import pdb
import sysconfig
from types import FrameType

from nkitools.record.source_sites import LAUNCH, is_internal

_LIBRARIES = tuple(
    os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib", "purelib", "platlib")
)


class KernelDebugger(pdb.Pdb):
    """As pdb, but ``step`` does not go into an instruction, and ``breakpoint()`` does not end up in one."""

    def stop_here(self, frame: FrameType) -> bool:
        """Return whether to stop in a frame: never in nkitools', nor in those of libraries that nkitools has called."""
        return bool(super().stop_here(frame)) and not _is_ours(frame)


def _is_ours(frame: FrameType) -> bool:
    """Return whether a frame is nkitools', or that of a library which nkitools has called."""
    each: FrameType | None = frame
    while each is not None and not _is_nkitools(each):
        outer = each.f_back
        if not _is_of_library(each) or (outer is not None and outer.f_globals.get("__name__") == LAUNCH):
            return False
        each = outer
    return each is not None


def _is_nkitools(frame: FrameType) -> bool:
    # The methods that dataclasses write have no file.
    return is_internal(frame.f_code.co_filename) or _module(frame).partition(".")[0] == "nkitools"


def _is_of_library(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    return file.startswith(_LIBRARIES) or (file.startswith("<") and _module(frame) != "__main__")


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))
