"""The reference of a precision split: which tensor each of its arrays belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from nkitools.chip.argument_types import Argument
from nkitools.chip.numerics import Array
from nkitools.comparison.form import RETURNS_NONE, unlike_kind
from nkitools.precision.difference import exact
from nkitools.precision.runs import arrays_in, in_float64

Shapes = Sequence[tuple[str, tuple[int, ...]]]


def references_of(
    reference: Argument,
    shapes: Shapes,
    outputs: int,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    dtypes: Sequence[str] = (),
) -> list[Array | None]:
    """Return the reference of each tensor in float64, or None.

    ``shapes``: names and shapes of the tensors. The first ``outputs`` are the kernel's results, the others the
    arguments that it wrote into; ``dtypes``: the names of their dtypes, whose kinds are compared. Raises TypeError for
    a reference that holds no arrays, ValueError for arrays of another number, shape or kind of dtype, or of NaN alone.
    """
    if reference is None:
        return [None] * len(shapes)
    if callable(reference) and not hasattr(reference, "shape"):
        values, named = in_float64((args, kwargs))
        reference = reference(*values, **named)
        if reference is None:
            raise TypeError(f"reference: {RETURNS_NONE}")
    if isinstance(reference, np.generic):
        reference = np.asarray(reference)
    found = {place: array for place, (_, array) in arrays_in("output", reference)}
    if not found:
        raise TypeError(f"reference: it must be or return arrays, it is {type(reference).__name__}")
    matched = _matched(found, shapes, outputs)
    for (name, shape), array, dtype in zip_longest(shapes[: len(matched)], matched, dtypes[: len(matched)]):
        _check(name, shape, array, dtype)
    return [*map(exact, matched), *[None] * (len(shapes) - len(matched))]


def _matched(found: dict[str, Array], shapes: Shapes, outputs: int) -> list[Array]:
    """Order the arrays of a reference as the tensors: by name if all names are those of results, else as they come."""
    places = [name for name, _ in shapes[:outputs]]
    if set(found) == set(places):
        return [found[place] for place in places]
    if len(found) not in (outputs, len(shapes)):
        names = ", ".join(name for name, _ in shapes)
        raise ValueError(f"reference: it holds {len(found)} arrays, the kernel makes {len(shapes)}: {names}")
    return list(found.values())


def _check(name: str, shape: tuple[int, ...], array: Array, dtype: str | None) -> None:
    unlike = "" if dtype is None else unlike_kind(dtype, array)
    if unlike:
        raise ValueError(f"reference: {name}: {unlike}")
    if array.shape != shape:
        raise ValueError(f"reference: it has the shape {list(array.shape)} for {name}, which has {list(shape)}")
    if array.size and np.isnan(exact(array)).all():
        raise ValueError(f"reference: all {array.size} elements for {name} are NaN; what is right there is not known")
