"""The forms of runs in which the rules over a whole record have found nothing.

What these rules find depends on the record alone: which plans were issued at which lines on which views, what the
tensors are, and what is returned. The next run of the same kernel on arrays of the same shapes has the same form, and
then nothing is looked for again. A form is all that the rules read; one that has anything beside its rows (masks,
indices, registers, meetings, several programs) is looked at in every run.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from hashlib import blake2b
from operator import attrgetter

import numpy as np

from nkitools.facts.kept import Kept
from nkitools.record.columns import Columns
from nkitools.record.record import Record, StorageRecord
from nkitools.record.rows import Access

_LONG = 20_000  # instructions; a digest of more takes as long as the rules

_FACTS = attrgetter(*(name for name in StorageRecord.__slots__ if name != "place"))

_clean = Kept[bytes, None]("forms of runs in which nothing was found", 4096, "16 bytes each")


def form_of(columns: Columns, results: Iterable[Access], inputs: Iterable[int], *around: Hashable) -> bytes | None:
    """Return a digest of the form of a run; None where it has anything beside its rows.

    ``results``: the views that it returns. ``inputs``: the storages of its arguments. ``around``: what else the rules
    depend on.
    """
    record = columns.record
    if not record.storages or not record.has_rows_only or record.count > _LONG:
        return None
    base = record.oldest
    views = [(each.storage - base, each.layout.id, each.byte_offset) for each in results]
    named = [each - base for each in inputs], sorted(each - base for each in record.printed)
    digest = blake2b(repr((views, named, record.skipped_loop, around)).encode(), digest_size=16)
    for part in (*columns.numbered_from(base), *_storages(record)):
        digest.update(part)
    digest.update(repr(hash(tuple(record.sites.all))).encode())
    return digest.digest()


def is_clean(form: bytes | None) -> bool:
    """Return whether nothing was found in a run of this form."""
    return form in _clean


def keep_clean(form: bytes | None) -> None:
    """Remember that nothing was found in a run of this form."""
    if form is not None:
        _clean[form] = None


def _storages(record: Record) -> tuple[bytes, ...]:
    """Return the storages of a record as bytes: their numbers, and which facts each of them has.

    The tiles of one line mostly share their facts, so that each object is looked at once.
    """
    storages = record.storages
    distinct = {id(each): each for each in storages.values()}
    number = {key: at for at, key in enumerate(distinct)}
    places = {place: at for at, place in enumerate(sorted({each.place for each in distinct.values()}))}
    facts = hash(tuple((_FACTS(each), places[each.place]) for each in distinct.values()))
    numbers = np.array(list(storages), np.int64) - record.oldest
    which = np.array([number[id(each)] for each in storages.values()], np.int64)
    return numbers.tobytes(), which.tobytes(), repr(facts).encode()
