"""Runs a script as ``python script.py`` does: its arguments, its directory first on the path, as ``__main__``."""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from nkitools.authors_code.positions import line_at
from nkitools.cli.commands import INTERRUPTED, interrupted
from nkitools.record.source_sites import entries_of
from nkitools.report.frames import is_shown, show_only_theirs


def execute(script: str, args: Sequence[str]) -> int:
    """Run ``script`` to its end and return its exit code: its own, or 1 if it died of an exception.

    The traceback of an exception is shown as Python does (by ``sys.excepthook``), without nkitools' frames. Ctrl-C
    takes one line, unless the script has a hook of its own.
    """
    path = os.path.abspath(script)
    with _as_main(path, [script, *args]) as module:
        try:
            code = _compiled(path)
        except SyntaxError as error:
            # It names its line itself; what it came through is ours alone.
            sys.excepthook(type(error), error.with_traceback(None), None)
            return 1
        try:
            exec(code, module.__dict__)
        except SystemExit as ending:
            return _exit_code(ending)
        except BaseException as error:
            # The first frame is this one.
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            show_only_theirs(error)
            ended = interrupted(error)
            if ended and sys.excepthook is sys.__excepthook__:
                print(f"nkitools: interrupted{_place_of(error)}", file=sys.stderr)
            else:
                sys.excepthook(type(error), error, error.__traceback__)
            return INTERRUPTED if ended else 1
    return 0


def _place_of(error: BaseException) -> str:
    """Return `` at giou.py:41``, the innermost place of an error in the author's files; '' if there is none."""
    from nkitools.authors_code.known_modules import is_installed

    for entry in reversed(entries_of(error)):
        code = entry.tb_frame.f_code
        file = code.co_filename
        if is_shown(file) and not is_installed(file) and not file.startswith("<"):  # code that was made has no file
            return f" at {os.path.relpath(file)}:{line_at(code, entry.tb_lasti, entry.tb_lineno)}"
    return ""


def _compiled(path: str) -> Any:
    # Bytes, so that the script's own coding line counts.
    return compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)


def _exit_code(ending: SystemExit) -> int:
    """Return the status of ``sys.exit(code)``: 0 for None, a number as it is; another value is printed and gives 1."""
    if ending.code is None:
        return 0
    if isinstance(ending.code, int):
        return ending.code
    print(ending.code, file=sys.stderr)
    return 1


@contextmanager
def _as_main(path: str, argv: list[str]) -> Iterator[ModuleType]:
    """Provide the module ``__main__`` for the script at ``path``, and restore the interpreter afterwards."""
    module = ModuleType("__main__")
    loader = SourceFileLoader("__main__", path)
    module.__dict__.update(__file__=path, __builtins__=builtins, __loader__=loader, __cached__=None)
    kept = sys.argv, list(sys.path), sys.modules["__main__"]
    of_project: Any = _OfProject(path)
    sys.argv = argv
    # The first entry is that of the command itself, as it would be that of the script; -P leaves it out.
    sys.path[:] = [os.path.dirname(path), *sys.path[0 if sys.flags.safe_path else 1 :]]
    sys.modules["__main__"] = module
    sys.meta_path.append(of_project)
    try:
        yield module
    finally:
        sys.meta_path.remove(of_project)
        sys.argv, sys.path[:], sys.modules["__main__"] = kept


class _OfProject:
    """Finds modules that Python does not find: where a kernel file of the script's project would find them."""

    def __init__(self, script: str) -> None:
        self._script = Path(script)

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        """Return the spec of a module in the project's folders; a folder without ``__init__.py`` is none."""
        if path is not None:
            return None
        from nkitools.facts.pytest_ini import import_paths
        from nkitools.lint.project import project_directory

        top = project_directory(self._script)
        spec = PathFinder.find_spec(name, [*import_paths(self._script), str(top), str(top / "src")])
        return spec if spec is not None and spec.loader is not None else None
