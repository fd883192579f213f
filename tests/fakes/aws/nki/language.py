"""The fake of nki.language: the names of the builtin simulator's."""

from typing import Any

from nkitools.dialects.modern import language as _language


def __getattr__(name: str) -> Any:
    """Return a name that the version at hand has."""
    return getattr(_language, name)
