"""Arguments and results inside of lists, tuples, dictionaries and dataclasses."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from nkitools.chip.argument_types import Argument
from nkitools.record.saved.encoding import fields_of


def mapped(value: Argument, change: Callable[[Any], Any]) -> Any:
    """``value`` with every part changed by ``change``: the value itself, or elements and fields of containers.

    Containers are copied only where something in them changed. A container inside itself stays as it is.
    """
    return _mapped("", value, lambda _, each: change(each), frozenset())


def mapped_by_name(name: str, value: Argument, change: Callable[[str, Any], Any]) -> Any:
    """Return the same; ``change`` also gets each part's place: ``weights[0]``, ``tiles['left']``, ``config.bias``."""
    return _mapped(name, value, change, frozenset())


def parts_of(value: Argument, name: str = "", seen: frozenset[int] = frozenset()) -> Iterator[tuple[str, Any]]:
    """Yield a value and every part of it, the outer ones first, each with its place as `mapped_by_name` has it."""
    yield name, value
    if id(value) not in seen:
        for place, part in _parts(name, value).values():
            yield from parts_of(part, place, seen | {id(value)})


def _mapped(name: str, value: Argument, change: Callable[[str, Any], Any], seen: frozenset[int]) -> Any:
    changed = change(name, value)
    if changed is not value or id(value) in seen:
        return changed
    parts = _parts(name, value)
    if not parts:
        return value
    inside = seen | {id(value)}
    new = {key: _mapped(place, part, change, inside) for key, (place, part) in parts.items()}
    if all(new[key] is part for key, (_, part) in parts.items()):
        return value
    return _rebuilt(value, new)


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
