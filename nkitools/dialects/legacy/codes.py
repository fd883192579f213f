"""``nki.errors``: under the legacy dialect a message also carries AWS's code of the error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nkitools.rules.catalogue import Rule
from nkitools.rules.finding import Reporter


def with_codes(reporter: Reporter) -> Reporter:
    """``reporter`` with AWS's code added to a message that lacks it, where the rule stands for one code only."""

    def coded(rule: Rule, message: str, fatal: bool, about: Sequence[Any], remedy: str) -> bool:
        if len(rule.aliases) == 1 and rule.aliases[0] not in message:
            message = f"{message} ({rule.aliases[0]})"
        return reporter(rule, message, fatal, about, remedy)

    return coded
