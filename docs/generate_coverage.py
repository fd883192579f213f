"""The page of what is modelled, written from the table of versions.

``python -m docs.generate_coverage`` prints it; the Sphinx build writes it beside the other reference pages.
"""

from __future__ import annotations

from collections.abc import Sequence

from nkitools.facts import versions
from nkitools.facts.versions import Row

INTRODUCTION = """\
# What is modelled

The names of AWS's modules that this version of nkitools runs, and the documented ones that it refuses by name (NK607).
A parameter or a form that is not modelled is refused by name in the same way. The modern `nki` is that of NKI {modern},
`neuronxcc.nki` that of {legacy}; the option `nki_version` chooses between versions.
"""

MODERN = ("nki", "nki.isa", "nki.language", "nki.collectives", "nki.compiler")
MODULES = (*MODERN, "neuronxcc.nki.isa", "neuronxcc.nki.language")


def coverage_page() -> str:
    """Return the whole page in Markdown: an introduction, and for each module its names and what versions differ in."""
    legacy = versions.release_of(versions.LEGACY)
    introduction = INTRODUCTION.format(modern=", ".join(versions.versions_of()), legacy=legacy)
    return "\n".join([introduction, _meanings(), _replacements(), *(_section(name) for name in MODULES)])


def modelled(name: str) -> list[str]:
    """Return the names of AWS's module ``name`` that work here."""
    return sorted(row.name for row in versions.names_of(name).values() if row.is_modelled)


def not_modelled(name: str) -> list[str]:
    """Return the documented names of AWS's module ``name`` that are refused."""
    return sorted(row.name for row in versions.names_of(name).values() if row.home == "-")


def changes(name: str) -> list[Row]:
    """Return the rows of AWS's module ``name`` that say since or until when."""
    rows = (row for row in versions.rows() if row.module == name and not row.name.startswith("%"))
    return [row for row in rows if row.since or row.until or row.deprecated]


def _meanings() -> str:
    """Return the section of what the same names mean under different versions."""
    rows = [row for row in versions.rows() if row.name.startswith("%")]
    return "\n".join(
        ["## What changed in meaning", "", *(f"- Since NKI {row.since}: {row.instead}" for row in rows), ""]
    )


def _replacements() -> str:
    """Return the section of what NKI has removed or announces to remove, each with what to write instead."""
    rows = [row for row in versions.rows() if row.module in MODERN and (row.until or row.deprecated) and row.instead]
    lines = [f"| `{row.shown}` | {row.instead} |" for row in rows]
    note = "`nkitools lint --migrate` shows the lines of a project, `--fix` rewrites what follows from them."
    return "\n".join(["## From old to new", "", note, "", "| old | new |", "|---|---|", *lines, ""])


def _section(name: str) -> str:
    refused, changed = not_modelled(name), changes(name)
    lines = [f"## {name}", "", f"Modelled: {_listed(modelled(name))}.", ""]
    if refused:
        lines += [f"Not modelled yet: {_listed(refused)}.", ""]
    if changed:
        lines += [*_table(changed), ""]
    return "\n".join(lines)


def _table(changed: Sequence[Row]) -> list[str]:
    """Return the table of what versions differ in."""
    head = [
        "| name | since | until before | deprecated since | default before | instead |",
        "|---|---|---|---|---|---|",
    ]
    cells = (
        (f"`{row.name}`", row.since, row.until.replace("?", "earlier"), row.deprecated, row.default, row.instead)
        for row in changed
    )
    return [*head, *(f"| {' | '.join(each)} |" for each in cells)]


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    print(coverage_page())
