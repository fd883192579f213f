"""Kernels whose file was edited after they were imported: they run as they were imported, and a warning says so."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import FunctionType
from typing import Any
from weakref import WeakSet

from nkitools.authors_code.called_functions import named_functions, plain_function
from nkitools.authors_code.source_text import SourceChanged, is_changed

_looked_at: WeakSet[FunctionType] = WeakSet()


def warn_of_changed_source(function: Callable[..., Any]) -> None:
    """Warn once of a function, or of one that it names, that its file no longer holds as it runs."""
    plain = plain_function(function)
    if plain is None or plain in _looked_at:
        return
    _looked_at.add(plain)
    for each in named_functions(plain):
        code = each.__code__
        if is_changed(code):
            message = (
                f"`{each.__qualname__}` runs as it was imported; {code.co_filename} no longer holds it so: the file "
                "was edited since, or an import hook changes the function. Rules that read its source are left out, "
                "and legacy loops turn as in Python. Import it again."
            )
            warnings.warn_explicit(message, SourceChanged, code.co_filename, code.co_firstlineno)
