"""Cases that the tests of a session never met: no partial last tile, never two programs, K never beyond a tile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from nkitools.authors_code.called_functions import plain_function
from nkitools.authors_code.named_values import names_in
from nkitools.record.columns import Columns
from nkitools.rules.shown_text import shown_line

if TYPE_CHECKING:
    from nkitools.record.record import Record
    from nkitools.record.run import Run

Met = dict[str, bool]
"""Of a kernel: whether a run has met something; without what the kernel cannot meet."""

_SENTENCES = {
    "partial": "no partial last tile",
    "programs": "never more than one program",
    "depth": "K never beyond one tile",
}
_MOST_KERNELS = 3
_PROGRAMS = frozenset({"program_id", "num_programs"})

_met: dict[str, Met] = {}
"""What the kernels of this process have met: a kernel that has met all is not looked at again."""


def met_by(run: Run) -> Met:
    """Return the cases that a simulated run of an NKI kernel and the kernel's earlier runs have met."""
    known = _met.setdefault(run.kernel, {})
    if known.keys() == _SENTENCES.keys() and all(known.values()):
        return known
    records = [each for each in run.all_records if each.count]
    launch = getattr(run.again, "launch", None)
    if not records or launch is None or run.error is not None:
        return {}
    function = plain_function(launch.function)
    if function is not None and not _PROGRAMS.isdisjoint(names_in(function.__code__)):
        known["programs"] = known.get("programs", False) or any(len(each.programs) > 1 for each in records)
    for record in records:
        for name, value in _of_record(record).items():
            known[name] = known.get(name, False) or value
    return dict(known)


def _of_record(record: Record) -> Met:
    """Return whether a line with several turns had views of several sizes, and a matmul several turns for one sum."""
    columns, found = Columns(record), Met()
    first = columns.first_operands[:-1]
    first = first[first < columns.layouts.size]
    heads, layouts = columns.heads[: first.size], columns.layouts[first]
    pairs = np.unique(heads * (int(columns.layouts.max(initial=0)) + 1) + layouts).size
    lines = np.unique(columns.sites).size
    if lines < columns.sites.size:
        found["partial"] = pairs > lines
    products = np.flatnonzero(columns.of_each_plan(lambda plan: plan.name.startswith("nc_matmul"))[: first.size])
    if products.size:
        sums = np.stack((columns.storages[first[products]], columns.byte_offsets[first[products]]))
        found["depth"] = np.unique(sums, axis=1).shape[1] < products.size
    return found


def missing_of(met: Met) -> list[str]:
    """Return what runs have never met, in words."""
    return [text for name, text in _SENTENCES.items() if met.get(name) is False]


def merge(mine: dict[str, Met], other: Mapping[str, Met]) -> None:
    """Add the cases that another process, or another test, has met."""
    for kernel, met in other.items():
        known = mine.setdefault(kernel, {})
        for name, value in met.items():
            known[name] = known.get(name, False) or value


def sentence(kernels: Mapping[str, Met]) -> str:
    """Return ``never met: matmul: K never beyond one tile``; '' if all cases were met."""
    missing = {kernel: missing_of(met) for kernel, met in kernels.items()}
    parts = [f"{shown_line(kernel)}: {', '.join(texts)}" for kernel, texts in sorted(missing.items()) if texts]
    if not parts:
        return ""
    more = len(parts) - _MOST_KERNELS
    rest = f"; and {more} more kernel{'s' if more > 1 else ''}" if more > 0 else ""
    return f"never met: {'; '.join(parts[:_MOST_KERNELS])}{rest}"
