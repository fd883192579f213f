"""The forms of runs in which the rules over a whole record have found nothing.

These rules depend only on the record: plans, lines, views, tensors and results. The next run of the same kernel on
arrays of the same shapes has the same form, so that the rules need not run again. A form has everything that the rules
read; a record with more than rows (masks, indices, registers, meetings, several programs) is checked in every run.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from operator import attrgetter
from typing import TypeAlias

from nkitools.chip.tensor import NkiTensor
from nkitools.facts.kept import Kept
from nkitools.record.record import Record, StorageRecord
from nkitools.record.source_sites import Site

_LONG = 20_000  # instructions; the form of more takes as long as the rules

_FACTS = attrgetter(*(name for name in StorageRecord.__slots__ if name not in ("place", "fingerprint")))

Form: TypeAlias = tuple[int, ...]

_clean = Kept[Form, tuple[tuple[int, ...], tuple[Site, ...]]](
    "forms of runs in which nothing was found, with the storages that they write", 4096, "a few numbers each"
)
"""Each form is kept with its sites, as their ids are part of it."""


def form_of(record: Record, results: Iterable[NkiTensor], inputs: Iterable[int], *around: Hashable) -> Form | None:
    """Return the hashes of the parts of a run's form; None if the record has more than rows, or is too long.

    ``results``: the returned tensors. ``inputs``: the storages of the arguments. ``around``: further values that the
    rules depend on.
    """
    if not record.storages or not record.has_rows_only or record.count > _LONG:
        return None
    base, numbers, hashes, places = record.oldest, [], [], []
    for number, known in record.storages.items():
        numbers.append(number - base)
        hashes.append(known.fingerprint or _fingerprint(known))
        places.append(known.place)
    shared: tuple[int, ...] = ()
    if len(set(places)) > 1:  # which of them share a memory
        rank = {place: at for at, place in enumerate(sorted(set(places)))}
        shared = tuple([rank[place] for place in places])
    views = tuple([(each.storage.id - base, each.layout.id, each.byte_offset) for each in results])
    printed = tuple(sorted([each - base for each in record.printed])) if record.printed else ()
    masked = tuple(sorted(record.masked)) if record.masked else ()
    beside = views, tuple([each - base for each in inputs]), printed, masked, record.skipped_loop, around
    parts = hash(beside), hash(record.numbered_rows()), hash(tuple(numbers)), hash(tuple(hashes)), hash(shared)
    return (*parts, *map(id, record.sites.all))


def written_if_clean(form: Form | None) -> tuple[int, ...] | None:
    """Return the storages that a run writes, numbered from its oldest on; None unless an earlier run of its form had no
    findings.
    """
    known = None if form is None else _clean.get(form)
    return None if known is None else known[0]


def keep_clean(form: Form | None, record: Record, written: Iterable[int]) -> None:
    """Keep a form whose run had no findings, with the storages that it writes."""
    if form is not None:
        _clean[form] = tuple([number - record.oldest for number in written]), tuple(record.sites.all)


def _fingerprint(known: StorageRecord) -> int:
    """Return the hash of a storage's facts, and keep it with them: tiles of one line mostly share their facts."""
    known.fingerprint = hash(_FACTS(known)) or 1
    return known.fingerprint
