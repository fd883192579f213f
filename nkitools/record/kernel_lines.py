"""What the lines of a kernel have made and issued in its earlier runs: sites, forms of tiles, plans.

A run takes the lines of its kernel, and gives them back if it has reported nothing: a line that breaks a rule is looked
at in every run.
"""

from __future__ import annotations

from collections.abc import Hashable
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

from nkitools.facts.kept import on_forget
from nkitools.record.rows import Planned
from nkitools.record.source_sites import Sites

_MOST = 4096  # sites, and tiles: of a kernel that makes its code or its shapes anew in each run


class KernelLines:
    """The lines of a kernel, for one run at a time."""

    def __init__(self) -> None:
        self.sites = Sites()
        self.calls: dict[Any, Any] = {}  # tiles that lines have made, see `nkitools.language.repeated_tiles`
        self.tiles: dict[int, Any] = {}  # by place in the author's code the tile that it has made last
        # By place in the author's code what it has issued last (`nkitools.issue.fast_path`), and the plans in that.
        self.issued: dict[int, tuple[Any, ...]] = {}
        self.plans: dict[int, Planned] = {}

    def keep_issued(self, issued: dict[int, tuple[Any, ...]], plans: dict[int, Planned]) -> None:
        """Keep what the lines have issued in a run."""
        if len(self.issued) < _MOST and len(self.plans) < _MOST:
            self.issued.update(issued)
            self.plans.update(plans)


_kept: WeakKeyDictionary[FunctionType, dict[Hashable, KernelLines]] = WeakKeyDictionary()
"""By the functions of kernels, and by the settings of runs."""
on_forget(_kept.clear)


def take_lines(function: FunctionType | None, settings: Hashable) -> KernelLines:
    """Return the lines of a kernel under some settings; new ones while another run has them."""
    kept = None if function is None else _kept.get(function)
    return (None if kept is None else kept.pop(settings, None)) or KernelLines()


def give_back(lines: KernelLines, function: FunctionType | None, settings: Hashable) -> None:
    """Keep the lines of a run that has reported nothing."""
    if function is not None and max(len(lines.sites.all), len(lines.calls), len(lines.plans)) < _MOST:
        _kept.setdefault(function, {})[settings] = lines
