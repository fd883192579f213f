"""The page of known faults, written from their table.

``python -m docs.generate_known_faults`` prints it; the Sphinx build writes it beside the other reference pages.
"""

from __future__ import annotations

from nkitools.facts.known_faults import Fault, faults
from nkitools.rules.catalogue import RULES

INTRODUCTION = """\
# Known faults

What is known to go wrong outside of a kernel's own text: results that a chip gets wrong, versions with a fault, codes
of AWS's compiler and runtime. `nkitools explain NAME` says a row (by its name, its code or the public thread),
`nkitools doctor` those of the versions and the chip that are here, and a failure on hardware those of the codes that
it names. A form that a chip is reported to get wrong is the hint NK623 or PL303 at its line.

Each row says what its source says and no more: a version is the first one that is known to have the fault, or (below)
the first one that is not. Where versions and chips are empty nothing is known of them, or all are concerned.
"""
_HEAD = "| name | what | do | versions | chips | source | rules |\n|---|---|---|---|---|---|---|"


def known_faults_page() -> str:
    """Return the whole page in Markdown: a section for each kind, with a table of its rows."""
    kinds = dict.fromkeys(fault.kind for fault in sorted(faults(), key=lambda each: each.is_code))
    sections = [INTRODUCTION]
    for kind in kinds:
        rows = (_row(fault) for fault in faults() if fault.kind == kind)
        sections.append("\n".join([f"## {kind[0].upper()}{kind[1:]}\n", _HEAD, *rows, ""]))
    return "\n".join(sections)


def _row(fault: Fault) -> str:
    what = fault.meaning + (f". Likely: {fault.cause}" if fault.cause else "")
    rules = ", ".join(f"[{rule}](rules.md#{rule.lower()}-{RULES[rule].slug})" for rule in fault.rules)
    places = (f"[{place.rpartition('/')[2]}]({link})" if link else place for place, link in fault.links.items())
    texts = (each.replace("](", r"]\(") for each in (fault.title, what, fault.write))  # kernel[1](x) is no link
    cells = (*texts, fault.versions, " ".join(fault.chips), "; ".join(places), rules)
    return "| " + " | ".join(cell.replace("|", r"\|").replace("<", "&lt;") for cell in cells) + " |"


if __name__ == "__main__":
    print(known_faults_page())
