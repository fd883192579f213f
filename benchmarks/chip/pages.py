"""The tables of the README and of the page about fidelity, written between two marks, and the picture of times."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.chip.figures import Figure, Judged, by_family, figures, quantiles
from benchmarks.chip.picture import picture

ROOT = Path(__file__).parents[2]
README, PAGE = ROOT / "README.md", ROOT / "docs" / "explanation" / "fidelity.md"
BANDS = ROOT / "nkitools" / "timing" / "families.tsv"
PICTURE = PAGE.with_name("time-by-family.svg")
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


_CONTENTS = {
    "matmul, modern, no spill": "modern, matmul",
    "matmul, modern, spilled": "modern, matmul, spilled",
    "tiled matmul, legacy": "legacy, matmul",
    "MLP, legacy": "legacy, matmul and activation",
    "attention, legacy": "legacy, matmul and activation",
}  # of a family of measured kernels, as nkitools.timing.likeness says it


def bands(judged: list[Judged]) -> str:
    """Return the table of the band of each family: measured over estimated time of eight in ten."""
    ratios: dict[str, list[float]] = {}
    for family, rows in by_family(judged).items():
        ratios.setdefault(_CONTENTS[family], []).extend(chip / mine for chip, mine in (each.times for each in rows))
    lines = ["generation\tfamily\trows\tlower\tupper"]
    for contents, each in ratios.items():
        lower, _, upper = quantiles(each)
        lines.append(f"gen3\t{contents}\t{len(each)}\t{lower:.3f}\t{upper:.3f}")
    return "\n".join(lines) + "\n"


def documents(judged: list[Judged]) -> dict[Path, str]:
    """Return the documents as they should be, by their paths."""
    found = figures(judged)
    made = ((README, readme_table(found)), (PAGE, page_tables(found)))
    return {
        PICTURE: picture(judged),
        BANDS: bands(judged),
        **{path: rewritten(path.read_text(), table) for path, table in made},
    }
