"""The public names and parameters of each NKI version, since and until when: one table, in ``versions.tsv``.

The modules of the dialects, signatures, lint, messages and the coverage page are made from the table. A row
is about one of these, by the form of its ``name``:

- ``@0.6``: a version; ``instead`` is the release that brought it. The versions of the modern ``nki`` are the choices of
  the option ``nki_version``.
- ``activation``: a public name of a module; ``home`` is the module of nkitools that defines it, with ``:name`` where
  the definition is called otherwise. ``-`` is a name that AWS documents and nkitools refuses.
- ``activation(engine)``: a parameter, with a row only where versions differ. The definition has every parameter of
  every version and the defaults of the newest one; ``default`` is that of older versions. ``*(mask)``: a parameter of
  any function.
- ``tile_size.pmax``: a member. ``buffer='sbuf'``: a form of writing.

``since`` is the first version with it, ``until`` the first one without it (``?``: an earlier one than the table has),
``deprecated`` the first one that announces its end. ``instead`` is the sentence with its replacement. An empty cell
means that no version of the table differs.

The version that holds is that of the run (``nki_version=`` of `nkitools.simulate`, else the option), outside of a run
the option. ``auto`` is the newest version, where removed names still run, with NK618. The modules that stand in for
AWS's serve runs of several versions, so a name of any version is an attribute. It is refused where it is used in a
run of a version that lacks it, and where it is imported or read outside of a run while the option names such a version.
A constant that is imported by name before the run is not seen again.

The module needs the standard library only, so that options and rules can name it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

AUTO = "auto"
MODERN, LEGACY = "nki", "neuronxcc.nki"
FILES: tuple[Path, ...] = (Path(__file__).with_name("versions.tsv"),)
_SHORT = {"nki.isa": "nisa", "nki.language": "nl", "neuronxcc.nki.isa": "nisa", "neuronxcc.nki.language": "nl"}


class Row(NamedTuple):
    """One row of the table; see the module's docstring for its cells."""

    module: str
    name: str
    home: str = ""
    since: str = ""
    until: str = ""
    deprecated: str = ""
    default: str = ""
    instead: str = ""

    @property
    def is_modelled(self) -> bool:
        """Return whether nkitools defines the name."""
        return self.home not in ("", "-")

    @property
    def owner(self) -> str:
        """Return the name whose parameter the row is about, "" for a row about a name."""
        return self.name.partition("(")[0] if self.name.endswith(")") else ""

    @property
    def parameter(self) -> str:
        """Return the parameter that the row is about, "" for a row about a name."""
        return self.name.partition("(")[2].removesuffix(")")

    @property
    def short(self) -> str:
        """Return the name as kernels write it: ``nisa.activation``."""
        return f"{short_of(self.module)}.{self.name}"

    def comes_after(self, version: str) -> bool:
        """Return whether ``version`` is too early for what the row is about."""
        return _number(self.since) > _number(_exact(self.module, version))

    def is_gone(self, version: str) -> bool:
        """Return whether ``version`` has removed what the row is about; under ``auto`` the oldest version decides."""
        exact = versions_of(self.module)[0] if version == AUTO else version
        return bool(self.until) and _number(self.until) <= _number(exact)

    def is_in(self, version: str) -> bool:
        """Return whether ``version`` has what the row is about."""
        return not self.comes_after(version) and not self.is_gone(version)

    def is_leaving(self, version: str) -> bool:
        """Return whether ``version`` is ``auto``, and the newest version has removed what the row is about."""
        return self.is_in(version) and self.is_gone(_exact(self.module, version))

    def leave(self) -> str:
        """Return the sentence of NK618 about a name that the newest version has removed."""
        return f"{self.short} {self.absence(versions_of(self.module)[-1])}; it runs because no version is said"

    @property
    def is_known(self) -> bool:
        """Return whether some version of the table has what the row is about."""
        return any(self.is_in(version) for version in versions_of(self.module))

    @property
    def differs(self) -> bool:
        """Return whether some version of the table lacks what the row is about, or is to be warned of it."""
        return not all(self.is_in(version) for version in versions_of(self.module))

    def absence(self, version: str) -> str:
        """Return the end of a sentence that says since or until when there is what the row is about."""
        if self.comes_after(version):
            return f"is public since NKI {self.since}; this is NKI {_exact(self.module, version)}"
        return f"was removed {'from NKI' if self.until == '?' else f'in NKI {self.until}'}"


def short_of(module: str) -> str:
    """Return a module as kernels write it: ``nisa``."""
    return _SHORT.get(module, module)


def _number(version: str) -> tuple[float, ...]:
    """Return a version as numbers to compare; ``?`` and no version come before all others."""
    return tuple(map(int, version.split("."))) if version not in ("", "?") else ()


def _exact(module: str, version: str) -> str:
    return versions_of(module)[-1] if version == AUTO else version


@cache
def _lines() -> tuple[str, ...]:
    return tuple(line for file in FILES for line in file.read_text(encoding="utf-8").splitlines()[1:])


@cache
def rows() -> tuple[Row, ...]:
    """Return the rows of the table."""
    return tuple(Row(*line.split("\t")) for line in _lines())


@cache
def versions_of(module: str = MODERN) -> tuple[str, ...]:
    """Return the versions of the dialect that ``module`` belongs to, the oldest first.

    Every pytest session asks for them: no other row is made.
    """
    start = f"{LEGACY if module.startswith(LEGACY) else MODERN}\t@"
    found = (line.removeprefix(start).partition("\t")[0] for line in _lines() if line.startswith(start))
    return tuple(sorted(found, key=_number))


def release_of(dialect: str) -> str:
    """Return the release that brought the newest version of a dialect: ``SDK 2.32``."""
    name = f"@{versions_of(dialect)[-1]}"
    return next(row.instead for row in rows() if (row.module, row.name) == (dialect, name))


def choices() -> tuple[str, ...]:
    """Return the values of the option ``nki_version``."""
    return (AUTO, *versions_of())


def exact(version: str) -> str:
    """Return the version that a value of the option ``nki_version`` means."""
    return _exact(MODERN, version)


@cache
def names_of(module: str) -> dict[str, Row]:
    """Return the rows of the names of ``module``, also of those that are gone."""
    return {row.name: row for row in rows() if row.module == module and row.name.isidentifier()}


@cache
def _of_parameters() -> dict[str, list[Row]]:
    """Return the rows of parameters, by the name of their function."""
    found: dict[str, list[Row]] = {}
    for row in rows():
        if row.owner:
            found.setdefault(row.owner, []).append(row)
    return found


@cache
def parameters_of(module: str, name: str) -> tuple[Row, ...]:
    """Return the rows of the parameters of ``name``, and of those of any function of the dialect."""
    own = [row for row in _of_parameters().get(name, ()) if row.module == module]
    return (*own, *(row for row in _of_parameters().get("*", ()) if module.startswith(f"{row.module}.")))


@cache
def by_full_name() -> dict[str, Row]:
    """Return the rows by module and name: ``nki.language.dynamic_range``."""
    return {f"{row.module}.{row.name}": row for row in rows()}


def notice(name: str, version: str) -> tuple[str, str] | None:
    """Return what NK618 says of ``nki.language.dynamic_range`` under ``version``, and what to write instead."""
    row = by_full_name().get(name)
    if row is None:
        return None
    if row.is_leaving(version):
        return row.leave(), row.instead
    if row.deprecated and _number(row.deprecated) <= _number(_exact(row.module, version)):
        return f"{row.short} is deprecated since NKI {row.deprecated}", row.instead
    return None


def removed() -> Iterator[tuple[str, str]]:
    """Yield what the modern dialect has lost, as kernels write it, each with what to write instead."""
    for row in rows():
        if row.until and row.instead and row.module in (MODERN, *_SHORT):
            shown = f"{row.parameter}=" if row.parameter else row.name if "=" in row.name else row.short
            yield shown, row.instead
