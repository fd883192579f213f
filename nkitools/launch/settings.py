"""How a launch is to run: at which rule level, in which environment."""

from __future__ import annotations

import os
from typing import Any

from nkitools import options
from nkitools.rules.finding import not_modelled

LEVELS = ("error", "report", "off")


def resolve_level(rules: str | None) -> str:
    """The rule level asked for: the argument, else the option (``--nki-rules``, ``NKITOOLS_RULES``), else ``error``."""
    level: Any = options.value("rules") if rules is None else rules
    if level not in LEVELS:
        raise ValueError(f"rules: must be one of {', '.join(LEVELS)}, it is {level!r}")
    return str(level)


def check_environment() -> None:
    """Refuse what AWS's simulator is told by environment variables and this version does not model."""
    precise = os.environ.get("NKI_PRECISE_FP", "")
    if precise not in ("", "1"):
        not_modelled(
            f"NKI_PRECISE_FP={precise} (full-precision mode) is not modelled yet", remedy="Unset NKI_PRECISE_FP."
        )
