"""The page of all chips, written from the tables of their generations.

``python -m docs.generate_chips`` prints it; the Sphinx build writes it beside the other reference pages.
"""

from __future__ import annotations

import inspect
import re

from nkitools.facts.generations import DEFAULT_CHIP, FIELDS, TABLES, Generation

INTRODUCTION = """\
# Chips

nkitools checks a kernel against one generation of the NeuronCore at a time;
[choose the chip](../how-to/chip.md) says how.
"""
_FIELD = re.compile(r"^    (\w+): .*  # (.*)$", re.MULTILINE)


def chip_page() -> str:
    """Return the whole page in Markdown: the names of the chips, and everything that differs between them."""
    names = _table(["chip", "also called", "generation"], [_names(each) for each in TABLES])
    parts = [INTRODUCTION, *names, "", "## Limits and abilities", ""]
    meanings = dict(_FIELD.findall(inspect.getsource(Generation)))
    shown = [name for name in FIELDS if name not in ("name", "chips")]
    limits = [[_code(name), meanings[name], *(_value(each, name) for each in TABLES)] for name in shown]
    return "\n".join([*parts, *_table(["field", "meaning", *(each.name for each in TABLES)], limits), ""])


def _names(generation: Generation) -> list[str]:
    return [_products(generation), _code(generation.short_name), generation.name]


def _products(generation: Generation) -> str:
    return ", ".join(_code(chip) + " (the default)" * (chip == DEFAULT_CHIP) for chip in generation.products)


def _value(generation: Generation, field: str) -> str:
    value = getattr(generation, field)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (frozenset, tuple)):
        return ", ".join(map(str, sorted(value) if isinstance(value, frozenset) else value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _code(text: str) -> str:
    return f"`{text}`"


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    return [_row(head), _row(["---"] * len(head)), *map(_row, rows)]


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print(chip_page())
