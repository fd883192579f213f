"""Marks of an instruction by its values: the terms of a sum, and where NaN, infinity or a loss of digits entered."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from nkitools.chip.dtypes import UnknownDType, as_dtype
from nkitools.chip.numerics import Array
from nkitools.record.element_slice import SlicePart, SliceStep

INDEX = "index"
LOST = 2.0**-10
"""A sum below this part of its terms has lost at least ten bits."""


def marks_of(step: SliceStep, terms: Array | None) -> tuple[str, ...]:
    """Return texts about NaN, infinity, saturation or lost digits that first appear in the results of an instruction.

    ``terms``: those of `terms_of`.
    """
    made, read = _numbers(step.results), _numbers(step.operands)
    if made is None or not made.size:
        return ()
    known = read if read is not None else np.zeros(0)
    is_known = read is not None
    found = []
    if is_known and np.isnan(made).any() and not np.isnan(known).any():
        found.append("NaN entered here")
    if is_known and np.isinf(made).any() and not np.isinf(known).any() and not np.isnan(known).any():
        found.append("infinity entered here")
    if is_known and _saturates(step, known):
        found.append("saturated here")
    if terms is not None and np.isfinite(terms).all():
        largest, total = np.abs(terms).sum(), abs(float(made.reshape(-1)[0]))
        if largest > 0 and total < LOST * largest:
            found.append(f"cancellation: terms of {largest:.3g} in all leave {total:.3g}")
    return tuple(found)


def terms_of(step: SliceStep) -> Array | None:
    """Return the terms that add up to the only element of a step's result; None if that is uncertain."""
    results = [part for part in step.results if part.values is not None]
    operands = {part.operand: part for part in step.operands if part.operand != INDEX}
    if len(results) != 1 or len(results[0].indices) != 1 or any(part.values is None for part in operands.values()):
        return None
    values = {
        name: np.asarray(part.values).reshape(-1).astype(np.float64)
        for name, part in operands.items()
        if _is_number(part)
    }
    if len(values) != len(operands):
        return None
    if step.instruction.name == "nc_matmul":
        pair = [values.get(name) for name in ("stationary", "moving")]
        if pair[0] is None or pair[1] is None or pair[0].shape != pair[1].shape:
            return None
        with np.errstate(all="ignore"):
            return np.concatenate((pair[0] * pair[1], values.get("dst", np.zeros(0))))
    every = np.concatenate(list(values.values())) if values else np.zeros(0)
    made = float(np.asarray(results[0].values).reshape(-1)[0])
    with np.errstate(all="ignore"):
        for terms in (every, np.concatenate((every[:1], -every[1:]))):
            are_terms = np.count_nonzero(terms) >= 2 and np.isfinite(terms).all()
            if are_terms and abs(terms.sum() - made) <= 2.0**-8 * abs(made):
                return terms
    return None


def _is_number(part: SlicePart) -> bool:
    return part.values is not None and np.asarray(part.values).dtype.names is None


def _numbers(parts: tuple[SlicePart, ...]) -> Array | None:
    """Return the values of all parts but indices as float64, in one array; None if some are unknown or no numbers."""
    if any(not _is_number(part) for part in parts):
        return None
    arrays = [np.asarray(part.values).reshape(-1).astype(np.float64) for part in parts if part.operand != INDEX]
    return np.concatenate(arrays) if arrays else np.zeros(0)


def _saturates(step: SliceStep, read: Array) -> bool:
    """Return whether a result is at a bound of its dtype which the operands exceed, or which none of them equals."""
    for part in step.results:
        bounds = _bounds(part.dtype)
        if bounds is None or part.values is None:
            continue
        values = np.asarray(part.values).astype(np.float64)
        for bound, beyond in ((bounds[1], read > bounds[1]), (bounds[0], read < bounds[0])):
            if (values == bound).any() and (beyond.any() or not (read == bound).any()):
                return True
    return False


def _bounds(name: str) -> tuple[float, float] | None:
    try:
        dtype = as_dtype(name).dtype
    except UnknownDType:
        return None
    if dtype.names is not None or dtype == np.bool_:
        return None
    if dtype.kind in "iu":
        return float(np.iinfo(dtype).min), float(np.iinfo(dtype).max)
    if dtype.itemsize > 1:
        return None  # what is too large becomes infinity
    found = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    return float(found.min), float(found.max)
