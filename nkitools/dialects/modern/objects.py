"""``nl.NKIObject``: the base class of objects that carry a kernel's settings."""

from __future__ import annotations

import dataclasses
import inspect
from difflib import get_close_matches
from typing import Any

from nkitools.chip.argument_types import Argument
from nkitools.dialects.version_forms import language_here
from nkitools.rules.finding import refuse

_METHODS = (property, classmethod, staticmethod)


class NKIObject:
    """Base class of kernel dataclasses and configuration objects.

    With or without ``@dataclass``: annotated attributes are the fields, in order, those of bases first; what is not
    given has its default, else None; ``__post_init__`` runs at the end. Before NKI 0.7 two objects of one class are
    equal where their attributes are; since then ``==`` is Python's own.
    Errors: NK609. Source: NKI Language Guide, Class Support (NKI 0.6).
    """

    __nki_object__ = True  # arguments of this kind are searched for arrays

    def __init_subclass__(cls, **kwargs: Argument) -> None:
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

    def __init__(self, *args: Argument, **kwargs: Argument) -> None:
        fields = _fields(type(self))
        name = type(self).__name__
        if len(args) > len(fields):
            message = f"{name} takes {len(fields)} values and is given {len(args)}"
            refuse("NK609", message, remedy=_call_form(name, fields))
        given = dict(zip(fields, args, strict=False))
        for key in kwargs:
            if key in given:
                refuse("NK609", f"{name}: `{key}` is given twice", remedy=_call_form(name, fields))
            # A class that declares nothing takes what it is given.
            if fields and key not in fields:
                near = get_close_matches(key, fields, n=1)
                hint = f" Did you mean {near[0]}?" if near else ""
                refuse("NK609", f"{name} has no field `{key}`", remedy=_call_form(name, fields) + hint)
        for key, value in (given | kwargs).items():
            setattr(self, key, value)
        for key in fields:
            if key not in vars(self):
                setattr(self, key, _default(type(self), key))
        self.__post_init__()

    def __post_init__(self) -> None:
        """Do nothing when the fields are set; subclasses may define it."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self) or language_here().traced:
            return NotImplemented
        return vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(type(self))


def _fields(cls: type) -> list[str]:
    """Return the annotated attributes of a class, those of its bases first."""
    annotated = (
        name
        for base in reversed(cls.__mro__)
        for name, annotation in inspect.get_annotations(base).items()
        if "ClassVar" not in str(annotation) and base is not NKIObject
    )
    return list(dict.fromkeys(annotated))


def _default(cls: type, name: str) -> Any:
    default = getattr(cls, name, None)
    if isinstance(default, dataclasses.Field):
        if default.default_factory is not dataclasses.MISSING:
            return default.default_factory()
        return None if default.default is dataclasses.MISSING else default.default
    return default


def _call_form(name: str, fields: list[str]) -> str:
    return f"The call form is {name}({', '.join(fields)})."
