"""A tensor as a debugger shows it: memory, dtype, shape, address, written elements, and values.

Showing a tensor changes nothing: neither the written state nor the place of a view with a run-time address, and no rule
is checked.
"""

from __future__ import annotations

import copy

import numpy as np

from nkitools.chip.array_text import elided
from nkitools.chip.core import CORE
from nkitools.chip.memory_region import MEMORY_NAMES
from nkitools.chip.numerics import Array
from nkitools.chip.strided_view import StridedView
from nkitools.chip.twin_storage import is_reinterpreting, wide_window


def shown(tensor: StridedView) -> str:
    """``<tensor `x` (SBUF, float32 [128, 512]) at (0, 0), rows 0..63 of 128 written>`` and its values, elided.

    Unwritten elements are ``--``. A view with a run-time address shows its index in place of values.
    """
    if tensor.is_indirect():
        return f"<{named(tensor)}{_decided_by(tensor)}>"
    missing = _missing(tensor)
    return f"<{named(tensor)} at {tensor.address}, {_state(missing, tensor.shape)}>\n{elided(_digits(tensor), missing)}"


def named(tensor: StridedView) -> str:
    """Return ``tensor `x` (SBUF, float32 [128, 512])``, without the name if it has none."""
    core = CORE.get()
    name = tensor.name or ("" if core is None else core.record.name_of(tensor.storage.id))
    quoted = f"`{name}` " if name else ""
    return f"tensor {quoted}({MEMORY_NAMES[tensor.buffer]}, {tensor.dtype} {list(tensor.shape)})"


def state(tensor: StridedView) -> str:
    """``all written``, ``nothing written``, or which rows or how many elements have been."""
    return _state(_missing(tensor), tensor.shape)


def _missing(tensor: StridedView) -> Array | None:
    # Asking a storage may make its flags finer: this one is asked in a copy, whose flags are arrays of its own.
    return copy.copy(tensor.storage).unwritten(tensor.layout, tensor.byte_offset)


def _state(missing: Array | None, shape: tuple[int, ...]) -> str:
    if missing is None:
        return "all written"
    if missing.all():
        return "nothing written"
    by_row = missing.reshape(shape[0], -1)
    rows = ~by_row.any(axis=1)
    if not (by_row.all(axis=1) | rows).all():
        first = tuple(int(axis[0]) for axis in np.nonzero(missing))
        count = missing.size - int(np.count_nonzero(missing))
        return f"{count} of {missing.size} elements written, the first unwritten is {list(first)}"
    edges = np.flatnonzero(np.diff(np.concatenate(([0], rows.view(np.int8), [0]))))
    ranges = [f"{start}..{end - 1}" for start, end in zip(edges[::2], edges[1::2], strict=True)]
    more = f" and {len(ranges) - 3} more ranges" if len(ranges) > 3 else ""
    return f"rows {', '.join(ranges[:3])}{more} of {shape[0]} written"


def _digits(tensor: StridedView) -> Array:
    """Return the elements, in full precision as float32."""
    twin = tensor.storage.twin
    return tensor.array if twin is None or is_reinterpreting(tensor) else wide_window(tensor, twin)[0]


def _decided_by(tensor: StridedView) -> str:
    """Return the index or register that decides the place of a view with a run-time address."""
    rows, index, terms = (getattr(tensor, name, None) for name in ("rows", "index", "terms"))
    if rows is not None and index is not None:
        return f": rows of {named(rows)} chosen by {named(index)}"
    sources = [repr(each.source) if not hasattr(each.source, "storage") else named(each.source) for each in terms or ()]
    return f", moved by {' and '.join(sources)}" if sources else ", which reaches outside of its storage"
