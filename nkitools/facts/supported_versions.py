"""The versions of Python and of packages that nkitools was tested with.

The table is ``supported_versions.tsv``: package, version, how it was tested (``CI``, ``by hand``, ``not tested``), and
a note. ``nkitools doctor``, the summary of a test session, a page of the documentation and continuous integration read
it; a test compares ``pyproject.toml`` with it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from nkitools.facts.tsv import rows_of

_TABLE = Path(__file__).with_name("supported_versions.tsv")
PYTHON = "Python"

# How many numbers of a version say whether it is another release: the weekly releases of hypothesis change little, the
# patch releases of jax and libtpu what nkitools.pallas sees of their insides.
_COMPARED = {"hypothesis": 1, "jax": 3, "libtpu": 3}
_USUALLY_COMPARED = 2


class TestedVersion(NamedTuple):
    """One row of the table."""

    package: str
    """The distribution, as pip has it, or ``Python``."""
    number: str
    """The version as pip has it."""
    how: str
    """``CI``, ``by hand``, ``not tested``."""
    note: str


def release(version: str) -> tuple[int, ...]:
    """Return the numbers that a version begins with: (2, 14, 3, 0) of ``2.14.3.0+abc``."""
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("+")[0]))


@cache
def table() -> tuple[TestedVersion, ...]:
    """Return all rows: packages in the order of the file, versions ascending."""
    return tuple(TestedVersion(*row.values()) for row in rows_of(_TABLE))


@cache
def packages() -> tuple[str, ...]:
    """Return the names in the table, ``Python`` among them."""
    return tuple(dict.fromkeys(row.package for row in table()))


def tested(package: str) -> list[str]:
    """Return the versions of ``package`` that were tested, ascending; raise `KeyError` for one without a row."""
    if package not in packages():
        raise KeyError(package)
    versions = (row.number for row in table() if row.package == package and row.how != "not tested")
    return sorted(versions, key=release)


def outside(package: str, version: str) -> str:
    """Return one sentence if ``version`` is older or newer than all that were tested, else an empty text."""
    compared = _COMPARED.get(package, _USUALLY_COMPARED)
    versions = tested(package)
    number, oldest, newest = (release(each)[:compared] for each in (version, versions[0], versions[-1]))
    if not number or oldest <= number <= newest:
        return ""
    kind, bound = ("newer", versions[-1]) if number > newest else ("older", versions[0])
    return f"{package} {version} is {kind} than the versions that nkitools was tested with ({bound})"


def installed(package: str) -> str | None:
    """Return the version of a package of the table that is installed here; None if it is not installed."""
    if package == PYTHON:
        return ".".join(map(str, sys.version_info[:3]))
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def installed_outside(
    names: Iterable[str] | None = None, version: Callable[[str], str | None] = installed
) -> Iterator[str]:
    """Yield a sentence for each package that is installed in a version outside of those tested.

    ``names`` are packages of the table; None takes all.
    """
    for package in packages() if names is None else names:
        found = version(package)
        sentence = outside(package, found) if found is not None else ""
        if sentence:
            yield sentence


def imported_outside() -> list[str]:
    """Return the sentences of `installed_outside` for Python and for packages that this process has imported."""
    return list(_outside_of(tuple(name for name in packages() if name == PYTHON or name in sys.modules)))


@cache
def _outside_of(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(installed_outside(names))


def beside_the_table() -> Iterator[str]:
    """Yield a line for each package of the table: the version that is installed here, and those that were tested."""
    for package in packages():
        here = installed(package)
        if here is not None:
            remark = f": {sentence}" if (sentence := outside(package, here)) else ""
            yield f"{package} {here}, tested {', '.join(tested(package))}{remark}"


if __name__ == "__main__":
    print("\n".join(beside_the_table()))
