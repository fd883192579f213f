"""The error of each output that a run explains; the room of precision, which lies above, works it out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nkitools.record.explained_errors import ExplainedErrors
    from nkitools.record.run_contents import RunContents

_makers: list[Callable[[Any], ExplainedErrors]] = []


def offer_tolerance(make: Callable[[Any], ExplainedErrors]) -> None:
    """Let ``make`` return the errors that runs explain."""
    _makers[:] = [make]


def errors_of_run(run: RunContents) -> ExplainedErrors:
    """Return the error of each output that a run explains."""
    return _makers[0](run)
