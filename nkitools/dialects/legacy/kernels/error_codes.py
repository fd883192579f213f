"""``nki.errors``: under the legacy dialect a message also carries AWS's code of the error."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from types import FrameType
from typing import Any

from nkitools.record.source_sites import Site
from nkitools.rules.catalogue import Rule
from nkitools.rules.finding import REPORTER, Reporter

OUTSIDE = "err_nki_api_outside_of_nki_kernel"

# Where a rule stands for several codes: the argument of an activation that is wrong, and which of them that is.
_OF_ACTIVATIONS = {
    "NK109": {"scale": "err_activation_scale_scalar_or_vector"},
    "NK301": {"bias": "err_activation_bias_invalid_type", "scale": "err_activation_scale_invalid_type"},
}


def _code_of(rule: Rule, facts: Mapping[str, Any]) -> str:
    """Return AWS's code for a finding; '' if none fits."""
    if rule.id in _OF_ACTIVATIONS:
        is_activation = str(facts.get("instruction", "")).startswith("activation")
        return _OF_ACTIVATIONS[rule.id].get(facts.get("argument", ""), "") if is_activation else ""
    return rule.aliases[0] if len(rule.aliases) == 1 else ""


class _Coded:
    """A reporter that adds AWS's code to a message; one with the fact ``code`` has it already."""

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter

    def __call__(self, rule: Rule, message: str, *how: Any) -> bool:
        facts = how[-1]
        code = "" if "code" in facts else _code_of(rule, facts)
        if code:
            message, facts = f"{message} ({code})", {**facts, "code": code}
        return self.reporter(rule, message, *(*how[:-1], facts))


def with_codes(reporter: Reporter) -> Reporter:
    """Return ``reporter`` as the legacy dialect needs it."""
    return _Coded(reporter)


def placed(
    site: Site, frame: FrameType | None = None, *, program: tuple[int, ...] = (), loops: dict[str, int] | None = None
) -> AbstractContextManager[None]:
    """Place the reports inside the block at an earlier site of the author's; ``frame`` is the author's, if known.

    ``program`` and ``loops``: of the moment that the reports are about, if it has passed.
    """
    reporter = REPORTER.get()
    place = getattr(reporter.reporter, "placed", None) if isinstance(reporter, _Coded) else None
    if place is None:
        return nullcontext()
    found: AbstractContextManager[None] = place(site, frame, program=program, loops=loops)
    return found
