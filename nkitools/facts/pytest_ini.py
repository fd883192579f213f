"""The folders that pytest imports a project's modules from: its key ``pythonpath``, and those of conftest files.

And the folders of its tests: the key ``testpaths``.
"""

from __future__ import annotations

import configparser
import tomllib
from pathlib import Path

# The files that pytest reads, in its order, and the tables of each that may hold its keys (pytest 9: "tool.pytest").
_FILES = {
    "pytest.toml": ("pytest",),
    ".pytest.toml": ("pytest",),
    "pytest.ini": ("pytest",),
    ".pytest.ini": ("pytest",),
    "pyproject.toml": ("tool.pytest.ini_options", "tool.pytest"),
    "tox.ini": ("pytest",),
    "setup.cfg": ("tool:pytest",),
}


def import_paths(path: Path) -> list[str]:
    """Return the folders that pytest would put on ``sys.path`` for a file, in its order.

    Those of ``pythonpath`` come first; then that of each ``conftest.py`` from the project's folder down to the file, or
    the one above its package.
    """
    folder, keys = _project_of(path)
    return [] if folder is None else [*_named(folder, keys, "pythonpath"), *_of_conftests(folder, path)]


def test_folders(path: Path) -> list[str]:
    """Return the folders of tests of a file's project: those of ``testpaths``, else ``tests``."""
    folder, keys = _project_of(path)
    return [] if folder is None else _named(folder, keys, "testpaths") or [str(folder / "tests")]


def _project_of(path: Path) -> tuple[Path | None, dict[str, object]]:
    """Return the folder whose file has pytest's keys for ``path``, and these; None where there is none."""
    for folder in path.parents:
        for name in _FILES:
            keys = _keys_of(folder / name)
            if keys is not None:
                return folder, keys
    return None, {}


def _keys_of(file: Path) -> dict[str, object] | None:
    """Return pytest's keys in a file; None if it is not a file of pytest's, or cannot be read."""
    if not file.is_file():
        return None
    try:
        text = file.read_text(encoding="utf-8")
        found = _tables(tomllib.loads(text)) if file.suffix == ".toml" else _sections(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, configparser.Error):
        return None
    there = [found[each] for each in _FILES[file.name] if each in found]
    return {key: value for each in reversed(there) for key, value in each.items()} if there else None


def _tables(value: object, prefix: str = "") -> dict[str, dict[str, object]]:
    """Return each table of a TOML file by its dotted name."""
    if not isinstance(value, dict):
        return {}
    found = {prefix: value}
    for name, inner in value.items():
        found |= _tables(inner, f"{prefix}.{name}" if prefix else name)
    return found


def _sections(text: str) -> dict[str, dict[str, object]]:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    return {name: dict(parser.items(name)) for name in parser.sections()}


def _named(folder: Path, keys: dict[str, object], key: str) -> list[str]:
    said = keys.get(key, [])
    names = said.split() if isinstance(said, str) else said if isinstance(said, list) else []
    return [str((folder / str(each)).resolve()) for each in names]


def _of_conftests(top: Path, path: Path) -> list[str]:
    """Return the folder of each conftest.py from the file up to ``top``; for one in a package, the folder above it."""
    found = []
    for folder in path.parents:
        if (folder / "conftest.py").is_file():
            home = folder
            while (home / "__init__.py").is_file() and home != home.parent:
                home = home.parent
            found.append(str(home))
        if folder == top:
            break
    return found
