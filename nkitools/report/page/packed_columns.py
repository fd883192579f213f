"""The binary part of a page: columns of numbers, each compressed, one after the other.

A column of integers is stored as differences of neighbours, and every column by planes of bytes: the first byte of each
element, then the second of each, ... So repeating turns take almost no space. The page's script undoes it.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from nkitools.chip.numerics import Array

_LEVEL = 6
_GROUP = 12  # each column begins at whole groups of base64 characters


def planes(values: Array) -> bytes:
    """Return the bytes of an array by planes."""
    raw = np.ascontiguousarray(values).reshape(-1)
    return raw.view(np.uint8).reshape(raw.size, raw.itemsize).T.tobytes() if raw.size else b""


def packed(columns: Mapping[str, Array]) -> tuple[dict[str, list[Any]], bytes]:
    """Return the directory of the columns and their bytes.

    The directory has for each name its form, number of elements, first byte and number of bytes.
    Forms: ``i1``, ``i2`` and ``i4`` (differences of so many bytes), ``f4``, ``f8`` and ``u1``.
    """
    directory: dict[str, list[Any]] = {}
    parts: list[bytes] = []
    place = 0
    for name, column in columns.items():
        form, raw = _formed(column)
        data = zlib.compress(raw, _LEVEL)
        directory[name] = [form, int(column.size), place, len(data)]
        parts.append(data + bytes(-len(data) % _GROUP))
        place += len(parts[-1])
    return directory, b"".join(parts)


def _formed(column: Array) -> tuple[str, bytes]:
    values = np.asarray(column)
    if values.dtype == np.uint8:
        return "u1", values.tobytes()
    if values.dtype == np.float32:
        return "f4", planes(values.astype("<f4"))
    if values.dtype.kind == "f" or (values.size and np.abs(values).max() >= 1 << 31):
        return "f8", planes(values.astype("<f8"))
    steps = np.diff(values.astype(np.int64).reshape(-1), prepend=0)
    least, most = int(steps.min(initial=0)), int(steps.max(initial=0))
    size = next((size for size in (1, 2) if -1 << 8 * size - 1 <= least and most < 1 << 8 * size - 1), 4)
    return f"i{size}", planes(steps.astype(f"<i{size}"))
