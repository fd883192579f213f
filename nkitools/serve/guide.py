"""The compact reference of a dialect, for an agent's context: limits of a chip, call forms, what kernels may hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from nkitools.facts import options, versions
from nkitools.facts.generations import FIELDS, generation_of
from nkitools.serve.instruction_cards import Card, card, names


def guide(chip: str, *, legacy: bool = False) -> str:
    """Return the reference of the modern or the legacy dialect for a chip, under the current NKI version."""
    version = "SDK 2.26" if legacy else f"NKI {options.language().name}"
    base = "neuronxcc.nki" if legacy else "nki"
    said = Path(__file__).with_name("legacy_guide.md" if legacy else "modern_guide.md").read_text(encoding="utf-8")
    lines = [f"# {base} for {chip} ({version}), by nkitools", "", said, "## Limits", ""]
    table = generation_of(chip)
    wanted = (
        name for name in FIELDS if "fmax" in name or name.endswith(("partitions", "partition_bytes", "bank_bytes"))
    )
    lines += [", ".join(f"{name} {getattr(table, name)}" for name in wanted)]
    for module, short in ((f"{base}.isa", "nisa"), (f"{base}.language", "nl")):
        lines += ["", f"## {short}", "", *_entries(module)]
    return "\n".join(lines) + "\n"


def _entries(module: str) -> Iterator[str]:
    language = options.language()
    known = {} if module.startswith("neuronxcc") else versions.names_of(module)
    for name in names(module):
        found, row = card(name), known.get(name.rpartition(".")[2])
        if found is not None and "(" in found.call and (row is None or row.is_in(language)):
            yield f"- {_call(found)}: {_what(found)}"


def _call(found: Card) -> str:
    """Return a card's call form without the module, and without parameters that most functions have."""
    text = re.sub(r", name=None|, engine=nisa\.engine\.unknown|, \*\*kwargs|, mask=None", "", found.call)
    return text.partition(".")[2]


def _what(found: Card) -> str:
    text = found.sentence.removeprefix("Return ")
    return text if len(text) <= 100 else text[:97].rsplit(" ", 1)[0] + " …"
