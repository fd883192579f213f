"""``nki.errors``: under the legacy dialect a message also carries AWS's code of the error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nkitools.rules.catalogue import Rule

Reporter = Callable[[Rule, str, bool, Sequence[Any], str], None]


def with_codes(reporter: Reporter) -> Reporter:
    """``reporter`` with AWS's code added to a message that lacks it, where the rule stands for one code only."""

    def coded(rule: Rule, message: str, fatal: bool, about: Sequence[Any], remedy: str) -> None:
        if len(rule.aliases) == 1 and rule.aliases[0] not in message:
            message = f"{message} ({rule.aliases[0]})"
        reporter(rule, message, fatal, about, remedy)

    return coded
