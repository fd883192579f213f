"""The elements that a backward slice is asked for: which output, and which of its elements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.record.rows import Access
from nkitools.record.run import Run
from nkitools.record.saved.encoding import as_array, leaves


class Asked(NamedTuple):
    """The elements whose slice a caller asks for.

    ``number``: of the record. ``access``: a view of the tensor. ``wanted``: a mask of the elements of the view.
    """

    number: int
    access: Access
    wanted: Array


def asked_of(run: Run, output: Any, index: Any) -> Asked:
    """Return the elements of ``output`` that ``index`` selects.

    ``output``: a result of the run, its number, or the name of a tensor. IndexError for an index outside of it or
    without elements, ValueError for an unknown name or number and for a run without instructions, TypeError for
    anything else.
    """
    if not run.all_records:
        raise ValueError(
            "run.why goes through the instructions of a kernel, and this run has none: nkitools simulates those of NKI "
            "kernels. nkitools.pallas.check(..., reference=...) names the block of a Pallas kernel that is wrong."
        )
    number, access = _place(run, output)
    if index is not Ellipsis and isinstance(index, (list, np.ndarray)):
        index = tuple(index)
    mask = np.zeros(access.layout.shape, np.bool_)
    try:
        mask[index] = True
    except IndexError:
        shape = list(access.layout.shape)
        raise IndexError(f"index {_shown(index)} lies outside of the output, whose shape is {shape}") from None
    if not mask.any():
        raise IndexError(f"index {_shown(index)} names no element of the output of shape {list(mask.shape)}")
    return Asked(number, access, mask)


def _place(run: Run, output: Any) -> tuple[int, Access]:
    places = [(number, access) for number, record in enumerate(run.all_records) for access in record.outputs]
    if isinstance(output, str):
        named = [*_named(run, places, output), *_stored(run, output)]
        if named:
            return named[0]
        raise ValueError(f"no tensor of the run is called {output!r}; its results are {_names(run, places)}")
    if isinstance(output, (int, np.integer)) and not isinstance(output, bool):
        if not -len(places) <= output < len(places):
            raise ValueError(f"output {output}: the run has {len(places)} results, {_names(run, places)}")
        return places[output]
    arrays = {_memory(array): None for _, array in leaves(run.outputs) if isinstance(array, np.ndarray)}
    if not isinstance(output, (str, int)) and len(arrays) == len(places):
        for place, memory in zip(places, arrays, strict=True):
            if _memory(as_array(output)) == memory:
                return place
    raise TypeError(f"output: must be a result of the run, its number, or the name of a tensor, it is {output!r:.80}")


def _memory(array: Array | None) -> Any:
    """Return the address, shape and strides of an array: two arrays that show the same elements have the same."""
    return array if array is None else (array.__array_interface__["data"][0], array.shape, array.strides)


def _named(run: Run, places: Iterable[tuple[int, Access]], name: str) -> list[tuple[int, Access]]:
    return [(number, access) for number, access in places if run.all_records[number].name_of(access.storage) == name]


def _stored(run: Run, name: str) -> list[tuple[int, Access]]:
    """Return each tensor of a name: the number of its record, and its widest view; in a record the newest first."""
    found = []
    for number, record in enumerate(run.all_records):
        for storage in reversed(list(record.storages)):
            if record.name_of(storage) != name:
                continue
            views = [
                access
                for row in record.rows_between()
                for access in row.accesses()
                if access.storage == storage and access.layout.injective
            ]
            if views:
                found.append((number, max(views, key=lambda each: each.layout.elements)))
    return found


def _names(run: Run, places: Iterable[tuple[int, Access]]) -> str:
    names = [run.all_records[number].name_of(access.storage) or "one without a name" for number, access in places]
    return ", ".join(names) or "none"


def _shown(index: Any) -> str:
    parts = index if isinstance(index, tuple) else (index,)
    return "[" + ", ".join(_part(each) for each in parts) + "]"


def _part(part: Any) -> str:
    if not isinstance(part, slice):
        return "..." if part is Ellipsis else str(part)
    return ":".join("" if each is None else str(each) for each in (part.start, part.stop))
