"""``nki.dtype``: undocumented, but public kernels annotate with it and import it; the dtype objects of nki.language."""

from __future__ import annotations

from typing import Any

from nkitools.chip.dtypes import DTYPES, DType
from nkitools.dialects.absent import missing

globals().update(DTYPES)

__all__ = ["DType", *DTYPES]


def __getattr__(name: str) -> Any:
    return missing("nki.dtype", name, __all__)
