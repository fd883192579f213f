"""The page of the versions that nkitools was tested with, written from their table.

``python -m docs.generate_supported_versions`` prints it; the Sphinx build writes it beside the other reference pages.
"""

from __future__ import annotations

from nkitools.facts.supported_versions import table

INTRODUCTION = """\
# Supported versions

The versions of Python and of packages that nkitools was tested with. `CI` means that continuous integration runs the
test-suite with this version for each change; `by hand` that the test-suite was run with it before this version of
nkitools was published. Versions between two that were tested are expected to work.

A version outside of the range is never refused, and no warning is raised for it: `nkitools doctor` and the end of a
test session name it in a line.

| | version | tested | how |
|---|---|---|---|"""


def supported_versions_page() -> str:
    """Return the whole page in Markdown: an introduction, and a table with a row for each version."""
    rows = (f"| {row.package} | {row.number} | {row.how} | {row.note} |" for row in table())
    return "\n".join([INTRODUCTION, *rows, ""])


if __name__ == "__main__":
    print(supported_versions_page())
