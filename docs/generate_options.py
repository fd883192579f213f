"""The page of all options, written from their table.

``python -m docs.generate_options`` prints it; the Sphinx build writes it beside the other reference pages.
"""

from __future__ import annotations

from nkitools.facts.options import OPTIONS, Option

INTRODUCTION = """\
# Options

Each option is declared once and goes by the same name everywhere: a pytest flag, a key of the pytest configuration and
an environment variable. In a test session the flag decides first, then the variable, then the configuration key;
outside pytest it is the variable. `chip=` and `rules=` of a call decide before all of them.
"""


def option_page() -> str:
    """The whole page in Markdown: an introduction, and a section for each option."""
    return "\n".join([INTRODUCTION, *map(_section, OPTIONS.values())])


def _section(option: Option) -> str:
    names = [
        f"- flag: `{option.flag}{_argument(option)}`" if option.flag else "- no flag",
        f"- pytest configuration: `{option.ini}`",
        f"- environment: `{option.env}`",
    ]
    if option.choices:
        names.append("- one of " + ", ".join(f"`{choice}`" for choice in option.choices))
    if option.default not in (None, False):
        names.append(f"- default: `{option.default}`")
    return "\n".join([f"## {option.name}", "", f"{option.help}", "", *names, ""])


def _argument(option: Option) -> str:
    return "" if option.is_switch else f"={option.metavar or option.name.upper()}"


if __name__ == "__main__":
    print(option_page())
