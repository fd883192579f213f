"""The document: template, style, scripts and data in one text."""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from collections.abc import Iterator
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from nkitools.chip.argument_types import Argument
from nkitools.comparison.rule import stated_rule
from nkitools.facts import options
from nkitools.record.expected_outputs import Reference
from nkitools.record.run import Run, must_be_run
from nkitools.record.whole_file import write_whole
from nkitools.report.page.differences import Against
from nkitools.report.page.packed_columns import packed
from nkitools.report.page.page_data import Gathering

_ASSETS = files("nkitools.report.page") / "assets"
_MAIN = "main"
_IMPORT = re.compile(r'^import (?:\* as (\w+)|(\{[^}]*\})) from "\./(\w+)\.js";$', re.MULTILINE)
_WAITS = re.compile(r"^(?:export const \w+ = )?await ", re.MULTILINE)  # a module that is ready later
_EXPORT = re.compile(r"^export (function|const) (\w+)", re.MULTILINE)


def page(
    run: Run,
    expected: Argument | None = None,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    title: str = "",
    passed: bool = False,
    against: Against | None = None,
) -> str:
    """Return the page of a run as one self-contained HTML text.

    ``expected``: the expected outputs, in the containers that the kernel returns; by default the run's own reference,
    if it has one. ``rtol`` and ``atol``: the allowed differences from ``expected``, as in NumPy; if only one is given,
    the other is 0, and without both the dtypes decide. ``title``: by default the kernel's name. ``passed``: a test has
    compared the outputs and passed; without a stated tolerance only NaN and infinities are then marked as wrong.
    ``against``: another run, in a `nkitools.report.page.differences.Against`; lines and turns that differ from it are
    marked. The page has the values that a watch recorded (`nkitools.watching`), up to the option ``page_limit``.
    TypeError if ``run`` is no run. ValueError for ``rtol`` or ``atol`` without ``expected``, or that are no finite
    numbers from 0 on.
    """
    must_be_run(run, "a page")
    if expected is None and (rtol, atol) != (None, None):
        raise ValueError("a page: rtol and atol are the allowed differences from `expected`, which is not given")
    stated_rule(rtol, atol)
    reference = run.reference if expected is None else Reference(expected, rtol, atol)
    gathering = Gathering(run, reference, title, passed=passed, budget=_budget(), against=against)
    directory, content = packed(gathering.columns)
    text: str = (
        environment()
        .from_string(read_asset("page.html.j2"))
        .render(
            title=title or run.kernel,
            style=read_asset("page.css"),
            script=script(),
            data=as_json({**gathering.tables, "columns": directory}),
            bytes=b64encode(content).decode("ascii"),
        )
    )
    return text


_MEBIBYTE = 1 << 20
_OTHERS = 1 << 19  # bytes of a page for its script, its style and the author's sources


def _budget() -> int:
    """Return the bytes of values and columns of a page; base64 makes a third more of them."""
    limit = float(str(options.value("page_limit"))) * _MEBIBYTE
    return int(max(limit - _OTHERS, limit / 2) * 3 / 4)


def write_page(
    run: Run,
    path: str | os.PathLike[str],
    expected: Argument | None = None,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    title: str = "",
    passed: bool = False,
    against: Against | None = None,
) -> None:
    """Write the page of a run to a file, which is replaced if it exists. The other arguments are those of `page`.

    TypeError and ValueError as of `page`, OSError if the file cannot be written.
    """
    text = page(run, expected, rtol=rtol, atol=atol, title=title, passed=passed, against=against)
    write_whole(path, text)


def as_json(tables: Any) -> str:
    """Return JSON for a script element: no name of the author's can end the element."""
    text = json.dumps(tables, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def script() -> str:
    """Return all modules as one script: each is a function, after the modules that it imports.

    A page that is opened as a file may not load modules from beside it.
    """
    return "\n".join(_scoped(name) for name in _in_order(_MAIN, []))


def _in_order(name: str, seen: list[str]) -> Iterator[str]:
    seen.append(name)
    for _, _, needed in _IMPORT.findall(read_asset(f"{name}.js")):
        if needed not in seen:
            yield from _in_order(needed, seen)
    yield name


def _scoped(name: str) -> str:
    """Return a module as a function that returns what it exports (one name a statement)."""
    text = read_asset(f"{name}.js")
    names = [exported for _, exported in _EXPORT.findall(text)]
    body = _EXPORT.sub(r"\1 \2", _IMPORT.sub(_imported, text))
    waits, begin = ("await ", "async ") if _WAITS.search(text) else ("", "")
    return f"const module_{name} = {waits}({begin}() => {{\n{body}\nreturn {{ {', '.join(names)} }};\n}})();"


def _imported(match: re.Match[str]) -> str:
    whole, some, module = match.groups()
    return f"const {whole or some} = module_{module};"


@cache
def read_asset(name: str) -> str:
    """Return a file of ``assets``."""
    return (_ASSETS / name).read_text(encoding="utf-8")


@cache
def environment() -> Any:
    """Return the templates' environment: it escapes everything that a template does not mark as safe."""
    from jinja2 import Environment, StrictUndefined

    return Environment(autoescape=True, undefined=StrictUndefined)


def in_frame(run: Run) -> str:
    """Return the page in a frame of its own, as notebooks show it: it neither takes their style nor touches them."""
    return (
        f'<iframe srcdoc="{escape(page(run), quote=True)}" sandbox="allow-scripts" title="{escape(run.kernel)}" '
        'style="width: 100%; height: 780px; border: 1px solid #8884; border-radius: 6px"></iframe>'
    )
