"""Findings of elements that were never written, as instructions and results report them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from nkitools.chip.masked_out import MASK, LeftOut, cause_of, travelled
from nkitools.chip.masked_out import UNWRITTEN as NEVER_WRITTEN
from nkitools.chip.numerics import Array
from nkitools.chip.own_indices import own_boxes
from nkitools.chip.pictures import LEFT_OUT, UNWRITTEN, picture_of
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.record.record import Record
from nkitools.rules.finding import report


def report_result(record: Record, tensor: NkiTensor, missing: Array) -> bool:
    """NK405, NK401: elements of a result were made of undefined ones; return whether any of the missing ones were."""
    made = travelled(tensor, missing)
    if made is not None:
        report_undefined(
            record, "the kernel's result", "which the kernel returns", tensor, made, tensor.storage.site, ""
        )
    return made is not None


def report_undefined(
    record: Record, name: str, reader: str, tensor: NkiTensor, missing: Array, here: int, remedy: str
) -> bool:
    """Report undefined elements at the first instruction that used them, if they travelled to the site ``here``.

    Return whether a run has recorded it.
    ``name``: the reader at ``here``; ``reader``: the reader as a clause.
    """
    some = f"{np.count_nonzero(missing)} of {missing.size} elements of {describe(tensor)}"
    mask = cause_of(tensor, missing, MASK)
    cause = mask or cause_of(tensor, missing, NEVER_WRITTEN)
    site = here if cause is None or cause.use.site < 0 else cause.use.site
    what, behind = f"{name}: {some}", ""
    if cause is not None and site != here:
        what, behind = cause.use.what, f"; of them are made {some}, {reader} {place_of(record, here, site)}"
    boxes, first = own_boxes(tensor, missing), [int(axis[0]) for axis in np.nonzero(missing)]
    where = f"the first is at index {first}"
    if mask is not None:
        place = place_of(record, mask.site, site)
        message = f"{what} are used here, which the mask {place} left out{behind}; {where}"
    else:
        where = f"these are{boxes}" if boxes else where
        message = f"{what} are read but were never written{behind}; {where}{_origin(record, tensor, cause, site)}"
    facts = {"instruction": name, "unwritten": int(np.count_nonzero(missing)), "elements": missing.size}
    facts |= _facts_of(record, cause)
    picture = partial(picture_of, missing, LEFT_OUT if mask else UNWRITTEN)
    rule, remedy = ("NK405", "") if mask else ("NK401", remedy)
    record.report_site = site
    try:
        return report(rule, message, about=(tensor,), remedy=remedy, picture=picture, facts=facts)
    finally:
        record.report_site = -1


def _facts_of(record: Record, cause: LeftOut | None) -> dict[str, Any]:
    """Return the facts of the tensor that lacks the elements; {} if it is the tensor that is read."""
    known = None if cause is None or cause.cause == MASK else record.storages.get(cause.source)
    if known is None or cause is None:
        return {}
    site = record.sites[known.site]
    whole = {"memory": known.memory, "dtype": str(known.dtype), "shape": tuple(known.shape)}
    return {"tensor": f"\x00{cause.source}\x00", "allocated_at": f"{site.file}:{site.line}", **whole}


def _origin(record: Record, tensor: NkiTensor, cause: LeftOut | None, finding: int) -> str:
    """Return the tensor in which elements that have travelled were never written, as a part of a sentence."""
    if cause is None or cause.source == tensor.storage.id:
        return ""
    name = record.name_of(cause.source)
    whose = f"`{name}`" if name else "the tensor"
    return f"; undefined elements came from {whose} made {place_of(record, cause.site, finding)}"


def place_of(record: Record, site: int, finding: int) -> str:
    """Return a line of the author's as text, relative to the line of the finding."""
    there, here = record.sites[site], record.sites[finding]
    return f"at line {there.line}" if there.file == here.file else f"at {there.file}:{there.line}"
