"""The tables of the README and of the page about fidelity, written between two marks."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.chip.figures import Figure

ROOT = Path(__file__).parents[2]
README, PAGE = ROOT / "README.md", ROOT / "docs" / "explanation" / "fidelity.md"
_BLOCK = re.compile(r"(<!-- written by make chip -->\n).*?(<!-- until here -->)", re.DOTALL)
_KINDS = ("verdicts", "bytes", "bits", "laws")


def readme_table(figures: list[Figure]) -> str:
    """Return verdicts, bytes and bits line by line, and of times a line a chip."""
    lines = [each for each in figures if each.kind in _KINDS]
    return _table([*lines, *_times(figures)])


def page_tables(figures: list[Figure]) -> str:
    """Return a table of each kind."""
    kinds = dict.fromkeys(each.kind for each in figures)
    tables = (f"### {kind.capitalize()}\n\n{_table([f for f in figures if f.kind == kind])}" for kind in kinds)
    return "\n\n".join(tables)


def _times(figures: list[Figure]) -> list[Figure]:
    """Return one line a chip for all families of times: the least and the largest median error."""
    found = []
    for chip in dict.fromkeys(each.chip for each in figures if each.kind == "time"):
        mine = [each for each in figures if (each.kind, each.chip) == ("time", chip)]
        rows = sum(int(each.count.split()[0]) for each in mine)
        errors = sorted(int(re.findall(r"median (\d+)%", each.agreement)[0]) for each in mine)
        text = f"median errors {errors[0]}% to {errors[-1]}%"
        found.append(Figure("time", "estimated time, by family", chip, f"{rows} rows, {len(mine)} families", text))
    return found


def _table(figures: list[Figure]) -> str:
    head = ["| measured | chip | compared | nkitools |", "|---|---|--:|---|"]
    rows = (f"| {each.what} | {each.chip} | {each.count} | {each.agreement} |" for each in figures)
    return "\n".join([*head, *rows])


def rewritten(text: str, table: str) -> str:
    """Return a document with a table between its marks. ValueError where it has none."""
    if not _BLOCK.search(text):
        raise ValueError("the document has no marks <!-- written by make chip --> and <!-- until here -->")
    return _BLOCK.sub(lambda found: f"{found[1]}\n{table}\n\n{found[2]}", text)


def documents(figures: list[Figure]) -> dict[Path, str]:
    """Return the documents as they should be, by their paths."""
    made = ((README, readme_table(figures)), (PAGE, page_tables(figures)))
    return {path: rewritten(path.read_text(), table) for path, table in made}
