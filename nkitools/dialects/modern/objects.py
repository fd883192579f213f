"""``nl.NKIObject``: the base class of objects that carry a kernel's settings."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Set
from typing import Any, Self

from nkitools.chip.argument_types import Argument
from nkitools.chip.version_notices import report_notice
from nkitools.dialects.call_form import language_here
from nkitools.facts.versions import by_full_name, notice
from nkitools.rules.finding import refuse

_METHODS = (property, classmethod, staticmethod)


class NKIObject:
    """Base class of objects that carry settings into a kernel, with or without ``@dataclass``.

    The fields of a class are those of its base classes, then its annotated attributes, then its other attributes whose
    values are hashable and not callable. The constructor takes them by position or by name, and calls ``__post_init__``
    at the end; a class without fields takes any names. A field that is not given has its default, else None. Since NKI
    0.7 ``@dataclass`` is Python's own, and its fields without a default must be given (before: NK618). Before NKI 0.7
    two objects of one class are equal where their attributes are; since then ``==`` is Python's own.
    Errors: NK609 (too many values, an unknown field, one given twice, one missing).
    Source: NKI Language Guide, Class Support (NKI 0.6).
    """

    __nki_object__ = True  # arguments of this kind are searched for arrays
    __required__: frozenset[str] = frozenset()  # the fields of a dataclass to which its author gives no default

    def __new__(cls, *args: Argument, **kwargs: Argument) -> Self:
        """Make an object; nothing is missing where nothing is given, as by ``copy``."""
        if cls.__required__ and (args or kwargs) and hasattr(cls, "__dataclass_fields__"):
            _check_given(cls, len(args), kwargs.keys())
        return super().__new__(cls)

    def __init_subclass__(cls, **kwargs: Argument) -> None:
        """Make @dataclass take fields as AWS's compiler does: plain class attributes too, and None as a default.

        Attributes that no dataclass takes as a default (lists, dictionaries) stay attributes of the class.
        """
        super().__init_subclass__(**kwargs)
        annotations = inspect.get_annotations(cls)
        for name, value in vars(cls).items():
            plain = not (name.startswith("__") or callable(value) or isinstance(value, _METHODS))
            if plain and type(value).__hash__ is not None:
                annotations.setdefault(name, Any)
        cls.__annotations__ = annotations
        if "__init__" in vars(cls):
            # Of a dataclass with slots the class is made a second time, with all that the first one had.
            cls.__required__ = vars(cls).get("__required__", frozenset())
            return
        own = [name for name, annotation in annotations.items() if "ClassVar" not in str(annotation)]
        bare = {name for name in own if not hasattr(cls, name)}
        cls.__required__ = cls.__required__.difference(vars(cls)) | bare
        for name in bare:
            setattr(cls, name, None)

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
                from difflib import get_close_matches

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


def _check_given(cls: type[NKIObject], positions: int, names: Set[str]) -> None:
    """Check for fields of a dataclass without a value: NK609 if the NKI version requires one, NK618 if the next one
    does.
    """
    fields = [each for each in dataclasses.fields(cls) if each.init]  # type: ignore[arg-type]
    placed = {each.name for each in [each for each in fields if not each.kw_only][:positions]}
    missing = [each.name for each in fields if each.name in cls.__required__ - placed - names]
    if not missing:
        return
    row, language = by_full_name()["nki.an object without a value for a field"], language_here()
    message = f"{cls.__name__} gets no value for {', '.join(f'`{name}`' for name in missing)}"
    if not row.is_in(language):
        refuse("NK609", message, remedy=_call_form(cls.__name__, [each.name for each in fields]))
    found = notice(row, language)
    if found is not None:
        report_notice(found._replace(message=f"{message}, which is None; {found.message}"))


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
