"""The key of values that hold data: numbers, texts, containers and arrays."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from types import CodeType, MappingProxyType, SimpleNamespace
from typing import Any, Self

import numpy as np

MOST_BYTES = 256 << 20  # of arrays and texts; to read more takes longer than it may save
_PLAIN = (int, float, complex, bool, type(None), type(Ellipsis), type(NotImplemented), range, slice)
_SEQUENCES = (list, tuple, deque)
_SETS = (set, frozenset)
_SHARED_BY_CHANCE = (tuple, frozenset, CodeType)  # constants: Python may have one object or two that are equal
_BUFFERS = ("bytearray", "memoryview", "array")


@dataclass(frozen=True)
class Content:
    """The key of values.

    ``code``: of their code alone, with its lines. ``unknown``: why the key does not cover them; '' if it does.
    """

    key: str
    code: str
    unknown: str = ""


class DataWalk:
    """The key of data while it is computed. ``what``, in its methods, names a value as the subject of a sentence."""

    def __init__(self, most: int) -> None:
        self._whole = blake2b(digest_size=16)
        self._code = blake2b(digest_size=16)
        self._seen: dict[int, tuple[int, Any]] = {}  # values are kept alive, so that no other value gets their ids
        self._left = most
        self._unknown = ""
        self._has_data = False

    @property
    def content(self) -> Content:
        """The key of the values that were added, and the reason why one of them cannot be known."""
        return Content(self._whole.hexdigest(), self._code.hexdigest(), self._unknown)

    def refuse(self, reason: str) -> None:
        """Note why a value cannot be known; the first reason is kept."""
        self._unknown = self._unknown or reason
        self._say("unknown", reason)

    def add(self, value: Any, what: str) -> None:
        """Add a value to the key."""
        if type(value) in _PLAIN:
            self._say(type(value).__name__, repr(value))
        elif type(value) is str:
            self._bytes("str", value.encode("utf-8", "surrogatepass"), what)
        elif type(value) is bytes:
            self._bytes("bytes", value, what)
        elif id(value) in self._seen:
            self._say("again", str(self._seen[id(value)][0]))
        else:
            if type(value) not in _SHARED_BY_CHANCE:
                self._seen[id(value)] = (len(self._seen), value)
            if not (self._add_container(value, what) or self._add_array(value, what)):
                self._add_other(value, what)

    def _add_other(self, value: Any, what: str) -> None:
        raise NotImplementedError

    def _add_parts(self, value: Any, what: str) -> None:
        """Add the class and the attributes of an object, beside its data."""
        raise NotImplementedError

    def _say(self, *words: str) -> None:
        for word in words:
            data = word.encode("utf-8", "surrogatepass")
            self._whole.update(len(data).to_bytes(8, "little"))
            self._whole.update(data)

    def _bytes(self, kind: str, data: Any, what: str) -> None:
        size = memoryview(data).nbytes
        self._left -= size
        if self._left < 0:
            self.refuse(f"{what} has more than {MOST_BYTES >> 20} MB of values")
            return
        self._say(kind, str(size))
        self._whole.update(data)

    def _add_container(self, value: Any, what: str) -> bool:
        kind = type(value)
        if kind in _SEQUENCES:
            self._say(kind.__name__, str(len(value)), str(getattr(value, "maxlen", "")))
            for each in value:
                self.add(each, what)
        elif kind in (dict, MappingProxyType):
            self._mapping(kind.__name__, value.items(), what)
        elif kind in _SETS:
            self._say(kind.__name__, *sorted(self._apart(each, what).content.key for each in value))
        elif kind is SimpleNamespace:
            self._mapping(kind.__name__, sorted(vars(value).items()), what)
        else:
            return False
        return True

    def _mapping(self, kind: str, items: Iterable[tuple[Any, Any]], what: str) -> None:
        pairs = list(items)
        self._say(kind, str(len(pairs)))
        for key, each in pairs:
            self.add(key, what)
            self.add(each, what)

    def _apart(self, value: Any, what: str) -> Self:
        """Compute the key of a value by itself, such as an element of a set, which has no order; return its walk."""
        walk = type(self)(self._left)
        walk.add(value, what)
        self._left = walk._left
        self._code.update(walk._code.digest())
        self._has_data = self._has_data or walk._has_data
        if walk._unknown:
            self.refuse(walk._unknown)
        return walk

    def _add_array(self, value: Any, what: str) -> bool:
        module = str(type(value).__module__)
        if isinstance(value, np.generic) and not isinstance(value, np.void):
            self._say(type(value).__name__)
            self._array(np.asarray(value), what)
        elif isinstance(value, (np.ndarray, np.void)):
            self._array(np.asarray(value), what)
            if type(value) not in (np.ndarray, np.void):
                self._add_parts(value, what)
        elif isinstance(value, np.dtype):
            self._say("dtype", _dtype_text(value), value.type.__name__)
        elif module in ("builtins", "array") and type(value).__name__ in _BUFFERS:
            view = memoryview(value)
            self._say(type(value).__name__, view.format, str(view.shape))
            self._bytes("buffer", view.tobytes(), what)
        elif module.startswith("torch") and hasattr(value, "untyped_storage"):
            self._torch(value, what)
        elif module.startswith("jax") and hasattr(value, "addressable_shards"):
            self._say("jax")
            self._array(np.asarray(value), what)
        else:
            return False
        return True

    def _array(self, value: Any, what: str) -> None:
        self._say("array", _dtype_text(value.dtype), str(value.shape))
        if value.dtype.hasobject:
            self._mapping("objects", enumerate(value.ravel().tolist()), what)
        elif value.nbytes > self._left:
            self._left = -1
            self.refuse(f"{what} has more than {MOST_BYTES >> 20} MB of values")
        else:
            self._bytes("elements", np.ascontiguousarray(value).reshape(-1).view(np.uint8), what)

    def _torch(self, value: Any, what: str) -> None:
        import torch

        self._say("torch", str(value.dtype), str(tuple(value.shape)), str(value.requires_grad), type(value).__name__)
        try:
            plain = value.detach().resolve_conj().resolve_neg().cpu().contiguous().reshape(-1)
            self._array(plain.view(torch.uint8).numpy(), what)
        except (RuntimeError, TypeError) as error:
            self.refuse(f"{what} is a tensor whose values cannot be read: {error}")


def _dtype_text(dtype: Any) -> str:
    return str(dtype.descr if dtype.names else dtype)
