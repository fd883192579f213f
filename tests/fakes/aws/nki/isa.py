"""The fake of nki.isa: the names of the builtin simulator's."""

from typing import Any

from nkitools.dialects.modern import isa as _isa


def __getattr__(name: str) -> Any:
    """Return a name that the version at hand has."""
    return getattr(_isa, name)
