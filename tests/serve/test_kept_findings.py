"""What an editor shows after an edit is what lint finds in the text as it is, whatever was found before."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from nkitools.facts.kept import forget
from nkitools.lint.project import Project
from nkitools.rules.catalogue import RULES
from nkitools.rules.finding import Finding
from nkitools.serve import kept_findings
from nkitools.serve.open_files import OpenFiles
from tests import cases

KERNELS = Path(__file__).parents[2] / "kernels" / "nki"
EDITS = 120 if cases.FULL else 12
# Each function depends on others: by a call, a result, a constant, a list that another one changes, a global.
TOGETHER = """
import nki
import nki.isa as nisa
import nki.language as nl
from helper import product

ROWS = 128
seen = []
scale = 2.0


def tile_of(rows):
    return nl.ndarray((rows, 64), dtype=nl.float32, buffer=nl.sbuf)


def forgets():
    seen.clear()


def rescale(value):
    global scale
    scale = value


class Config:
    def rows(self):
        return ROWS


def inner(tile):
    nisa.tensor_copy(dst=tile, src=tile)


@nki.jit
def kernel(a, b, c):
    tile = tile_of(ROWS)
    product(a, b, c)
    inner(tile)
    if len(seen) > scale:
        nisa.dma_copy(dst=tile, src=a)
    return tile


@nki.jit
def caller(a):
    return kernel(a, a, a)
"""
HELPER = "import nki.isa as nisa\n\n\ndef product(out, left, right):\n    nisa.nc_matmul(out, left, right, wrong=1)\n"


def edited(text: str, choose: random.Random) -> str:
    """Return a text with one small edit: a line less, twice, or moved, another word or number, a comment."""
    lines = text.splitlines()
    at = choose.randrange(len(lines))
    words = sorted({word for line in lines for word in line.replace("(", " ").replace(")", " ").split()})
    match choose.randrange(6):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, lines[choose.randrange(len(lines))])
        case 2 if lines[at].split():
            lines[at] = lines[at].replace(choose.choice(lines[at].split()), choose.choice(words), 1)
        case 3:
            lines[at] = lines[at].replace("128", "256").replace("64", "700")
        case 4:
            lines.insert(at, "seen = [1]" if choose.random() < 0.5 else "ROWS = 300")
        case _:
            lines[at] += "  # nothing"
    return "\n".join(lines) + "\n"


def alone(path: Path, text: str, others: dict[Path, str]) -> list[Finding]:
    """Return what is found in a text by a server that has seen no other."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept_findings.OpenProject, "findings_in", Project.findings_in)
        files = OpenFiles()
        for other, its_text in others.items():
            files.put(other, its_text)
        return files.put(path, text).findings


@pytest.mark.parametrize("name", ["together", "flash_attention", "moe", *sorted(RULES)[:90:9]])
def test_findings_after_each_edit_are_those_of_the_text(name: str, tmp_path: Path) -> None:
    """After a row of edits of two open files: kept findings are those that are found again."""
    choose = random.Random(name)
    texts = {tmp_path / "helper.py": HELPER, tmp_path / "file.py": TOGETHER}
    if name in RULES:
        texts[tmp_path / "file.py"] = RULES[name].examples[0].bad
    elif name != "together":
        texts[tmp_path / "file.py"] = (KERNELS / f"{name}.py").read_text(encoding="utf-8")
    files = OpenFiles()
    for path, text in texts.items():
        files.put(path, text)
    first = dict(texts)
    for number in range(EDITS):
        path = tmp_path / ("helper.py" if number % 4 == 3 else "file.py")
        before = first[path] if choose.random() < 0.3 else texts[path]  # undone
        texts[path] = edited(before, choose)
        files.put(path, texts[path])
        mine = tmp_path / "file.py"
        found = files.put(mine, texts[mine]).findings
        others = {other: text for other, text in texts.items() if other != mine}
        assert found == alone(mine, texts[mine], others), texts


def test_only_what_an_edit_concerns_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The edited function and what mentions it."""
    forget()
    looked: list[str] = []
    usual = kept_findings.OpenProject._deciding

    def deciding(self: kept_findings.OpenProject, found: object) -> object:
        looked.append(found.node.name)  # type: ignore[attr-defined]
        return usual(self, found)  # type: ignore[arg-type]

    monkeypatch.setattr(kept_findings.OpenProject, "_deciding", deciding)
    files = OpenFiles()
    path = tmp_path / "file.py"
    files.put(path, TOGETHER)
    asked = len(kept_findings._kept)
    assert asked == len(set(looked))
    files.put(path, TOGETHER.replace("dst=tile, src=tile)", "dst=tile, src=tile)  # copied"))
    assert len(kept_findings._kept) == asked + 3  # inner, kernel, caller
