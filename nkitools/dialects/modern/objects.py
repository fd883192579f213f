"""``nl.NKIObject``: the base class of what kernels carry their settings in."""

from __future__ import annotations

import inspect
from typing import Any

_METHODS = (property, classmethod, staticmethod)


class NKIObject:
    """Base class of kernel dataclasses and configuration objects: keywords become attributes."""

    __nki_object__ = True  # arguments of this kind are searched for arrays

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Annotate plain class attributes, so that @dataclass takes them as fields as AWS's does.

        Those that no dataclass takes as a default (lists, dictionaries) stay attributes of the class.
        """
        super().__init_subclass__(**kwargs)
        annotations = inspect.get_annotations(cls)
        for name, value in vars(cls).items():
            plain = not (name.startswith("__") or callable(value) or isinstance(value, _METHODS))
            if plain and type(value).__hash__ is not None:
                annotations.setdefault(name, Any)
        cls.__annotations__ = annotations

    def __init__(self, **kwargs: Any) -> None:
        for name, value in kwargs.items():
            setattr(self, name, value)
