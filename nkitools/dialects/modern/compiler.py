"""``nki.compiler``: what drives AWS's compiler, for which nkitools does not stand in; every name of it is refused."""

from __future__ import annotations

from typing import Any

from nkitools.dialects.public import find

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    return find(globals(), "nki.compiler", name)
