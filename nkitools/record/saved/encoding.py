"""Values as JSON: arrays by their bytes, containers by their kind, dataclasses by their fields.

An array is ``{"array": {"dtype", "shape", "at", "bytes"}}``: so many bytes from ``at`` on of all bytes of the file, its
elements in C order, little-endian, so that every bit of a NaN is kept. ``"packing": "zlib"`` means that they were
compressed (RFC 1950). ``dtype`` is the name that NumPy or ml_dtypes give it, or ``{"fields": [[name, dtype], ...]}`` of
a structured one (packed x4 types are that). ``mask``, of masked arrays, is an array of booleans. In JSON without a file
(`Run.to_json`, and files of version 1) the bytes are ``data``, base64.

Other values are as JSON has them, or ``{"tuple": [...]}``, ``{"list": [...]}``, ``{"dict": [[key, value], ...]}``,
``{"float": "nan"}``, ``{"fields": [[name, value], ...], "of": class}`` for dataclasses and other containers of arrays,
and ``{"text": ..., "of": class}`` for a value without a form here, whose text alone is kept (`Described`).
"""

from __future__ import annotations

import dataclasses
import math
import sys
import zlib
from base64 import b64encode
from collections.abc import Hashable, Iterator, Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any, cast

import ml_dtypes
import numpy as np

from nkitools.chip.dtypes import DType
from nkitools.chip.memory_region import MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.record.value_fields import fields_of

_SAMPLE = 1 << 16  # bytes that are compressed to see whether it is worth while
_WORTH = 0.9


@dataclasses.dataclass(frozen=True)
class Described:
    """The stand-in for a value that has not been kept: its class and its text."""

    of: str
    text: str


class Writer:
    """Values become JSON; the bytes of their arrays go into ``beside``, or inside of the JSON if it is ``inline``."""

    def __init__(self, *, compress: bool, inline: bool = False) -> None:
        self.compress, self.inline = compress, inline
        self.beside = bytearray()

    def array(self, array: Array) -> dict[str, Any]:
        """Return an array (of any shape, masked too) without the key ``array``; TypeError for texts and objects."""
        if not _has_form(array.dtype):
            raise TypeError(f"an array of {array.dtype} has no saved form; convert it to numbers")
        plain = np.asarray(np.ma.getdata(array))
        plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
        encoded = {"dtype": _dtype_name(plain.dtype), "shape": list(plain.shape), **self._placed(plain.tobytes())}
        if isinstance(array, np.ma.MaskedArray):
            encoded["mask"] = self.array(np.ma.getmaskarray(array))
        return encoded

    def columns(self, columns: Mapping[str, Array]) -> dict[str, Any]:
        """Return columns of integers by their names, in as few bytes each as they need; without the key ``array``."""
        return {name: self.array(_narrowed(np.asarray(each))) for name, each in columns.items()}

    def _placed(self, data: bytes) -> dict[str, Any]:
        """Store the bytes of an array, and return the JSON that refers to them."""
        packed = _packed(data) if self.compress else None
        placed: dict[str, Any] = {} if packed is None else {"packing": "zlib"}
        data = data if packed is None else packed
        if self.inline:
            return placed | {"data": b64encode(data).decode("ascii")}
        self.beside += data
        return placed | {"at": len(self.beside) - len(data), "bytes": len(data)}

    def value(self, value: Any) -> Any:
        """Return a value of any kind: see above."""
        if value is None or type(value) is int or isinstance(value, (bool, str)):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": str(value)}
        array = as_array(value)
        if array is not None and _has_form(array.dtype):
            return {"array": self.array(array)}
        if type(value) in (tuple, list):
            return {type(value).__name__: [self.value(each) for each in value]}
        if isinstance(value, dict):
            return {"dict": [[self.value(key), self.value(each)] for key, each in value.items()]}
        of, fields = f"{type(value).__module__}.{type(value).__qualname__}", fields_of(value)
        if fields is None:
            return {"text": repr(value), "of": of}
        return {"fields": [[name, self.value(each)] for name, each in fields.items()], "of": of}

    def field(self, value: Any) -> Any:
        """Return a value of a field, which the field's hint decodes: tuples are lists, arrays and numbers as above.

        A dataclass is an object with the fields of its constructor.
        """
        if value is None or type(value) in (bool, int, str):
            return value
        if isinstance(value, (np.integer, np.bool_)):
            return value.item()
        if isinstance(value, (MemoryRegion, DType)):
            return value.value if isinstance(value, MemoryRegion) else value.name
        if isinstance(value, np.ndarray):
            return {"array": self.array(value)}
        if isinstance(value, (float, np.floating)):
            return self.value(float(value))
        if isinstance(value, (tuple, list)):
            return [self.field(each) for each in value]
        if isinstance(value, Mapping):
            return {str(key): self.field(each) for key, each in value.items()}
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {name: self.field(getattr(value, name)) for name in field_names(cast("Hashable", type(value)))}
        raise TypeError(f"{type(value).__name__} has no saved form")


def _narrowed(values: Array) -> Array:
    ends = (int(values.min()), int(values.max())) if values.size else (0,)
    return values.astype(np.result_type(*(np.min_scalar_type(min(end, -1 - end)) for end in ends)))


def _packed(data: bytes) -> bytes | None:
    """Return ``data`` compressed; None if that saves too little."""
    if len(data) > 2 * _SAMPLE:
        sample = data[len(data) // 2 :][:_SAMPLE]
        if len(zlib.compress(sample, 1)) > _WORTH * len(sample):
            return None
    packed = zlib.compress(data, 1)
    return packed if len(packed) < _WORTH * len(data) else None


def _has_form(dtype: np.dtype[Any]) -> bool:
    try:
        return dtype_of(_dtype_name(dtype)) == dtype.newbyteorder("<")
    except ValueError:
        return False


def _dtype_name(dtype: np.dtype[Any]) -> Any:
    if dtype.names:
        return {"fields": [[name, _dtype_name(dtype[name])] for name in dtype.names]}
    return dtype.name


def dtype_of(name: Any) -> np.dtype[Any]:
    """Return the dtype that a file calls ``name``. ValueError for objects and unknown names."""
    if isinstance(name, Mapping):
        return np.dtype([(str(field), dtype_of(inner)) for field, inner in name["fields"]])
    kind = getattr(ml_dtypes, name, None)
    try:
        found: np.dtype[Any] = np.dtype(kind if isinstance(kind, type) and issubclass(kind, np.generic) else name)
    except TypeError:
        raise ValueError(f"unknown dtype {name!r}") from None
    if found.hasobject or found.names or not found.itemsize:
        raise ValueError(f"unknown dtype {name!r}")
    return found.newbyteorder("<")


def as_array(value: Any) -> Array | None:
    """Return a NumPy, torch or jax array, or a NumPy number, as a NumPy array."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, np.generic):
        return np.asarray(value)
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if torch is not None and isinstance(value, torch.Tensor):
        return _torch_array(value.detach().cpu())
    if jax is not None and isinstance(value, jax.Array):
        return np.asarray(value)
    return None


def _torch_array(tensor: Any) -> Array:
    """Return a torch tensor of any dtype as an array: by its bits if NumPy alone lacks the dtype."""
    import torch

    tensor = tensor.contiguous()
    kind = getattr(ml_dtypes, str(tensor.dtype).removeprefix("torch."), None)
    if kind is None:
        return np.asarray(tensor.numpy())
    bits = tensor.view(torch.int16 if tensor.element_size() == 2 else torch.uint8)
    return np.asarray(bits.numpy().view(kind))


def leaves(value: Any, path: str = "outputs") -> Iterator[tuple[str, Any]]:
    """Yield the parts of a value that are no containers, with their places (``outputs[0].mean``); arrays as NumPy's."""
    array = as_array(value)
    if array is not None:
        yield path, array
    elif type(value) in (tuple, list):
        for number, each in enumerate(value):
            yield from leaves(each, f"{path}[{number}]")
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from leaves(each, f"{path}[{key!r}]")
    else:
        fields = vars(value) if isinstance(value, SimpleNamespace) else fields_of(value)
        if fields is None or isinstance(value, Described):
            yield path, value
        else:
            for name, each in fields.items():
                yield from leaves(each, f"{path}.{name}")


@cache
def field_names(kind: Hashable) -> tuple[str, ...]:
    """Return the fields of a dataclass that its constructor takes."""
    return tuple(field.name for field in dataclasses.fields(cast("Any", kind)) if field.init)
