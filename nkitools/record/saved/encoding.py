"""Values as JSON and back: arrays by their bytes, containers by their kind, dataclasses by their fields.

An array is ``{"array": {"dtype", "shape", "data"}}``. ``dtype`` is the name that NumPy or ml_dtypes give it, or
``{"fields": [[name, dtype], ...]}`` of a structured one (packed x4 types are that); ``data`` is the base64 of its
elements in C order, little-endian, so that every bit of a NaN is kept. ``"packing": "zlib"`` means that the bytes were
compressed first (RFC 1950); ``mask``, of masked arrays, is an array of booleans. Other values are as JSON has them, or
``{"tuple": [...]}``, ``{"list": [...]}``, ``{"dict": [[key, value], ...]}``, ``{"float": "nan"}``, ``{"fields": [[name,
value], ...], "of": class}`` for dataclasses and other containers of arrays, and ``{"text": ..., "of": class}`` for a
value without a form here, whose text alone is kept (`Described`).
"""

from __future__ import annotations

import dataclasses
import math
import sys
import zlib
from base64 import b64decode, b64encode
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import ml_dtypes
import numpy as np

from nkitools.chip.dtypes import DType, as_dtype
from nkitools.chip.layout import Layout, layout_of
from nkitools.chip.memory_region import MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.record.value_fields import fields_of

_T = TypeVar("_T")

_SAMPLE = 1 << 16  # bytes that are compressed to see whether it is worth while
_WORTH = 0.9

_GIB = 1 << 30
MOST_BYTES = 4 * _GIB  # that the arrays of one saved run may take, unless a caller says another number
_LEFT: ContextVar[list[int] | None] = ContextVar("nkitools_bytes_left", default=None)


@contextmanager
def limited_arrays(most: int) -> Iterator[None]:
    """Refuse (ValueError) to decode arrays of more than ``most`` bytes in all inside of a block."""
    token = _LEFT.set([most, most])
    try:
        yield
    finally:
        _LEFT.reset(token)


def _take(nbytes: int) -> None:
    """Count the bytes of an array before there is one."""
    left = _LEFT.get()
    if left is None:
        return
    left[0] -= nbytes
    if left[0] < 0:
        most = f"{left[1] / _GIB:.3g} GiB"
        raise ValueError(f"its arrays take more than {most}; nkitools.load_run(path, most_bytes=...) reads larger ones")


@dataclasses.dataclass(frozen=True)
class Described:
    """The stand-in for a value that has not been kept: its class and its text."""

    of: str
    text: str


@dataclasses.dataclass(frozen=True, eq=False)
class Column:
    """A column of integers: int64, in a file in as few bytes each as they need and without the key ``array``."""

    values: Array


def encoded_array(array: Array, *, compress: bool) -> dict[str, Any]:
    """Return an array (of any shape, masked too) without the key ``array``; TypeError for texts and objects."""
    if not _has_form(array.dtype):
        raise TypeError(f"an array of {array.dtype} has no saved form; convert it to numbers")
    mask = np.ma.getmaskarray(array) if isinstance(array, np.ma.MaskedArray) else None
    plain = np.asarray(np.ma.getdata(array))
    if plain.dtype.newbyteorder("<") != plain.dtype:
        plain = plain.astype(plain.dtype.newbyteorder("<"))
    data = plain.tobytes()
    encoded: dict[str, Any] = {"dtype": _dtype_name(plain.dtype), "shape": list(plain.shape)}
    if compress and data:
        packed = _compressed(data)
        if packed is not None:
            encoded["packing"] = "zlib"
            data = packed
    encoded["data"] = b64encode(data).decode("ascii")
    if mask is not None:
        encoded["mask"] = encoded_array(mask, compress=compress)
    return encoded


def decoded_array(encoded: Mapping[str, Any]) -> Array:
    """Return the array, writable and of its own memory. ValueError where bytes and shape do not fit."""
    dtype = _dtype(encoded["dtype"])
    shape = tuple(_size(size) for size in encoded["shape"])
    nbytes = math.prod(shape) * dtype.itemsize
    _take(nbytes)
    data = b64decode(encoded["data"], validate=True)
    if encoded.get("packing") == "zlib":
        # Never more than the shape says, whatever the bytes would unfold to.
        try:
            data = zlib.decompressobj().decompress(data, nbytes + 1)
        except zlib.error as error:
            raise ValueError(f"an array of shape {list(shape)} cannot be unpacked: {error}") from None
    elif "packing" in encoded:
        raise ValueError(f"unknown packing {encoded['packing']!r}")
    if len(data) != nbytes:
        raise ValueError(f"an array of shape {list(shape)} and {dtype} has {nbytes} bytes, there are {len(data)}")
    array = np.frombuffer(bytearray(data), dtype).reshape(shape)
    if "mask" in encoded:
        return np.ma.MaskedArray(array, mask=decoded_array(encoded["mask"]))
    return array


def _compressed(data: bytes) -> bytes | None:
    """Return ``data`` compressed; None where that is not worth while."""
    if len(data) > 2 * _SAMPLE:
        middle = len(data) // 2
        sample = data[middle : middle + _SAMPLE]
        if len(zlib.compress(sample, 1)) > _WORTH * len(sample):
            return None
    packed = zlib.compress(data, 1)
    return packed if len(packed) < _WORTH * len(data) else None


def _has_form(dtype: np.dtype[Any]) -> bool:
    try:
        return _dtype(_dtype_name(dtype)) == dtype.newbyteorder("<")
    except ValueError:
        return False


def _dtype_name(dtype: np.dtype[Any]) -> Any:
    if dtype.names:
        fields = [[name, _dtype_name(dtype[name])] for name in dtype.names]
        return {"fields": fields}
    return dtype.name


def _dtype(name: Any) -> np.dtype[Any]:
    if isinstance(name, Mapping):
        return np.dtype([(str(field), _dtype(inner)) for field, inner in name["fields"]])
    kind = getattr(ml_dtypes, name, None)
    try:
        found: np.dtype[Any] = np.dtype(kind if isinstance(kind, type) and issubclass(kind, np.generic) else name)
    except TypeError:
        raise ValueError(f"unknown dtype {name!r}") from None
    if found.hasobject or found.names or not found.itemsize:
        raise ValueError(f"unknown dtype {name!r}")
    return found.newbyteorder("<")


def _size(size: Any) -> int:
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise ValueError(f"{size!r} is no size")
    return size


def encoded_value(value: Any, *, compress: bool) -> Any:
    """Return a value of any kind: see above."""
    if value is None or isinstance(value, (bool, str)) or (isinstance(value, int) and type(value) is int):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": str(value)}
    array = as_array(value)
    if array is not None and _has_form(array.dtype):
        return {"array": encoded_array(array, compress=compress)}
    return _encoded_container(value, compress=compress)


def _encoded_container(value: Any, *, compress: bool) -> Any:
    encoded, of = partial(encoded_value, compress=compress), f"{type(value).__module__}.{type(value).__qualname__}"
    if type(value) in (tuple, list):
        return {type(value).__name__: [encoded(each) for each in value]}
    if isinstance(value, dict):
        return {"dict": [[encoded(key), encoded(each)] for key, each in value.items()]}
    fields = fields_of(value)
    if fields is None:
        return {"text": repr(value), "of": of}
    return {"fields": [[name, encoded(each)] for name, each in fields.items()], "of": of}


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
    """Return a torch tensor of any dtype: through its bits where NumPy alone has no such dtype."""
    import torch

    tensor = tensor.contiguous()
    kind = getattr(ml_dtypes, str(tensor.dtype).removeprefix("torch."), None)
    if kind is None:
        return np.asarray(tensor.numpy())
    bits = tensor.view(torch.int16 if tensor.element_size() == 2 else torch.uint8)
    return np.asarray(bits.numpy().view(kind))


def decoded_value(encoded: Any) -> Any:
    """Return what `encoded_value` encoded: frameworks' arrays as NumPy's, other objects as namespaces or texts."""
    if isinstance(encoded, list):
        raise ValueError("a list without its kind")
    if not isinstance(encoded, Mapping):
        return encoded
    if "array" in encoded:
        return decoded_array(encoded["array"])
    if "float" in encoded:
        return float(encoded["float"])
    if "tuple" in encoded:
        return tuple(decoded_value(each) for each in encoded["tuple"])
    if "list" in encoded:
        return [decoded_value(each) for each in encoded["list"]]
    if "dict" in encoded:
        return {decoded_value(key): decoded_value(each) for key, each in encoded["dict"]}
    if "fields" in encoded:
        return SimpleNamespace(**{str(name): decoded_value(each) for name, each in encoded["fields"]})
    return Described(str(encoded["of"]), str(encoded["text"]))


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


def encoded_field(value: Any, *, compress: bool) -> Any:
    """Return a value of a field, which the hint of the field decodes: tuples are lists, arrays and numbers as above.

    A dataclass is an object with the fields of its constructor.
    """
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, (np.integer, np.bool_)):
        return value.item()
    if isinstance(value, (MemoryRegion, DType)):
        return value.value if isinstance(value, MemoryRegion) else value.name
    if isinstance(value, Column):
        return encoded_array(_narrowed(value.values), compress=compress)
    if isinstance(value, np.ndarray):
        return {"array": encoded_array(value, compress=compress)}
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return number if math.isfinite(number) else {"float": str(number)}
    if isinstance(value, (tuple, list)):
        return [encoded_field(each, compress=compress) for each in value]
    if isinstance(value, Mapping):
        return {str(key): encoded_field(each, compress=compress) for key, each in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = field_names(cast("Hashable", type(value)))
        return {name: encoded_field(getattr(value, name), compress=compress) for name in names}
    raise TypeError(f"{type(value).__name__} has no saved form")


def _narrowed(values: Array) -> Array:
    """Return integers in as few bytes each as they need."""
    for kind in (np.int8, np.int16, np.int32):
        if not values.size or (np.iinfo(kind).min <= values.min() and values.max() <= np.iinfo(kind).max):
            return values.astype(kind)
    return values.astype(np.int64)


def decoded_fields(kind: type[_T], encoded: Mapping[str, Any]) -> _T:
    """Return the dataclass again; fields that this version does not know are left out."""
    key = cast("Hashable", kind)
    hints = _hints(key)
    known = {name: decoded_field(hints[name], encoded[name]) for name in field_names(key) if name in encoded}
    return cast("_T", _layout(**known)) if kind is Layout else kind(**known)


def _layout(shape: tuple[int, ...], strides: tuple[int, ...], **others: Any) -> Layout:
    if len(shape) != len(strides):
        raise ValueError("a layout has as many strides as sizes")
    return layout_of(shape, strides, **others)


@cache
def _hints(kind: Hashable) -> dict[str, Any]:
    return get_type_hints(kind)


def decoded_field(hint: Any, encoded: Any) -> Any:
    """Return the value of a field from what `encoded_field` made of it."""
    inner = [each for each in get_args(hint) if each not in (NoneType, Ellipsis)]
    if get_origin(hint) in (Union, UnionType):
        return None if encoded is None else decoded_field(inner[0] if len(inner) == 1 else None, encoded)
    if hint in (int, bool, str) and not isinstance(encoded, hint):
        raise ValueError(f"{encoded!r} is no {hint.__name__}")
    if isinstance(encoded, list):
        return _decoded_list(hint, inner, encoded)
    if hint in (MemoryRegion, DType):
        return MemoryRegion(encoded) if hint is MemoryRegion else as_dtype(encoded)
    if not isinstance(encoded, Mapping):
        return encoded
    if hint is Column:
        column = decoded_array(encoded)
        _take(8 * column.size)
        return Column(column.astype(np.int64))
    if encoded.keys() == {"array"} and isinstance(encoded["array"], Mapping):
        return decoded_array(encoded["array"])
    if encoded.keys() == {"float"} and isinstance(encoded["float"], str):
        return float(encoded["float"])
    if dataclasses.is_dataclass(hint):
        return decoded_fields(cast("type[Any]", hint), encoded)
    return {name: decoded_field(inner[-1] if inner else None, each) for name, each in encoded.items()}


def _decoded_list(hint: Any, inner: list[Any], encoded: list[Any]) -> Any:
    """Return a named tuple, a tuple with a hint for each element, a list, or a tuple of any length."""
    if hasattr(hint, "_make"):
        return hint._make(map(decoded_field, _hints(hint).values(), encoded))
    if get_origin(hint) is tuple and Ellipsis not in get_args(hint):
        return tuple(map(decoded_field, inner, encoded))
    several = [decoded_field(inner[0] if inner else None, each) for each in encoded]
    return several if get_origin(hint) is list else tuple(several)
