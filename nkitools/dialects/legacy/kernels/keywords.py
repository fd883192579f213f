"""Keyword arguments beyond the documented signatures: refused by name, except the harmless ones of public kernels.

AWS's signatures end in ``**kwargs`` and swallow everything, a typing error too.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeAlias

from nkitools.dialects.legacy.aws_names.enums import oob_mode
from nkitools.rules.finding import refuse

# What is passed beside the documented parameters: a name, a memory, a mode, a switch.
Keyword: TypeAlias = str | float | bool | Enum | None

_DEBUG = "a name for the compiler's messages"
_SPEED = "a hint to the compiler's scheduler"
_ANY = {"name": _DEBUG}

# Function: keyword and why it changes no result of a simulated kernel.
UNDOCUMENTED: dict[str, dict[str, str]] = {
    "nl.load": {"mode": "what an out-of-bounds indirect index does, as in nisa.dma_copy", **_ANY},
    "nl.store": {"mode": "what an out-of-bounds indirect index does, as in nisa.dma_copy", **_ANY},
    "nl.ndarray": {"lazy_initialization": "when the compiler fills a tensor"},
    "nl.zeros": {"lazy_initialization": "when the compiler fills a tensor"},
    "nl.full": {"lazy_initialization": "when the compiler fills a tensor"},
    "nl.affine_range": {"precise_schedule": _SPEED},
    "nl.sequential_range": {"directives": _SPEED},
}


def check_keywords(function: str, given: dict[str, Any]) -> None:
    """NK609 for keywords that the function neither documents nor is known to take."""
    if not given:
        return
    known = UNDOCUMENTED.get(function, _ANY)
    unknown = sorted(set(given) - set(known))
    if unknown:
        message = f"{function} does not know the keyword argument `{'`, `'.join(unknown)}`"
        from nkitools.dialects.public import parameters_of
        from nkitools.facts.invented_names import keyword_remedy

        module = {"nl": "language", "nisa": "isa"}.get(function.partition(".")[0], "")
        parameters = parameters_of(f"neuronxcc.nki.{module}", function.rpartition(".")[2])
        meant = keyword_remedy(unknown[0], parameters)
        refuse("NK609", message, remedy=meant.strip() or _remedy(known))
    mode = given.get("mode")
    if mode is not None and not isinstance(mode, oob_mode):
        refuse("NK609", f"{function}: `mode` must be a nisa.oob_mode, it is {mode!r}")


def _remedy(known: dict[str, str]) -> str:
    also = f" Beyond its documentation it takes {', '.join(known)}." if known else ""
    return f"Leave it out, or look the name up in the API reference of SDK 2.26.{also}"
