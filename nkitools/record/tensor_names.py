"""The author's names of tensors, found in their frames."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

from nkitools.authors_code.instructions import bound_name, is_returned, returned_names
from nkitools.chip.memory_region import MEMORY_NAMES
from nkitools.chip.own_indices import slot_of
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import name_of as placeholder_of
from nkitools.record.loop_counters import author_frames
from nkitools.record.record import Record
from nkitools.rules.finding import MADE_AT, UNNAMED


def tensor_of(value: Any) -> NkiTensor | None:
    """Return ``value`` if it is a tensor, or the tensor that it wraps if it is a dialect's; None otherwise."""
    if isinstance(value, NkiTensor):
        return value
    if not str(type(value).__module__).startswith("nkitools."):
        return None  # an author's object may do anything when it is asked for an attribute
    inner = getattr(value, "tensor", None)
    return inner if isinstance(inner, NkiTensor) else None


def is_grid(value: Any) -> bool:
    """Return whether ``value`` is a grid (`nkitools.language.grids`), a view that ``.data`` makes a tensor of."""
    return hasattr(type(value), "is_data_representable")


def _is_of(value: Any, storage: int) -> bool:
    tensor = value._tensor if is_grid(value) else tensor_of(value)
    return tensor is not None and tensor.storage.id == storage


def _name_in(frame: FrameType, storage: int) -> str:
    """Return the name of a storage in a frame: a variable, or an element of a local list, tuple or dictionary."""
    variables = list(frame.f_locals.items())
    for name, value in variables:
        if _is_of(value, storage):
            return name
    for name, value in variables:
        if isinstance(value, (list, tuple)):
            elements = list(enumerate(value))
        elif isinstance(value, dict):
            elements = list(value.items())
        else:
            continue
        for key, element in elements:
            if _is_of(element, storage):
                return f"{name}[{key!r}]"
    return ""


def name_of(frame: FrameType | None, storage: int, record: Record) -> str:
    """Return the author's name for a storage: a variable of the kernel's innermost frame that has one, else the name at
    its creation.
    """
    for each in author_frames(frame):
        name = _name_in(each, storage)
        if name:
            return name
    return record.name_of(storage)


def are_named(names: Sequence[tuple[int, str]], frame: FrameType, variables: Mapping[str, Any], record: Record) -> bool:
    """Return whether these are the author's names for some storages; ``variables``: those of ``frame``."""
    for storage, name in names:
        value = variables.get(name)
        if value.__class__ is NkiTensor and value.storage.id == storage:
            continue
        if not (value is not None and _is_of(value, storage)) and name_of(frame, storage, record) != name:
            return False
    return True


def names_in_kernel(frame: FrameType | None, storage: int) -> list[str]:
    """Return all variables of the kernel's frames that hold a storage.

    If a function is about to return it by name, ``result = ...; return result``, the variable that the caller will
    assign it to counts too.
    """
    found: list[str] = []
    comes_back = False
    for each in author_frames(frame):
        if comes_back:
            found.append(bound_name(each.f_code, each.f_lasti))
        here = [name for name, value in list(each.f_locals.items()) if _is_of(value, storage)]
        found += here or [_name_in(each, storage)]
        returned_on = comes_back and is_returned(each.f_code, each.f_lasti)
        comes_back = returned_on or not returned_names(each.f_code).isdisjoint(here)
    return [name for name in found if name]


def with_names(message: str, frame: FrameType | None, record: Record, unnamed: str = "") -> str:
    """Return a message with the names of the tensors that it describes; ``unnamed``: of those without a name."""

    def fill(match: re.Match[str]) -> str:
        name = name_of(frame, int(match[2]), record)
        part = match[3] or ""
        if not name and unnamed:
            return f"{match[1] or ''} {unnamed}{chr(39) + 's ' + part if part else ''}"
        return f"{match[1] or ''} `{name}{part}`" if name else f" {part}" if part else ""

    def place(match: re.Match[str]) -> str:
        known = record.storages.get(int(match[1]))
        site = None if known is None else record.sites[known.site]
        return f" (line {site.line})" if site is not None and site.file else ""

    return re.sub(MADE_AT, place, re.sub(UNNAMED, fill, message))


def facts_of(about: Sequence[Any], facts: Mapping[str, Any], frame: FrameType | None, record: Record) -> dict[str, Any]:
    """Return the facts of a finding, and of the first tensor that it is about, with the author's names."""
    tensor = tensor_of(about[0]) if about else None
    found = {**({} if tensor is None else _facts_of_tensor(tensor, record)), **facts}
    for name, value in found.items():
        if isinstance(value, str) and "\x00" in value:
            found[name] = with_names(f" {value}", frame, record).strip(" `")
    return {name: _plain(value) for name, value in found.items() if not (isinstance(value, str) and not value)}


def _plain(value: Any) -> Any:
    """Return a fact as Python's own numbers and texts."""
    if isinstance(value, (tuple, list)):
        return tuple(_plain(each) for each in value)
    return value.item() if hasattr(value, "item") else value


def _facts_of_tensor(tensor: NkiTensor, record: Record) -> dict[str, Any]:
    known = record.storages.get(tensor.storage.id)
    site = None if known is None else record.sites[known.site]
    return {
        "tensor": placeholder_of(tensor, part=slot_of(tensor)).strip(" `"),
        "memory": MEMORY_NAMES[tensor.buffer],
        "dtype": str(tensor.dtype),
        "shape": tuple(tensor.shape),
        "allocated_at": "" if site is None or not site.file else f"{site.file}:{site.line}",
    }
