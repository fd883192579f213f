"""Arguments and results inside of lists, tuples, dictionaries and dataclasses."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from nkitools.chip.argument_types import Argument
from nkitools.facts.light_classes import dataclass, field
from nkitools.record.value_fields import fields_of


@dataclass
class Objects:
    """The author's objects among the arguments of a launch, and the objects that the kernel gets in their place.

    An object with an array inside is replaced by another one with a tensor.
    """

    are_copied: bool  # the kernel gets copies of all of them, as before NKI 0.7
    given: dict[int, tuple[Any, Any, dict[str, Any]]] = field(default_factory=dict)  # by id: own, given, its parts

    def write_back(self, change: Callable[[Any], Any]) -> None:
        """Give the author's own objects the attributes that the kernel has set, each changed by ``change``."""
        for own, given, parts in () if self.are_copied else self.given.values():
            for name, value in (fields_of(given) or {}).items():
                if name not in parts or value is not parts[name]:
                    object.__setattr__(own, name, change(value))


def mapped(value: Argument, change: Callable[[Any], Any]) -> Any:
    """Return ``value`` with ``change`` applied to it, or to the elements and fields of a container.

    Containers are copied only if something in them changed. A container inside itself stays as it is.
    """
    return _mapped("", value, lambda _, each: change(each), frozenset())


def mapped_by_name(
    name: str, value: Argument, change: Callable[[str, Any], Any], objects: Objects | None = None
) -> Any:
    """Return the same as `mapped`; ``change`` also gets each part's name: ``weights[0]``, ``tiles['left']``,
    ``config.bias``. ``objects`` keeps the replacements of the author's objects.
    """
    return _mapped(name, value, change, frozenset(), objects)


def parts_of(value: Argument, name: str = "", seen: frozenset[int] = frozenset()) -> Iterator[tuple[str, Any]]:
    """Yield a value and every part of it, outer ones first, each with its name as in `mapped_by_name`."""
    yield name, value
    if id(value) not in seen:
        for place, part in _parts(name, value).values():
            yield from parts_of(part, place, seen | {id(value)})


def _mapped(
    name: str,
    value: Argument,
    change: Callable[[str, Any], Any],
    seen: frozenset[int],
    objects: Objects | None = None,
    *,
    copied: bool = False,
) -> Any:
    changed = change(name, value)
    if changed is not value or id(value) in seen:
        return changed
    parts = _parts(name, value)
    if not parts:
        return value
    known = None if objects is None else objects.given.get(id(value))
    if known is not None:
        return known[1]
    is_object = objects is not None and _is_authors(value)
    copied = copied or (objects is not None and objects.are_copied and is_object)
    inside = seen | {id(value)}
    new = {key: _mapped(place, part, change, inside, objects, copied=copied) for key, (place, part) in parts.items()}
    if not copied and all(new[key] is part for key, (_, part) in parts.items()):
        return value
    given = _rebuilt(value, new)
    if objects is not None and is_object:
        objects.given[id(value)] = value, given, new
    return given


def _is_authors(value: Any) -> bool:
    """Return whether a value with fields is an object of the author's, not of nkitools (a dtype, say)."""
    return not isinstance(value, (list, tuple, dict)) and not type(value).__module__.startswith("nkitools.")


def _parts(name: str, value: Argument) -> dict[Any, tuple[str, Any]]:
    """Return the parts of a container by index, key or attribute, each with its place; nothing for other values."""
    if isinstance(value, (list, tuple)):
        return {index: (f"{name}[{index}]", item) for index, item in enumerate(value)}
    if isinstance(value, dict):
        return {key: (f"{name}[{key!r}]", item) for key, item in value.items()}
    return {field: (f"{name}.{field}", part) for field, part in (fields_of(value) or {}).items()}


def _rebuilt(value: Any, parts: dict[Any, Any]) -> Any:
    """Return a container of the same kind with other parts."""
    if isinstance(value, tuple):
        return value._make(parts.values()) if hasattr(value, "_make") else type(value)(parts.values())
    if isinstance(value, list):
        return type(value)(parts.values())
    new = copy.copy(value)
    for key, part in parts.items():
        if isinstance(value, dict):
            new[key] = part
        else:
            object.__setattr__(new, key, part)  # a dataclass may be frozen
    return new
