"""``nl.ndarray``: the function that makes tensors, and the name that kernels annotate tensors with."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from nkitools.chip.core import CORE
from nkitools.chip.tensor import NkiTensor
from nkitools.language.repeated_tiles import keep_tile, tile_again


class _TensorFunction(type):
    """A class that is called like a function: ``nl.ndarray | None`` and isinstance need a class."""

    function: Callable[..., NkiTensor]

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        core = CORE.get()
        if core is None:
            return cls.function(*args, **kwargs)
        try:
            tile = tile_again(core, *args, **kwargs)
        except TypeError:  # a call that the usual way refuses, or a shape that is a list
            tile = None
        if tile is None:
            tile = cls.function(*args, **kwargs)
            keep_tile(core, tile, *args, **kwargs)
        return tile

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
