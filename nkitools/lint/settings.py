"""The settings of lint: ``[tool.nkitools.lint]`` of pyproject.toml.

```toml
[tool.nkitools.lint]
select = ["NK6"]                  # rules or families; all where it is not given
ignore = ["NK616"]
dialect = "modern"                # of files whose imports do not show it
exclude = ["third_party/*"]       # in directories; relative to the file
per-file-ignores = { "tests/*" = ["NK617"] }
```
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import lru_cache
from pathlib import Path
from typing import Any

from nkitools.lint.engine import DIALECTS
from nkitools.rules.catalogue import RULES, find_rule, rule_named
from nkitools.rules.finding import Finding

_TABLE = "[tool.nkitools.lint]"


class WrongSettings(ValueError):
    """Settings that mean nothing; the message says where and what would."""


@dataclass(frozen=True)
class Settings:
    """``select`` and ``ignore`` are rule ids; an empty ``select`` is all. Patterns are relative to ``directory``."""

    select: frozenset[str] = frozenset()
    ignore: frozenset[str] = frozenset()
    dialect: str = "auto"
    exclude: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, frozenset[str]] = field(default_factory=dict)
    directory: Path = Path()

    def excludes(self, path: Path) -> bool:
        """Return whether a file or directory is left out."""
        return any(_matches(self._relative(path), pattern) for pattern in self.exclude)

    def wants(self, finding: Finding) -> bool:
        """Return whether a finding is to be shown."""
        if finding.rule in self.ignore or (self.select and finding.rule not in self.select):
            return False
        path = self._relative(Path(finding.file))
        return not any(
            finding.rule in ids and _matches(path, pattern) for pattern, ids in self.per_file_ignores.items()
        )

    def _relative(self, path: Path) -> str:
        absolute = path.resolve()
        inside = absolute.is_relative_to(self.directory.resolve())
        return (absolute.relative_to(self.directory.resolve()) if inside else absolute).as_posix()


def _matches(path: str, pattern: str) -> bool:
    """Return whether a path, or a directory that it lies in, fits a pattern."""
    plain = pattern.rstrip("/")
    return any(fnmatch(each, plain) for each in (path, *(str(above) for above in Path(path).parents)))


def settings_for(path: Path) -> Settings:
    """Return the settings of the nearest pyproject.toml above a path that has the table. Raises `WrongSettings`."""
    start = path.resolve()
    for directory in (start, *start.parents):
        file = directory / "pyproject.toml"
        if file.is_file():
            table = _table(file)
            if table is not None:
                return _settings(table, file)
    return Settings()


_loaded = lru_cache(maxsize=16)(tomllib.loads)  # whose tables nothing changes: an editor asks at each key


def _table(file: Path) -> dict[str, Any] | None:
    try:
        found = _loaded(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise WrongSettings(f"{file}: {error}") from None
    table: Any = found
    for name in ("tool", "nkitools", "lint"):
        table = table.get(name) if isinstance(table, dict) else None
    if table is not None and not isinstance(table, dict):
        raise WrongSettings(f"{file}: {_TABLE} must be a table")
    return table


def _settings(table: dict[str, Any], file: Path) -> Settings:
    known = {"select", "ignore", "dialect", "exclude", "per-file-ignores"}
    unknown = sorted(set(table) - known)
    if unknown:
        raise WrongSettings(f"{file}: {_TABLE} has no `{unknown[0]}`; it has {', '.join(sorted(known))}")
    dialect = table.get("dialect", "auto")
    if dialect not in DIALECTS:
        raise WrongSettings(f"{file}: dialect is {dialect!r}; choose one of {', '.join(DIALECTS)}")
    per_file = table.get("per-file-ignores", {})
    if not isinstance(per_file, dict):
        raise WrongSettings(f"{file}: per-file-ignores must be a table of patterns and rules")
    return Settings(
        select=_ids(table, "select", file),
        ignore=_ids(table, "ignore", file),
        dialect=dialect,
        exclude=_texts(table, "exclude", file),
        per_file_ignores={pattern: _ids(per_file, pattern, file) for pattern in per_file},
        directory=file.parent,
    )


def _texts(table: dict[str, Any], name: str, file: Path) -> tuple[str, ...]:
    found = table.get(name, [])
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise WrongSettings(f"{file}: {name} must be a list of texts, it is {found!r}")
    return tuple(found)


def _ids(table: dict[str, Any], name: str, file: Path) -> frozenset[str]:
    try:
        return rule_ids(_texts(table, name, file))
    except ValueError as error:
        raise WrongSettings(str(error) if str(file) in str(error) else f"{file}: {name}: {error}") from None


def rule_ids(names: Iterable[str]) -> frozenset[str]:
    """Return the ids of rules by id, name or legacy code, and of families by the beginning of their ids (``NK6``).

    ValueError for a name that is none.
    """
    found: set[str] = set()
    for name in names:
        family = [each for each in RULES if each.startswith(name.strip().upper())] if name.strip() else []
        rule = find_rule(name)
        found |= {rule.id} if rule is not None else set(family) or {rule_named(name).id}
    return frozenset(found)
