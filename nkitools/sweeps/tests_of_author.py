"""A mutant under the author's own tests: pytest in this process, another text in the place of the kernel's file."""

from __future__ import annotations

import builtins
import importlib.machinery
import linecache
import os
import pickle
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nkitools.authors_code.known_modules import is_installed
from nkitools.authors_code.source_text import keep_text
from nkitools.facts import options
from nkitools.module_files import extend_path, module_place

PACKAGE = str(Path(__file__).parents[1])
# What is imported already is not rewritten for assertions, which pytest says in a warning, and warnings may be errors.
# In a fork faulthandler waits for ever for a watchdog that the process before it had set.
_FLAGS = (
    "-x",
    "-q",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:faulthandler",
    "-m",
    "not hw",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
)
MOST_CALLS = 8  # of the kernel, whose arguments are kept


@dataclass(frozen=True)
class Call:
    """One call of the kernel in the author's tests."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    grid: Any
    chip: str


@dataclass(frozen=True)
class Trial:
    """The end of the author's tests. ``code``: pytest's exit code, 0 where all pass; ``runs``: how many of the kernel.

    ``calls``: the first of them, without those of ranks, which have several calls at once, and those whose arguments
    go to no other process, such as objects of a class in the kernel's file.
    """

    code: int
    output: str
    runs: int
    calls: list[Call] = field(default_factory=list)


def run_tests(file: str, text: str, tests: Sequence[str], kernel: str = "") -> Trial:
    """Run the author's tests in simulation with ``text`` as the contents of ``file``; stops at the first failure.

    ``kernel``: the kernel whose calls are kept. What the tests have imported is forgotten afterwards.
    """
    import pytest

    from nkitools.record.run_listeners import collect_runs

    before = set(sys.modules)
    seen = _Failures()
    with _in_place_of(file, text), _silent(), options.in_environment(), collect_runs() as runs:
        try:
            code = int(pytest.main([*_FLAGS, *tests], plugins=[seen]))
        finally:
            _forget(set(sys.modules) - before)
    own = [run for run in runs if run.kernel == kernel]
    calls = [found for run in own if (found := _call_of(run)) is not None]
    return Trial(code, seen.text, len(own), calls[:MOST_CALLS])


def _forget(names: set[str]) -> None:
    """Forget the author's own modules. A package with compiled parts, such as torch, cannot be imported twice."""
    origins = {name: str(getattr(sys.modules[name], "__file__", None) or "") for name in names}
    suffixes = tuple(importlib.machinery.EXTENSION_SUFFIXES)
    compiled = {name.partition(".")[0] for name, origin in origins.items() if origin.endswith(suffixes)}
    for name, origin in origins.items():
        is_own = not is_installed(origin) and not origin.startswith(PACKAGE)
        if is_own and name.partition(".")[0] not in compiled:
            del sys.modules[name]


class _Failures:
    """A plugin of pytest that keeps the first failure's last line."""

    text = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.text:
            self.text = f"{report.nodeid}: {str(report.longrepr).strip().splitlines()[-1]}"

    pytest_collectreport = pytest_runtest_logreport


def _call_of(run: Any) -> Call | None:
    again = run.again
    if again is None or run.records:
        return None
    args, kwargs = again.arguments() or again.arguments_now()
    call = Call(args, kwargs, tuple(run.settings.get("grid") or ()) or None, run.chip)
    try:
        pickle.dumps(call)
    except Exception:  # whatever the class of an argument raises
        return None
    return call


@contextmanager
def _in_place_of(file: str, text: str) -> Iterator[None]:
    """Let Python find ``text`` in ``file``, whichever import leads there; bytecode of the file is not looked at."""
    path = os.path.realpath(file)
    loader: Any = importlib.machinery.SourceFileLoader
    original = loader.get_code

    def get_code(self: Any, name: str) -> Any:
        if os.path.realpath(self.path) == path:
            return compile(text, self.path, "exec", dont_inherit=True)
        return original(self, name)

    loader.get_code = get_code
    lines = text.splitlines(keepends=True)
    for each in {file, path}:
        linecache.cache[each] = (len(text), None, lines, each)  # without a time, which is never checked
    try:
        yield
    finally:
        loader.get_code = original
        for each in {file, path}:
            linecache.cache.pop(each, None)


@contextmanager
def _silent() -> Iterator[None]:
    """Let nothing reach the terminal."""
    saved = sys.stdout, sys.stderr
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        sys.stdout = sys.stderr = nowhere
        try:
            yield
        finally:
            sys.stdout, sys.stderr = saved


def module_of_text(file: str, text: str) -> Any:
    """Return a module of ``text`` as if it were that of ``file``, which no import finds."""
    import types

    module = types.ModuleType(Path(file).stem)
    module.__file__ = file
    folder, name = module_place(Path(file).resolve())
    module.__name__, module.__package__ = name, name.rpartition(".")[0]
    extend_path(folder, Path(file).resolve())
    vars(module)["__builtins__"] = builtins
    code = compile(text, file, "exec", dont_inherit=True)
    keep_text(code, text)  # the file has another one, and so have other modules made of it
    exec(code, vars(module))
    return module
