"""``nkitools new``: a kernel, its reference and its tests, to start from."""

from __future__ import annotations

import builtins
import keyword
import re
import shlex
import sys
from pathlib import Path

import click

from nkitools.cli.terminal import say
from nkitools.record.whole_file import write_whole
from nkitools.rules.top_level import bound_names

KINDS = ("nki", "legacy", "pallas", "customop")
_TEMPLATES = Path(__file__).parent / "templates"
_NAME = "template_name"  # as the templates have it
# The names that a kernel's own file could not have beside its tests; `_names_of` has those that its template uses.
_TAKEN = sys.stdlib_module_names | {*dir(builtins), "jax", "neuronxcc", "nki", "nkitools", "numpy", "pytest"}
_WORD = re.compile(r"(?<![.\w])[A-Za-z_]\w*")
_NO_CODE = re.compile(r'//.*|#.*|"[^"\n]*"')


@click.command("new", short_help="Write a kernel with a reference and tests that pass.")
@click.argument("name")
@click.option("--kind", type=click.Choice(KINDS), default="nki", show_default=True, help="The kind of kernel.")
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    default=".",
    help="The folder of the files.  [default: this one]",
)
def new_kernel(name: str, kind: str, into: Path) -> None:
    """Write a kernel NAME with a reference and tests that pass, in NAME.py and test_NAME.py.

    ``nki`` is the modern dialect, ``legacy`` that of neuronxcc.nki, ``pallas`` a kernel for TPUs and ``customop`` a C++
    operator, which has NAME.cpp and NAME_shape.cpp in the place of NAME.py. Each is small and complete: change it line
    by line while its tests run. If one of the files is there, nothing is written and the exit code is 2.
    """
    sources = sorted(path for path in (_TEMPLATES / kind).iterdir() if path.is_file())
    taken = _TAKEN.union(*map(_names_of, sources))
    if not (name.isascii() and name.isidentifier()) or keyword.iskeyword(name) or name in taken:
        raise click.BadParameter(f"{name} cannot be the name of a kernel's file and function", param_hint="'NAME'")
    files = {into / path.name.replace(_NAME, name): path for path in sources}
    there = [str(path) for path in files if path.exists()]
    if there:
        raise click.UsageError(f"{' and '.join(there)}: already there, nothing is written")
    into.mkdir(parents=True, exist_ok=True)
    for path, source in files.items():
        write_whole(path, source.read_text(encoding="utf-8").replace(_NAME, name))
    for path in files:
        say(str(path))
    say(f"run the tests: pytest -m sim {shlex.quote(str(into / f'test_{name}.py'))}")


def _names_of(source: Path) -> set[str]:
    """Return the names in a template that are not the kernel's: of a kernel's Python file those of its top level."""
    text = source.read_text(encoding="utf-8")
    if source.suffix == ".py" and not source.name.startswith("test_"):
        return set(bound_names(text) or ()) - {_NAME}
    return set(_WORD.findall(_NO_CODE.sub("", text))) - {_NAME}
