"""``nki.language.constants``: undocumented, but public kernels import ``sizeinbytes`` from it."""

from __future__ import annotations

from nkitools.chip.dtypes import DTypeLike
from nkitools.dialects.legacy.tiles.dtypes import element_type

__all__ = ["sizeinbytes"]


def sizeinbytes(dtype: DTypeLike) -> int:
    """Bytes of one element of a dtype. Errors: NK301."""
    return element_type(dtype).itemsize
