"""The rules with a remedy that follows from the source, and the suggestions for a finding."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nkitools.edits.source import Text
from nkitools.lint.module import Module, Unreadable, parse
from nkitools.rules.finding import Finding
from nkitools.suggestions import bounds, forms, memory, order, results, tiling
from nkitools.suggestions.site import Site, Suggestion

_MAKERS: dict[str, tuple[Callable[[Site], Iterator[Suggestion]], ...]] = {
    "NK101": (tiling.by_rows, tiling.by_contraction),
    "NK103": (tiling.by_contraction,),
    "NK111": (memory.without_broadcast,),
    "NK201": (memory.in_another_memory,),
    "NK206": (memory.without_engine,),
    "NK303": (memory.in_float32,),
    "NK401": (memory.zeroed,),
    "NK402": (bounds.smaller_last_tile,),
    "NK403": (bounds.rounded_up,),
    "NK407": (results.returned,),
    "NK408": (results.returned,),
    "NK501": (order.one_after_the_other,),
    "NK503": (order.first_overwrites,),
    "NK506": (order.first_overwrites,),
    "NK512": (order.first_overwrites,),
    "NK601": (forms.functions_for_operators,),
    "NK602": (forms.joined_by_and,),
    "NK603": (forms.whole_numbers,),
    "NK604": (forms.joined_by_and,),
    "NK606": (memory.without_engine,),
    "NK607": (forms.respelled,),
    "NK608": (forms.renamed,),
    "NK609": (forms.respelled,),
    "NK615": (memory.with_division,),
    "NK618": (forms.renamed,),
    "NK620": (forms.joined_by_and,),
}
MECHANICAL = tuple(_MAKERS)  # the rules with a remedy that can follow from the source


def suggestions(finding: Finding, text: str, module: Module | None = None) -> list[Suggestion]:
    """Return the changes of a file's text that mend a finding, the likeliest first; [] if none is known.

    ``module``: the parsed text, if the caller has it.
    """
    makers = _MAKERS.get(finding.rule, ())
    if not makers:
        return []
    try:
        site = Site(finding, module or parse(text, finding.file))
    except Unreadable:
        return []
    if not 0 < finding.line <= len(site.module.lines):
        return []
    return [each for make in makers for each in make(site) if each.edits]


def mended(text: str, suggestion: Suggestion) -> str:
    """Return the text of a file after a suggestion."""
    return Text(text).edited(suggestion.edits)
