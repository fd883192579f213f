"""The page of what is modelled, written from the modules that stand in for AWS's.

``python -m docs.generate_coverage`` prints it; the Sphinx build writes it beside the other reference pages.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

INTRODUCTION = """\
# What is modelled

The names of AWS's modules that this version of nkitools runs, and the documented ones that it refuses by name (NK607).
A parameter or a form that is not modelled is refused by name in the same way.
"""

MODULES = {
    "nki.isa": "nkitools.dialects.modern.isa",
    "nki.language": "nkitools.dialects.modern.language",
    "nki.collectives": "nkitools.dialects.modern.collectives",
    "neuronxcc.nki.isa": "nkitools.dialects.legacy.isa",
    "neuronxcc.nki.language": "nkitools.dialects.legacy.language",
}


def coverage_page() -> str:
    """The whole page in Markdown: an introduction, and two lists for each module."""
    return "\n".join([INTRODUCTION, *(_section(name) for name in MODULES)])


def modelled(name: str) -> list[str]:
    """The names of AWS's module ``name`` that work here."""
    module = _module(name)
    return sorted(set(module.__all__) - module.DOCUMENTED)


def not_modelled(name: str) -> list[str]:
    """The documented names of AWS's module ``name`` that are refused."""
    return sorted(_module(name).DOCUMENTED)


def _module(name: str) -> ModuleType:
    return import_module(MODULES[name])


def _section(name: str) -> str:
    refused = not_modelled(name)
    lines = [f"## {name}", "", f"Modelled: {_listed(modelled(name))}.", ""]
    if refused:
        lines += [f"Not modelled yet: {_listed(refused)}.", ""]
    return "\n".join(lines)


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    print(coverage_page())
