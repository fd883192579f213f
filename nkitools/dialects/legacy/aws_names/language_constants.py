"""``nki.language.constants``: undocumented, but public kernels import ``sizeinbytes`` from it."""

from __future__ import annotations

from typing import Any

from nkitools.chip.dtypes import DTypeLike
from nkitools.dialects.absent import missing
from nkitools.dialects.legacy.tiles.dtypes import element_type

__all__ = ["sizeinbytes"]


def sizeinbytes(dtype: DTypeLike) -> int:
    """Bytes of one element of a dtype. Errors: NK301."""
    return element_type(dtype).itemsize


def __getattr__(name: str) -> Any:
    return missing("neuronxcc.nki.language.constants", name, __all__)
