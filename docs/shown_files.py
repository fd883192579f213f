"""Code of files, pasted into the pages, so that the Markdown shows it wherever it is read.

``python -m docs.shown_files`` writes each block anew below its mark ``<!-- shown: FILE -->`` or, for one function of
the file, ``<!-- shown: FILE::FUNCTION -->``, and each table below ``<!-- interface -->``: the names that the next
autodoc directives name, with the first sentence of each docstring. FILE is relative to the page.
"""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

DOCS = Path(__file__).parent
BLOCK = re.compile(r"^(<!-- shown: (\S+?)(?:::(\w+))?(?: numbered)? -->\n)```(\w*)\n.*?^```$", re.DOTALL | re.MULTILINE)
TABLE = re.compile(
    r"^(<!-- interface -->\n)(?:\|[^\n]*\n)*(\n<!-- html\n```\{eval-rst\}\n(.*?)^```)", re.DOTALL | re.MULTILINE
)
NAME = re.compile(r"^\.\. auto\w+:: ([\w.]+)", re.MULTILINE)


def pages() -> list[Path]:
    """Return the pages that are written by hand: README and its neighbours, and those of the folder docs."""
    found = [*sorted(DOCS.rglob("*.md")), *sorted(DOCS.parent.glob("*.md"))]
    return [page for page in found if not made_by_sphinx(page)]


def made_by_sphinx(path: Path) -> bool:
    """Return whether `make docs` makes a file, so that git ignores it."""
    made = [line for line in (DOCS.parent / ".gitignore").read_text().splitlines() if line.startswith("docs/")]
    return str(path.relative_to(DOCS.parent)).startswith(tuple(made))


def written_anew(page: Path) -> str:
    """Return the text of a page with each marked block and table as its source is now."""
    with_code = BLOCK.sub(
        lambda mark: f"{mark[1]}```{mark[4]}\n{_code(page.parent / mark[2], mark[3])}```", page.read_text()
    )
    return TABLE.sub(lambda mark: f"{mark[1]}{_table(NAME.findall(mark[3]))}{mark[2]}", with_code)


def _code(path: Path, function: str | None) -> str:
    """Return the text of a file, or that of one of its functions."""
    text = path.read_text()
    if function is None:
        return text
    (node,) = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name == function]
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return "".join(text.splitlines(keepends=True)[first - 1 : node.end_lineno])


def _table(names: list[str]) -> str:
    rows = [f"| `{name.removeprefix('nkitools.')}` | {_sentence(name)} |\n" for name in names]
    return "| name | what it is |\n|---|---|\n" + "".join(rows)


def _sentence(name: str) -> str:
    """Return the first sentence of the docstring of a module or of one of its names."""
    try:
        named = import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        named = getattr(import_module(module), attribute)
    text = re.sub(r"\s+", " ", inspect.getdoc(named) or "").replace("``", "`")
    return re.split(r"(?<=[.:])\s", text)[0].rstrip(":").replace("|", "\\|")


if __name__ == "__main__":
    for path in pages():
        path.write_text(written_anew(path))
