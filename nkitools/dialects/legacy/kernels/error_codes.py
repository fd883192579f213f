"""``nki.errors``: under the legacy dialect a message also carries AWS's code of the error."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from types import FrameType
from typing import Any

from nkitools.record.source_sites import Site
from nkitools.rules.catalogue import Rule
from nkitools.rules.finding import REPORTER, Drawing, Reporter

OUTSIDE = "err_nki_api_outside_of_nki_kernel"

# Where a rule stands for several codes: what its message says, and which of them that is.
_BY_MESSAGE = {
    "NK601": ((re.compile("^a while loop"), "err_while_loop_requires_unconditional_entry"),),
    "NK109": ((re.compile("^activation.*: `scale`"), "err_activation_scale_scalar_or_vector"),),
    "NK301": (
        (re.compile("activation.*: `bias`"), "err_activation_bias_invalid_type"),
        (re.compile("activation.*: `scale`"), "err_activation_scale_invalid_type"),
    ),
}


def _code_of(rule: Rule, message: str) -> str:
    """AWS's code for a finding; '' where the message has it already, or none fits."""
    if "err_" in message:
        return ""
    if rule.id in _BY_MESSAGE:
        return next((code for pattern, code in _BY_MESSAGE[rule.id] if pattern.search(message)), "")
    return rule.aliases[0] if len(rule.aliases) == 1 else ""


class _Coded:
    """A reporter that adds AWS's code to a message that lacks it."""

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter

    def __call__(
        self, rule: Rule, message: str, fatal: bool, about: Sequence[Any], remedy: str, picture: Drawing | None = None
    ) -> bool:
        code = _code_of(rule, message)
        if code:
            message = f"{message} ({code})"
        return self.reporter(rule, message, fatal, about, remedy, picture)


def with_codes(reporter: Reporter) -> Reporter:
    """Return ``reporter`` as the legacy dialect needs it."""
    return _Coded(reporter)


def placed(
    site: Site, frame: FrameType | None = None, *, program: tuple[int, ...] = (), loops: dict[str, int] | None = None
) -> AbstractContextManager[None]:
    """Place the reports inside at a site that the author has left; ``frame`` is the author's where it is known.

    ``program`` and ``loops`` are those of the time that a report is about, where that has passed.
    """
    reporter = REPORTER.get()
    place = getattr(reporter.reporter, "placed", None) if isinstance(reporter, _Coded) else None
    if place is None:
        return nullcontext()
    found: AbstractContextManager[None] = place(site, frame, program=program, loops=loops)
    return found
