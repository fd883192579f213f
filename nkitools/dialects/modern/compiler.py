"""``nki.compiler``: the configuration of kernels; what drives AWS's compiler is refused by name."""

from __future__ import annotations

from typing import Any

from nkitools.dialects.public import find, publish

publish(globals(), "nki.compiler")


def __getattr__(name: str) -> Any:
    return find(globals(), "nki.compiler", name)
