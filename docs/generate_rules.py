"""The page of all rules, written from the catalogue.

``python -m docs.generate_rules`` prints it; the Sphinx build writes it beside the other reference pages.
"""

from __future__ import annotations

from nkitools.facts.generations import CHIPS
from nkitools.rules.catalogue import RULES, Rule

FAMILIES = {
    "NK1": "Shape",
    "NK2": "Memory",
    "NK3": "Dtype",
    "NK4": "Data",
    "NK5": "Order",
    "NK6": "Language",
    "NK7": "Speed",
    "PL1": "Pallas: what the chip can hold",
    "PL2": "Pallas: what happens in a run",
    "PL3": "Pallas: the compiler",
    "CO1": "Custom operators",
}

INTRODUCTION = """\
# Rules

Every finding names the rule that was broken. An id keeps its meaning for ever; `nkitools explain ID` prints the same
text on the command line, and takes a slug or a legacy error code as well. Errors fail a run; warnings and hints are
reported.
"""


def rule_page() -> str:
    """The whole page in Markdown: an introduction, and the rules family by family."""
    sections = [INTRODUCTION]
    for prefix, title in FAMILIES.items():
        members = [rule for rule in RULES.values() if rule.id.startswith(prefix)]
        if members:
            sections += [f"## {title}\n", *map(_section, members)]
    return "\n".join(sections)


def _section(rule: Rule) -> str:
    lines = [
        f"({rule.id})=",
        f"### {rule.id} {rule.slug}",
        "",
        f"*{rule.severity}, {_chips(rule)}, since {rule.since}*",
        "",
        rule.reason,
        "",
        f"**What to do:** {rule.remedy}",
        "",
        f"**Source:** {rule.source}",
        "",
    ]
    if rule.reporter:
        lines += [f"Reported by {rule.reporter}.", ""]
    if rule.builtin:
        lines += [f"The error is also a `{rule.builtin}`.", ""]
    if rule.aliases:
        lines += ["Legacy codes: " + ", ".join(f"`{alias}`" for alias in rule.aliases) + ".", ""]
    if rule.facts:
        lines += ["[Facts](json.md#facts): " + ", ".join(f"`{name}`" for name in rule.facts) + ".", ""]
    for example, also in zip(rule.examples, ("", *[", too"] * len(rule.examples)), strict=False):
        language = "cpp" if rule.id.startswith("CO") else "python"
        lines += _code(f"Refused{also}", example.bad, language) + _code(f"Accepted{also}", example.good, language)
    return "\n".join(lines)


def _chips(rule: Rule) -> str:
    return "all chips" if rule.chips == CHIPS else ", ".join(rule.chips)


def _code(title: str, code: str, language: str) -> list[str]:
    return [f"{title}:", "", f"```{language}", code.strip("\n"), "```", ""] if code else []


if __name__ == "__main__":
    print(rule_page())
