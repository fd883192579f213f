"""A saved run as one plain file: the kernel, the code that it needs, generated arguments, and the call."""

from __future__ import annotations

import ast
import builtins
import platform
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path, PurePath
from typing import Any

from nkitools.facts.options import OPTIONS
from nkitools.record.run_contents import RunContents
from nkitools.report.own_modules import OwnModules
from nkitools.rules.top_level import bound_by

_ENDING = Path(__file__).with_name("reproduction_ending.txt")


class NotReproducible(ValueError):
    """The error of a run that no file can reproduce; its text says why."""


def reproduction(run: RunContents, renamed: Mapping[str, str] | None = None) -> str:
    """Return the text of a Python file that runs the kernel of ``run`` again, with generated arguments.

    ``renamed``: words of the author's to replace everywhere. NotReproducible for a run that nkitools did not launch,
    that lacks its source, or whose arguments cannot be written as text.
    """
    call = run.call
    if call is None or not call["file"]:
        raise NotReproducible(
            "this is not the run of an NKI kernel that nkitools of this version has simulated and saved"
        )
    text = run.sources.get(call["file"])
    if text is None:
        raise NotReproducible(f"the run has no source of {call['file']}, where its kernel stands")
    name, body = _kernel_and_its_names(text, call)
    own = OwnModules({path: text for path, text in run.sources.items() if path != call["file"]})
    body = own.rewritten(body, call["file"])
    args = f"({''.join(f'{_made(each)}, ' for each in call['args'])})"
    kwargs = f"{{{', '.join(f'{key!r}: {_made(each)}' for key, each in call['kwargs'].items())}}}"
    ending = _ENDING.read_text(encoding="utf-8")
    parts = [
        _heading(run, name),
        "\n"
        + "import sys\nimport types\n" * bool(own.statements)
        + "\nimport ml_dtypes  # NumPy's bfloat16\nimport numpy as np\n",
        "\nimport nkitools\n\nnkitools.install_stand_in()\n",
        *own.statements,
        "\n" + body,
        "\n\n" + ending.format(args=args, kwargs=kwargs, function=name, settings=_settings(run)),
    ]
    return _renamed("".join(parts), renamed or {})


def _heading(run: RunContents, name: str) -> str:
    versions = ", ".join(f"{each} {version(each)}" for each in ("nkitools", "numpy", "ml_dtypes"))
    found = "".join(f"\n{each.rule} at line {each.line} of {PurePath(each.file).name}" for each in run.findings[:20])
    ended = f"\nIt ended with {type(run.error).__name__}." if run.error is not None else ""
    return (
        f'"""Reproduces a run of the kernel `{name}`: python FILE\n\n'
        f"Made with {versions}, Python {platform.python_version()}. Arguments are generated: the shapes and dtypes of\n"
        f'the run, other elements.\n{ended}{found}\n"""\n'
    )


def _settings(run: RunContents) -> str:
    said: dict[str, Any] = {"chip": run.chip, "rules": "report"}
    if run.settings.get("grid"):
        said["grid"] = tuple(run.settings["grid"])
    if run.settings.get("nki_version") in OPTIONS["nki_version"].choices:
        said["nki_version"] = run.settings["nki_version"]
    if run.settings.get("sum_order", "fast") != "fast":
        said["sum_order"] = run.settings["sum_order"]
    if run.records:
        said["ranks"] = len(run.records)
    return ", ".join(f"{name}={value!r}" for name, value in said.items())


def _made(form: Mapping[str, Any]) -> str:
    """Return the expression of an argument of a form."""
    if "value" in form:
        return repr(form["value"])
    if "shape" in form:
        return _array(form)
    if "dict" in form:
        return f"{{{', '.join(f'{key!r}: {_made(each)}' for key, each in form['dict'].items())}}}"
    if "list" in form:
        return f"[{', '.join(map(_made, form['list']))}]"
    if "tuple" in form:
        return f"({''.join(f'{_made(each)}, ' for each in form['tuple'])})"
    raise NotReproducible(f"an argument is {form['other']}, which no file can make again")


def _array(form: Mapping[str, Any]) -> str:
    dtype, shape = form["dtype"], tuple(form["shape"])
    if "low" in form:
        return f"random.integers({form['low']}, {form['high'] + 1}, {shape}).astype({dtype!r})"
    if dtype == "bool":
        return f"(random.random({shape}) < 0.5)"
    if dtype.startswith("void"):
        raise NotReproducible("an argument has a packed dtype, whose elements are not generated")
    return f"random.standard_normal({shape}, np.float32).astype({dtype!r})"


def _renamed(text: str, renamed: Mapping[str, str]) -> str:
    if not renamed:
        return text
    words = "|".join(sorted(map(re.escape, renamed), key=len, reverse=True))
    return re.sub(rf"\b(?:{words})\b", lambda found: renamed[found.group()], text)


# --- the part of a file that a kernel needs ---------------------------------------------------------------------------


@dataclass
class _File:
    """The top level of a source file."""

    lines: list[str]
    binding: dict[str, list[int]] = field(default_factory=dict)  # a name and the statements that bind it
    body: list[ast.stmt] = field(default_factory=list)

    def text(self, statement: ast.stmt) -> str:
        """Return the lines of a statement, with its decorators."""
        first = min([statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", ()))])
        return "\n".join(self.lines[first - 1 : statement.end_lineno])


def _kernel_and_its_names(text: str, call: Mapping[str, Any]) -> tuple[str, str]:
    """Return the name that the kernel goes by, and the statements of its file that it needs, in their order."""
    tree = ast.parse(text)
    file = _File(text.splitlines(), body=tree.body)
    for at, statement in enumerate(tree.body):
        for name in bound_by(statement):
            file.binding.setdefault(name, []).append(at)
    kernel = _definition(tree, call)
    wanted, needed = list(_names(kernel)), set()
    local = kernel not in tree.body
    if not local:
        needed.add(tree.body.index(kernel))
    seen = set(dir(builtins))
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        for at in file.binding.get(name, ()):
            if at not in needed:
                needed.add(at)
                wanted += _names(tree.body[at])
    needed |= {
        at for at, each in enumerate(tree.body) if isinstance(each, ast.ImportFrom) and each.module == "__future__"
    }
    parts = [file.text(tree.body[at]) for at in sorted(needed)]
    if local:
        parts.append(textwrap.dedent(file.text(kernel)))
    future = [each for each in parts if each.startswith("from __future__")]
    parts = [each for each in parts if each not in future]
    return kernel.name, "\n".join(parts) + "\n"


def _definition(tree: ast.Module, call: Mapping[str, Any]) -> ast.FunctionDef:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == call["function"]:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if first == call["line"]:
                return node
    raise NotReproducible(f"{call['file']} has no function {call['function']} at line {call['line']}")


def _names(node: ast.AST) -> Iterator[str]:
    """Yield the names that a part of the source reads."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield each.id
