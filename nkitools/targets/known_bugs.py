"""Name what goes wrong with installed versions of AWS's packages, and which version is for which chip.

The table is ``known_bugs.tsv``: package, first version, first version without, chips (empty: all), what goes wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from nkitools.facts.supported_versions import release
from nkitools.facts.tsv import rows_of
from nkitools.targets.packages import version_of

_TABLE = Path(__file__).with_name("known_bugs.tsv")


class KnownBug(NamedTuple):
    """One thing that goes wrong with an installed version."""

    package: str
    """The distribution, as pip has it."""
    installed: str
    """The installed version."""
    what: str
    """What goes wrong."""
    source: str
    """The page of AWS's documentation."""

    def sentence(self) -> str:
        """Return package, version, what and source in one line."""
        return f"{self.package} {self.installed}: {self.what} ({self.source})"


def known_bugs(chip: str, version: Callable[[str], str | None] = version_of) -> Iterator[KnownBug]:
    """Yield what is known of the versions that are installed here, for ``chip`` (empty: unknown)."""
    for row in rows_of(_TABLE):
        installed = version(row["package"])
        if installed is None or (row["chips"] and chip not in row["chips"].split()):
            continue
        if _within(installed, row["from"], row["below"]):
            yield KnownBug(row["package"], installed, row["what"], row["source"])


def _within(version: str, first: str, below: str) -> bool:
    return release(version) >= release(first) and (not below or release(version) < release(below))
