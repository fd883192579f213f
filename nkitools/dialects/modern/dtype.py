"""``nki.dtype``: undocumented, but public kernels annotate with it and import it; the dtype objects of nki.language."""

from __future__ import annotations

from nkitools.chip.dtypes import DTYPES, DType

globals().update(DTYPES)

__all__ = ["DType", *DTYPES]
