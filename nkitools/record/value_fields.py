"""The parts of an argument or a result that is an object of several values."""

from __future__ import annotations

from typing import Any


def fields_of(value: Any) -> dict[str, Any] | None:
    """Return the fields of a named tuple, a dataclass or an object of NKI with arrays; None for other values."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return dict(value._asdict())
    if hasattr(type(value), "__dataclass_fields__"):
        from dataclasses import fields  # whose import takes two milliseconds

        names = (field.name for field in fields(value))
        return {name: getattr(value, name) for name in names if hasattr(value, name)}
    if getattr(type(value), "__nki_object__", False):
        return dict(vars(value))
    return None
