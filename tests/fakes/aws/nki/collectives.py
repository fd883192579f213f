"""The fake of nki.collectives: the names of the builtin simulator's."""

from typing import Any

from nkitools.dialects.modern import collectives as _collectives


def __getattr__(name: str) -> Any:
    """Return a name that the version at hand has."""
    return getattr(_collectives, name)
