"""Decides whether a project uses nkitools: by a setting, or a conftest.py or test file that imports it or names a
fixture.

Merely installed, the plugin changes nothing: the stand-in, the marks and the debugger come with the first sign of use.
Files are read as text; nothing of them is run.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from nkitools.dialects import import_hint
from nkitools.facts.options import FIXTURES, OPTIONS

# The top-level names that the stand-in serves.
_STOOD_IN_FOR = frozenset({"neuron_dtypes", "neuronxcc", "nki", "nki_cpu_simulator"})

_IMPORTS = re.compile(r"""^\s*(?:import|from)\s+nkitools\b|import(?:orskip|_module)\(\s*["']nkitools\b""", re.MULTILINE)
_NAMES = re.compile(rf"\b({'|'.join(FIXTURES)})\b")
_OF_FILE = pytest.StashKey[bool]()
_SESSION = pytest.StashKey["Adoption"]()


class Adoption:
    """The findings of this session about the use of nkitools.

    ``adopt`` is called once, as soon as the project is seen to use it.
    """

    def __init__(self, config: pytest.Config, adopt: Callable[[], None]) -> None:
        self._config = config
        self._adopt = adopt
        self._is_searched = False
        self.is_adopted = False
        config.stash[_SESSION] = self

    def adopt(self) -> None:
        """Set up the project as a user of nkitools."""
        if not self.is_adopted:
            self.is_adopted = True
            self._adopt()

    def read(self, path: Path) -> None:
        """Read a file that pytest is about to import."""
        if not self.is_adopted and mentions_us(path, self._config.rootpath):
            self.adopt()

    def search(self) -> bool:
        """Return whether the project uses nkitools, once all conftest and test files of the session were read."""
        if not self.is_adopted and not self._is_searched:
            self._is_searched = True
            if any(mentions_us(path, self._config.rootpath) for path in _files_of(self._config)):
                self.adopt()
        return self.is_adopted


class FirstImport(MetaPathFinder):
    """Decides about the stand-in when the session first imports a module that it serves."""

    def __init__(self, adoption: Adoption) -> None:
        self._adoption = adoption

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the answer of the stand-in's finder if the project uses nkitools; else None."""
        if fullname not in _STOOD_IN_FOR or not self._adoption.search():
            return None
        self.leave()
        found = (finder.find_spec(fullname, path, target) for finder in list(sys.meta_path))
        return next((spec for spec in found if spec is not None), None)

    def leave(self) -> None:
        """Decide about no further import."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)


def adoption_of(config: pytest.Config) -> Adoption:
    """Return the session's knowledge of whether the project uses nkitools."""
    return config.stash[_SESSION]


@pytest.hookimpl(tryfirst=True)
def pytest_collect_directory(path: Path, parent: pytest.Collector) -> None:
    """Read the directory's conftest.py before pytest imports it."""
    adoption_of(parent.config).read(path / "conftest.py")


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> None:
    """Read a test file before pytest imports it."""
    adoption_of(parent.config).read(module_path)


def is_said(config: pytest.Config) -> bool:
    """Return whether a flag, an ini key or an environment variable of nkitools is given."""
    if any(os.environ.get(OPTIONS[name].env) for name in ("marks", "stand_in")):
        return True
    given = config.known_args_namespace
    return any(
        getattr(given, option.ini, None) is not None or config.getini(option.ini) not in (None, "")
        for option in OPTIONS.values()
    )


def mentions_us(path: Path, root: Path) -> bool:
    """Return whether the text of a file imports nkitools, or names a fixture of it.

    A fixture's name does not count if the file, or a conftest.py between it and the root folder, defines it.
    """
    text = _text_of(path)
    if "nkitools" in text and _IMPORTS.search(text):
        return True
    names = set(_NAMES.findall(text))
    for place in (path, *(folder / "conftest.py" for folder in path.parents if folder.is_relative_to(root))):
        if names:
            own = _text_of(place)
            names = {name for name in names if f"def {name}(" not in own}
    return bool(names)


def imports_nki(item: pytest.Item) -> bool:
    """Return whether the project uses nkitools, and the text of the test's file imports nki or neuronxcc.nki."""
    file = item.getparent(pytest.Module)
    if file is None or not adoption_of(item.config).is_adopted:
        return False
    if _OF_FILE not in file.stash:
        file.stash[_OF_FILE] = import_hint.imports_nki(_text_of(file.path))
    return file.stash[_OF_FILE]


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def initial_conftests(config: pytest.Config) -> Iterator[Path]:
    """Yield the places of the conftest.py files that pytest imports before it collects."""
    for place in _places_of(config):
        folder = place if place.is_dir() else place.parent
        for each in (folder, *folder.parents):
            yield each / "conftest.py"
            if each == config.rootpath:
                break
        if place.is_dir():
            yield from place.glob("test*/conftest.py")


def _places_of(config: pytest.Config) -> list[Path]:
    """Return the files and folders that a session collects, as its command line or its ini file names them."""
    given = config.known_args_namespace.file_or_dir
    here = config.invocation_params.dir
    if given:
        return [path for each in given if (path := here / str(each).split("::")[0]).exists()]
    tests = config.getini("testpaths") if here == config.rootpath else ()
    return [path for pattern in tests for path in sorted(config.rootpath.glob(pattern))] or [here]


def _files_of(config: pytest.Config) -> Iterator[Path]:
    """Yield the conftest and test files of a session."""
    yield from initial_conftests(config)
    skipped = config.getini("norecursedirs")
    patterns = ("conftest.py", *config.getini("python_files"))
    for place in _places_of(config):
        if place.is_file():
            yield place
        for folder, folders, names in os.walk(place):
            folders[:] = [each for each in folders if not _is_skipped(Path(folder, each), skipped)]
            for name in names:
                if name.endswith(".py") and any(fnmatch(name, pattern) for pattern in patterns):
                    yield Path(folder, name)


def _is_skipped(folder: Path, patterns: Sequence[str]) -> bool:
    """Return whether pytest collects nothing in a folder: its name is excluded, or it is a virtual environment."""
    is_named = folder.name == "__pycache__" or any(fnmatch(folder.name, pattern) for pattern in patterns)
    return is_named or (folder / "pyvenv.cfg").is_file()
