"""Forms of code that a chip is reported to compute otherwise (NK623): rows of the table of known faults."""

from __future__ import annotations

from typing import NamedTuple

from nkitools.facts.generations import Generation
from nkitools.facts.known_faults import fault_of_form
from nkitools.facts.versions import LanguageVersion


class Known(NamedTuple):
    """The sentence and the remedy of a report about a form."""

    sentence: str
    remedy: str


def known_fault(name: str, form: str, chip: Generation, language: LanguageVersion) -> Known | None:
    """Return what is known of a form, the row ``name`` of the table; None where chip or version is not concerned."""
    fault = fault_of_form(name)
    if not fault.concerns(chip.chips, language.name):
        return None
    of = ", ".join(filter(None, (fault.address, " ".join(fault.chips), fault.versions)))
    return Known(f"{form}: a public report says that {fault.meaning} ({of})", fault.write)
