"""Reads values from the JSON that `nkitools.record.saved.encoding` makes; ValueError for JSON of another form."""

from __future__ import annotations

import dataclasses
import math
import zlib
from base64 import b64decode
from collections.abc import Hashable, Mapping
from functools import cache
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from nkitools.chip.dtypes import DType, as_dtype
from nkitools.chip.layout import Layout, layout_of
from nkitools.chip.memory_region import MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.record.saved.encoding import Described, dtype_of, field_names

_T = TypeVar("_T")

GIB = 1 << 30
MOST_BYTES = 4 * GIB  # that the arrays of one saved run may take, unless a caller says another number


class Reader:
    """JSON becomes values; the bytes of arrays come from ``beside``, and are at most ``most`` in all."""

    def __init__(self, beside: memoryview | None = None, most: int = MOST_BYTES) -> None:
        self.beside, self.most, self.left = beside or memoryview(b""), most, most

    def take(self, nbytes: int) -> None:
        """Count bytes before there are any."""
        self.left -= nbytes
        if self.left < 0:
            most = f"{self.most / GIB:.3g} GiB"
            raise ValueError(
                f"its arrays take more than {most}; nkitools.load_run(path, most_bytes=...) reads larger ones"
            )

    def array(self, encoded: Mapping[str, Any]) -> Array:
        """Return the array, writable and in memory of its own. ValueError if bytes and shape do not fit."""
        dtype = dtype_of(encoded["dtype"])
        shape = tuple(_size(size) for size in encoded["shape"])
        nbytes = math.prod(shape) * dtype.itemsize
        self.take(nbytes)
        if "data" in encoded:
            data: bytes | memoryview = b64decode(encoded["data"], validate=True)
        else:
            data = self.beside[_size(encoded["at"]) :][: _size(encoded["bytes"])]
        if "packing" in encoded:
            data = _unpacked(data, nbytes, encoded["packing"])
        if len(data) != nbytes:
            raise ValueError(f"an array of shape {list(shape)} and {dtype} has {nbytes} bytes, there are {len(data)}")
        array = np.frombuffer(bytearray(data), dtype).reshape(shape)
        if "mask" in encoded:
            return np.ma.MaskedArray(array, mask=self.array(encoded["mask"]))
        return array

    def value(self, encoded: Any) -> Any:
        """Return a value of any kind: frameworks' arrays as NumPy's, other objects as namespaces or texts."""
        if isinstance(encoded, list):
            raise ValueError("a list without its kind")
        if not isinstance(encoded, Mapping):
            return encoded
        if "array" in encoded:
            return self.array(encoded["array"])
        if "float" in encoded:
            return float(encoded["float"])
        if "tuple" in encoded:
            return tuple(self.value(each) for each in encoded["tuple"])
        if "list" in encoded:
            return [self.value(each) for each in encoded["list"]]
        if "dict" in encoded:
            return {self.value(key): self.value(each) for key, each in encoded["dict"]}
        if "fields" in encoded:
            return SimpleNamespace(**{str(name): self.value(each) for name, each in encoded["fields"]})
        return Described(str(encoded["of"]), str(encoded["text"]))

    def fields(self, kind: type[_T], encoded: Mapping[str, Any]) -> _T:
        """Return a dataclass; fields that this version does not know are left out."""
        key = cast("Hashable", kind)
        hints = _hints(key)
        known = {name: self.field(hints[name], encoded[name]) for name in field_names(key) if name in encoded}
        return cast("_T", _layout(**known)) if kind is Layout else kind(**known)

    def column(self, encoded: Mapping[str, Any]) -> Array:
        """Return a column of integers."""
        column = self.array(encoded)
        self.take(8 * column.size)
        return column.astype(np.int64)

    def columns(self, encoded: Mapping[str, Mapping[str, Any]]) -> dict[str, Array]:
        """Return columns of integers by their names."""
        return {name: self.column(each) for name, each in encoded.items()}

    def field(self, hint: Any, encoded: Any) -> Any:
        """Return the value of a field with that hint."""
        inner = [each for each in get_args(hint) if each not in (NoneType, Ellipsis)]
        if get_origin(hint) in (Union, UnionType):
            return None if encoded is None else self.field(inner[0] if len(inner) == 1 else None, encoded)
        if hint in (int, bool, str) and not isinstance(encoded, hint):
            raise ValueError(f"{encoded!r} is no {hint.__name__}")
        if isinstance(encoded, list):
            return self._list(hint, inner, encoded)
        if hint in (MemoryRegion, DType):
            return MemoryRegion(encoded) if hint is MemoryRegion else as_dtype(encoded)
        if not isinstance(encoded, Mapping):
            return encoded
        if encoded.keys() == {"array"} and isinstance(encoded["array"], Mapping):
            return self.array(encoded["array"])
        if encoded.keys() == {"float"} and isinstance(encoded["float"], str):
            return float(encoded["float"])
        if dataclasses.is_dataclass(hint):
            return self.fields(cast("type[Any]", hint), encoded)
        return {name: self.field(inner[-1] if inner else None, each) for name, each in encoded.items()}

    def _list(self, hint: Any, inner: list[Any], encoded: list[Any]) -> Any:
        """Return a named tuple, a tuple with a hint for each element, a list, or a tuple of any length."""
        if hasattr(hint, "_make"):
            return hint._make(map(self.field, _hints(hint).values(), encoded))
        if get_origin(hint) is tuple and Ellipsis not in get_args(hint):
            return tuple(map(self.field, inner, encoded))
        several = [self.field(inner[0] if inner else None, each) for each in encoded]
        return several if get_origin(hint) is list else tuple(several)


def _unpacked(data: bytes | memoryview, nbytes: int, packing: str) -> bytes:
    """Return compressed bytes as they were: at most one more than ``nbytes``, whatever they unfold to."""
    if packing != "zlib":
        raise ValueError(f"unknown packing {packing!r}")
    try:
        return zlib.decompressobj().decompress(data, nbytes + 1)
    except zlib.error as error:
        raise ValueError(f"an array of {nbytes} bytes cannot be unpacked: {error}") from None


def _size(size: Any) -> int:
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise ValueError(f"{size!r} is no size")
    return size


def _layout(shape: tuple[int, ...], strides: tuple[int, ...], **others: Any) -> Layout:
    if len(shape) != len(strides):
        raise ValueError("a layout has as many strides as sizes")
    return layout_of(shape, strides, **others)


@cache
def _hints(kind: Hashable) -> dict[str, Any]:
    return get_type_hints(kind)
