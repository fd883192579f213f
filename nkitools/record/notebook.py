"""The display of a run in notebooks; the room of reports, which lies above, offers the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_frames: list[Callable[[Any], str]] = []


def offer_notebook_frame(frame: Callable[[Any], str]) -> None:
    """Let ``frame`` make the HTML that notebooks show of a run."""
    _frames[:] = [frame]


def notebook_frame(run: Any) -> str:
    """Return the HTML that notebooks show of ``run``."""
    return _frames[0](run)
