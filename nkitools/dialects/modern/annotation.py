"""``nl.ndarray``: the function that makes tensors, and the name that kernels annotate tensors with."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

from nkitools.chip.core import CORE
from nkitools.chip.memory_region import MemoryRegion
from nkitools.chip.tensor import NkiTensor
from nkitools.language.repeated_tiles import tile_again

_SBUF = MemoryRegion.sbuf
_NOT_GIVEN: Any = object()


class _TensorFunction(type):
    """A class that is called like a function: ``nl.ndarray | None`` and isinstance need a class."""

    function: Callable[..., NkiTensor]

    def __call__(
        cls,
        shape: Any = _NOT_GIVEN,
        dtype: Any = _NOT_GIVEN,
        buffer: Any = _SBUF,
        name: Any = "",
        address: Any = None,
        *more: Any,
        **unknown: Any,
    ) -> Any:
        core = CORE.get()
        if core is not None and address is None and name == "" and not (more or unknown) and shape.__class__ is tuple:
            try:
                tile = tile_again(core, sys._getframe(1), shape, dtype, buffer)
            except TypeError:  # a size that no key has
                tile = None
            if tile is not None:
                return tile
        if shape.__class__ is int and dtype.__class__ is int and not more:
            return cls.function(shape, dtype, buffer)  # a shape in pieces, which it refuses
        if more:
            return cls.function(shape, dtype, buffer, name, address, *more, **unknown)
        required = {"shape": shape, "dtype": dtype}
        given = {key: value for key, value in required.items() if value is not _NOT_GIVEN}
        return cls.function(**given, buffer=buffer, name=name, address=address, **unknown)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, NkiTensor)

    def __repr__(cls) -> str:
        return f"nl.{cls.__name__}"


def annotation_of(function: Callable[..., NkiTensor]) -> Any:
    """Return a function that makes tensors, as what also stands for them in annotations and in isinstance."""
    name = function.__name__
    attributes = {
        "__doc__": function.__doc__,
        "__module__": function.__module__,
        "__qualname__": name,
        "__signature__": inspect.signature(function),
        "__wrapped__": staticmethod(function),
        "function": staticmethod(function),
    }
    return _TensorFunction(name, (), attributes)
